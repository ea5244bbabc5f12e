"""What local files say about themselves without being read: footers of parquet, first lines
of the others. Finds before the launch what would end a run at its first row.
"""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

from bitwatch.plan.facts import Shard
from trainer.data.rowtext import is_text
from trainer.data.source import Source, SourceError

LOOKING_S = 3.0  # beyond it, sizes of the files not looked at stay unknown
HEAD_BYTES = 1 << 16
LONGEST_LINE_BYTES = 64 << 20
LENGTH_BYTES = 4  # parquet stores each string's length before it (encoding PLAIN)


def look(source: Source, text_column: str) -> tuple[list[Shard], list[str]]:
    """One Shard a file, and the names of the columns. Raises SourceError, naming the file."""
    deadline = time.monotonic() + LOOKING_S
    shards: list[Shard] = []
    columns: list[str] = []
    for name in source.files:
        shard = Shard(name=name)
        if time.monotonic() < deadline:
            try:
                shard, columns = _look_at(Path(name), source, text_column)
            except OSError as error:
                raise SourceError(
                    f"{source.key}: {name} cannot be read: {error.strerror or error}",
                    "Correct the file or its permissions, or take it out",
                ) from None
        shards.append(shard)
    return shards, columns


def _look_at(path: Path, source: Source, text_column: str) -> tuple[Shard, list[str]]:
    if source.kind == "parquet":
        return _parquet(path, source.key, text_column)
    if path.stat().st_size == 0:
        raise SourceError(f"{source.key}: {path} is empty", "Take it out")
    if source.kind == "json":
        return _json_lines(path, source.key, text_column)
    return _text(path, source.key, text_column)


def _parquet(path: Path, key: str, text_column: str) -> tuple[Shard, list[str]]:
    footer, columns = parquet_footer(path, key, text_column)
    if footer.num_rows == 0:
        # datasets 5.2 ends such a stream with "BatchSize must be greater than 0".
        raise SourceError(f"{key}: {path} has no rows, which breaks the stream", "Take it out")
    groups = range(footer.num_row_groups)
    shard = Shard(
        name=str(path),
        rows=footer.num_rows,
        row_groups=footer.num_row_groups,
        text_bytes=sum(group_text_bytes(footer.row_group(i), text_column) for i in groups),
    )
    return shard, columns


def parquet_footer(path: Path, key: str, text_column: str) -> tuple[Any, list[str]]:
    """What a parquet file says of itself, and its columns. Raises SourceError when it is not
    one, or has no text in that column, and OSError when it cannot be opened."""
    import pyarrow
    import pyarrow.parquet

    with open(path, "rb"):  # pyarrow hides why it cannot open a file
        pass
    try:
        footer = pyarrow.parquet.read_metadata(path)
        schema = footer.schema.to_arrow_schema()
    except (pyarrow.ArrowException, OSError):
        raise SourceError(
            f"{key}: {path} is not a whole parquet file", "Write it again, or take it out"
        ) from None
    _check_column(path, text_column, list(schema.names))
    kind = schema.field(text_column).type
    if not is_text(kind):
        raise SourceError(
            f"data.text_column: column {text_column!r} of {path} holds {kind}, not text",
            f"Name a column of text; it has {_list(schema.names)}",
        )
    return footer, list(schema.names)


def group_text_bytes(group: Any, column: str) -> int:
    """Size of a column's text in a row group, from the size that the footer gives before
    compression. Too small where many rows are the same: the file holds those once."""
    size = 0
    for j in range(group.num_columns):
        chunk = group.column(j)
        if chunk.path_in_schema == column:
            size += max(0, chunk.total_uncompressed_size - LENGTH_BYTES * group.num_rows)
    return size


def _json_lines(path: Path, key: str, text_column: str) -> tuple[Shard, list[str]]:
    """Columns of the first line. Neither rows nor text can be counted without reading."""
    bad = SourceError(
        f"{key}: {path} does not begin with a JSON object on a line of its own",
        "Write one object a line, or take the file out",
    )
    try:
        with _open(path) as file:
            first = json.loads(file.readline(LONGEST_LINE_BYTES))
    except (ValueError, EOFError, gzip.BadGzipFile):
        raise bad from None
    if not isinstance(first, dict):
        raise bad
    _check_column(path, text_column, list(first))
    if not isinstance(first[text_column], str | None):
        raise SourceError(
            f"data.text_column: {text_column!r} in {path} is not text in the first line",
            f"Name a column of text; it has {_list(list(first))}",
        )
    return Shard(name=str(path)), list(first)


def _text(path: Path, key: str, text_column: str) -> tuple[Shard, list[str]]:
    """Text files have one column, "text", and a row a line."""
    _check_column(path, text_column, ["text"])
    try:
        with _open(path) as file:
            head = file.read(HEAD_BYTES)
        # A character may be cut at the end of the head: up to 3 of its bytes are then there.
        head.decode(errors="strict") if len(head) < HEAD_BYTES else _decode_cut(head)
        if b"\0" in head:
            raise ValueError
    except (ValueError, EOFError, gzip.BadGzipFile):
        raise SourceError(
            f"{key}: {path} is not UTF-8 text", "Convert it, or take it out"
        ) from None
    size = None if path.suffix == ".gz" else path.stat().st_size
    return Shard(name=str(path), text_bytes=size), ["text"]


def _decode_cut(head: bytes) -> None:
    """Raises UnicodeDecodeError unless only the last character is cut."""
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3 or error.reason != "unexpected end of data":
            raise


def _open(path: Path) -> Any:
    return gzip.open(path) if path.suffix == ".gz" else open(path, "rb")


def _check_column(path: Path, wanted: str, columns: list[str]) -> None:
    if wanted not in columns:
        raise SourceError(
            f"data.text_column: {path} has no column {wanted!r}",
            f"It has {_list(columns)}: name the one that holds the text",
        )


def _list(names: list[str]) -> str:
    return ", ".join(names) if names else "no columns"
