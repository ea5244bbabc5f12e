"""The flat text is byte for byte what the stream gives, from every kind of source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from tests.trainer.data.conftest import (
    TEXTS,
    data_of,
    streamed,
    write_json_lines,
    write_parquet,
)
from trainer.data import parts, source
from trainer.data.index import Index
from trainer.failures import Failed


def cut(data: configuration.Data) -> list[parts.Part]:
    return parts.cut(source.training(data), data.text_column)[1]


def read(data: configuration.Data) -> tuple[bytes, list[int]]:
    """The text of all parts, and the length of each row."""
    text, of_rows = b"", []
    opened, pieces = parts.cut(source.training(data), data.text_column)
    for part in pieces:
        for block, lengths in parts.blocks(opened, data.text_column, part):
            text += block.tobytes()
            of_rows += lengths.tolist()
    return text, of_rows


def rows_of(text: bytes, lengths: list[int]) -> list[bytes]:
    ends = np.cumsum(lengths)
    return [text[end - size : end] for end, size in zip(ends, lengths, strict=True)]


# ---------------------------------------------------------------------------------------
# Sources


def parquet(folder: Path) -> Path:
    write_parquet(folder / "a.parquet", TEXTS, rows_a_group=2)
    write_parquet(folder / "b.parquet", ["one", "two"])
    write_parquet(folder / "c.parquet", ["all\n", "ended\n"])
    return folder


def json_lines(folder: Path) -> Path:
    write_json_lines(folder / "a.jsonl", TEXTS)
    write_json_lines(folder / "b.jsonl.gz", ["packed", None, "é"])
    (folder / "c.jsonl").write_text('{"text": "only text"}\n{"other": 3, "text": "x"}')
    return folder


def text_files(folder: Path) -> Path:
    (folder / "a.txt").write_bytes("one\r\ntwo\n\né\rlast, without its newline".encode())
    (folder / "b.txt").write_bytes(b"second file\n")
    return folder


def hub_layout(folder: Path) -> Path:
    (folder / "data").mkdir()
    for number in range(2):
        name = f"train-0000{number}-of-00002.parquet"
        write_parquet(folder / "data" / name, [f"row {number}-{row}" for row in range(5)], 2)
    write_parquet(folder / "data" / "test-00000-of-00001.parquet", ["not to train on"])
    return folder


@pytest.mark.parametrize("part_bytes", [1, parts.PART_BYTES])
@pytest.mark.parametrize("made", [parquet, json_lines, text_files, hub_layout])
def test_the_parts_hold_what_the_stream_gives(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: Callable[[Path], Path],
    part_bytes: int,
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", part_bytes)
    data = data_of(made(tmp_path))
    text, lengths = read(data)
    assert text == streamed(data)
    assert all(row.endswith(b"\n") for row in rows_of(text, lengths))
    if made is parquet:
        assert len(lengths) == len(TEXTS) + 4
        assert len(cut(data)) == (7 if part_bytes == 1 else 3)


def test_a_row_that_is_larger_than_a_batch(tmp_path: Path) -> None:
    long = "x" * (10 << 20)
    write_parquet(tmp_path / "a.parquet", ["before", long, "after"])
    text, lengths = read(data_of(tmp_path / "a.parquet"))
    assert lengths == [7, len(long) + 1, 6]
    (tmp_path / "a.txt").write_text(f"before\n{long}\nafter")
    assert read(data_of(tmp_path / "a.txt")) == (text, lengths)
    write_json_lines(tmp_path / "a.jsonl", ["before", long, "after"])
    assert read(data_of(tmp_path / "a.jsonl")) == (text, lengths)


def test_columns_of_other_forms_of_text(tmp_path: Path) -> None:
    for number, kind in enumerate((pa.large_string(), pa.dictionary(pa.int32(), pa.string()))):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"text": pa.array(["a", None, "b\n", "a"]).cast(kind)}), path)
        assert read(data_of(path))[0] == b"a\n\nb\na\n"


def test_files_without_rows_are_left_out(tmp_path: Path) -> None:
    """The stream of `datasets` ends at them with an error."""
    write_parquet(tmp_path / "a.parquet", [])
    write_parquet(tmp_path / "b.parquet", ["row"])
    write_parquet(tmp_path / "c.parquet", [])
    assert read(data_of(tmp_path))[0] == b"row\n"
    for empty in ("a.parquet", "c.parquet"):
        with pytest.raises(Failed, match=r"data.source: its files hold no rows"):
            read(data_of(tmp_path / empty))


# ---------------------------------------------------------------------------------------
# What cannot be read


def test_bytes_that_are_no_utf8_end_the_work_and_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\n" * 10)
    (tmp_path / "b.txt").write_bytes(b"fine\nnot \xff fine\n")
    with pytest.raises(Failed, match=r"b.txt cannot be read: UnicodeDecodeError: .*; correct"):
        read(data_of(tmp_path))
    (tmp_path / "c.jsonl").write_bytes(b'{"text": "not \xff fine"}\n')
    with pytest.raises(Failed, match=r"c.jsonl cannot be read: ArrowInvalid: Invalid UTF8"):
        read(data_of(tmp_path / "c.jsonl"))
    with pytest.raises(UnicodeDecodeError):  # as the stream does
        streamed(data_of(tmp_path / "c.jsonl"))


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ("body", r"data.text_column: .* has no column 'body'; it has other, text"),
        ("other", r"data.text_column: column 'other' of .*parquet holds int64, not text"),
    ],
)
def test_a_column_of_parquet_that_is_no_text(tmp_path: Path, column: str, says: str) -> None:
    write_parquet(tmp_path / "a.parquet", ["x"])
    with pytest.raises(Failed, match=says):
        read(data_of(tmp_path, text_column=column))


@pytest.mark.parametrize(
    ("column", "says"), [("body", "no column 'body'"), ("other", "'other' holds int, not text")]
)
def test_a_column_of_json_that_is_no_text(tmp_path: Path, column: str, says: str) -> None:
    write_json_lines(tmp_path / "a.jsonl", ["x"])
    with pytest.raises(Failed, match=says):
        read(data_of(tmp_path, text_column=column))


# ---------------------------------------------------------------------------------------
# Written down


def test_the_index_does_not_depend_on_how_many_processes_wrote_it(
    tmp_path: Path, index_of: Callable[..., Index]
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(5):
        texts = [f"{number} {row} " + "é" * (row % 7) for row in range(50)]
        write_parquet(corpus / f"{number}.parquet", [*texts, *TEXTS], 16)
    data = data_of(corpus, tmp_path / "one")
    one = index_of(data, processes=1)
    three = index_of(data_of(corpus, tmp_path / "three"), processes=3)
    assert one.about.key == three.about.key
    assert one.text.tobytes() == three.text.tobytes() == streamed(data)
    assert one.offsets.tolist() == three.offsets.tolist()
    lengths = read(data)[1]
    assert one.offsets.tolist() == [0, *np.cumsum(lengths).tolist()]
    assert (one.about.documents, one.about.files) == (5 * (50 + len(TEXTS)), 5)
    inside = sorted(path.name for path in one.folder.iterdir())
    assert inside == ["index.json", "offsets.bin", "text.bin"]
