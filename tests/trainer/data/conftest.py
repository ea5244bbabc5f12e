"""Sources of every kind, what the stream makes of them, and `prepare` as it is launched."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from bitwatch.record import events, rundir
from bitwatch.record.journal import read_all
from tests.conftest import PATIENCE_S
from trainer import prepare
from trainer.data import sharing, source
from trainer.data.index import Index
from trainer.data.rowtext import text_bytes

SCRIPT = Path(prepare.__file__)
# Everything that a row's text can be.
TEXTS = ["abc", "ended\n", "", "é 中文 🎉", None, "two\n\nlines", "x" * 3000, "\n", "z"]


def write_parquet(path: Path, texts: list[str | None], rows_a_group: int | None = None) -> None:
    table = pa.table({"other": list(range(len(texts))), "text": pa.array(texts, pa.string())})
    pq.write_table(table, path, row_group_size=rows_a_group)


def write_json_lines(path: Path, texts: list[str | None]) -> None:
    lines = "".join(json.dumps({"other": 1, "text": text}) + "\n" for text in texts).encode()
    path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)


def data_of(place: Path, cache: Path | None = None, **keys: Any) -> configuration.Data:
    folder = str(cache) if cache else None
    return configuration.Data(source=str(place), cache=folder, sharding="indexed", **keys)


def streamed(data: configuration.Data) -> bytes:
    """What a single reader of the stream packs: every row's text, end to end."""
    rows = sharing.open_rows(source.training(data), data.text_column)
    return b"".join(text_bytes(row, data.text_column) for row in rows)


def no_look() -> None:
    pass


@pytest.fixture
def index_of(small: Callable[..., configuration.Config]) -> Callable[..., Index]:
    """Prepares a text in this process, its readers in others; `said` takes what it tells."""

    def find(data: configuration.Data, processes: int = 1, said: list[str] | None = None) -> Index:
        config = small()
        config.data = data
        lines = [] if said is None else said
        return prepare.prepare(config, lambda text, _: lines.append(text), no_look, processes)

    return find


class Prepared:
    """One attempt for which `prepare.py` was started, and what it recorded."""

    def __init__(self, run: rundir.RunDir, attempt: int, **keywords: Any) -> None:
        self.run, self.attempt = run, attempt
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            env={
                **os.environ,
                "BITWATCH_DIR": str(run.path),
                "BITWATCH_ATTEMPT": str(attempt),
                "PYTHONSAFEPATH": "1",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            **keywords,
        )

    def wait(self) -> int:
        self.errors = self.process.communicate(timeout=PATIENCE_S)[1].decode()
        return self.process.returncode

    def records(self) -> list[Any]:
        return read_all(self.run.prepare(self.attempt))[0]

    def said(self) -> list[str]:
        return [r.text for r in self.records() if isinstance(r, events.Phase)]

    def last(self) -> events.RankEnded:
        """Its last record; what went wrong before there was one is in `errors`."""
        assert self.records(), self.errors
        record = self.records()[-1]
        assert isinstance(record, events.RankEnded), record
        assert record.rank == -1
        return record


@pytest.fixture
def launch_prepare(
    tmp_path: Path, small: Callable[..., configuration.Config]
) -> Iterator[Callable[..., Prepared]]:
    run = rundir.create(tmp_path / "runs", "test")
    started: list[Prepared] = []

    def start(data: configuration.Data, **keywords: Any) -> Prepared:
        config = small()
        config.data = data
        attempt = rundir.new_attempt(run)
        run.config(attempt).write_text(configuration.dump(config))
        started.append(Prepared(run, attempt, **keywords))
        return started[-1]

    yield start
    for prepared in started:
        prepared.process.kill()
        prepared.process.wait()
