"""A source on the hub, as far as it can be had without one: from its libraries' own cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest
from datasets.arrow_writer import ArrowWriter

from bitwatch import config as configuration
from tests.trainer.data.conftest import write_parquet
from trainer.data import hub
from trainer.data.index import Index
from trainer.data.source import Source


def cached(cache: Path, rows: list[str], version: str) -> None:
    """What `datasets` leaves behind after loading owner/some_name from the hub."""
    folder = cache / "owner___some_name" / "default" / "0.0.0" / version
    folder.mkdir(parents=True)
    table = datasets.Dataset.from_dict({"text": rows}).data.table
    with ArrowWriter(path=str(folder / "some_name-train.arrow")) as writer:
        writer.write_table(table)
        examples, size = writer.finalize()
    split = {"name": "train", "num_examples": examples, "num_bytes": size}
    info = datasets.DatasetInfo(
        features=datasets.Features.from_arrow_schema(table.schema),
        dataset_name="some_name",
        config_name="default",
        version="0.0.0",
        splits=[{**split, "dataset_name": "some_name"}],
    )
    info.write_to_directory(str(folder))


def test_a_cached_dataset_is_written_once_for_each_version(
    tmp_path: Path, index_of: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf"))  # the children import it anew
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    data = configuration.Data(source="owner/some_name", cache=str(tmp_path / "cache"))
    cached(tmp_path / "hf", ["one", "two\n"], "a" * 40)
    first = index_of(data)
    assert first.text.tobytes() == b"one\ntwo\n"
    assert (first.about.documents, first.about.source) == (2, "owner/some_name train")
    said: list[str] = []
    assert index_of(data, said=said).folder == first.folder
    assert said == []
    cached(tmp_path / "hf", ["three"], "b" * 40)
    os.utime(tmp_path / "hf" / "owner___some_name" / "default" / "0.0.0" / ("a" * 40), (0, 0))
    assert index_of(data).text.tobytes() == b"three\n"


def test_where_files_come_from_is_part_of_the_revision(tmp_path: Path) -> None:
    """Of files on the hub it is their commit; of a folder, which `datasets` takes as well, the
    time of their last change."""
    write_parquet(tmp_path / "train.parquet", ["x"])
    source = Source(key="data.source", kind="hub", split="train", hub=str(tmp_path))
    first, files = hub.revision(source)
    assert files == 1
    assert hub.revision(source)[0] == first
    os.utime(tmp_path / "train.parquet", (0, 0))
    assert hub.revision(source)[0] != first
