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
from trainer.data import retry
from trainer.data.rowtext import is_text
from trainer.data.source import Source, SourceError

LOOKING_S = 3.0  # beyond it, sizes of the files not looked at stay unknown
HEAD_BYTES = 1 << 16
LONGEST_LINE_BYTES = 64 << 20
LENGTH_BYTES = 4  # parquet stores each string's length before it (encoding PLAIN)


def look(
    source: Source, text_column: str, *, empty_allowed: bool = False
) -> tuple[list[Shard], list[str]]:
    """One Shard a file, and the names of the columns. Raises SourceError, naming the file.

    empty_allowed: a parquet file without rows, which only some ways of reading survive.
    """
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
            if shard.rows == 0 and not empty_allowed:
                # datasets 5.2 ends such a stream with "BatchSize must be greater than 0".
                raise SourceError(
                    f"{source.key}: {name} has no rows, which breaks the stream", "Take it out"
                )
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
    with open(path, "rb") as file:  # pyarrow hides why it cannot open a file
        return footer(file, str(path), key, text_column)


def footer(file: Any, name: str, key: str, text_column: str) -> tuple[Shard, list[str]]:
    """What an open parquet file says of itself, as a Shard, and its columns. Raises SourceError
    for one that cannot be read, or not as text; OSError as the file does."""
    import pyarrow
    import pyarrow.parquet

    try:
        about = pyarrow.parquet.read_metadata(file)
        schema = about.schema.to_arrow_schema()
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and retry.passing(error):
            raise
        raise SourceError(
            f"{key}: {name} is not a whole parquet file", "Write it again, or take it out"
        ) from None
    _check_column(name, text_column, list(schema.names))
    kind = schema.field(text_column).type
    if not is_text(kind):
        raise SourceError(
            f"data.text_column: column {text_column!r} of {name} holds {kind}, not text",
            f"Name a column of text; it has {_list(schema.names)}",
        )
    rows, sizes = _row_groups(about, text_column) if about.num_rows else ([], [])
    shard = Shard(
        name=name,
        rows=about.num_rows,
        row_groups=len(rows),
        text_bytes=sum(sizes),
        group_rows=rows,
        group_bytes=sizes,
    )
    return shard, list(schema.names)


def _row_groups(about: Any, column: str) -> tuple[list[int], list[int]]:
    """Rows and text bytes of each row group, from the sizes that the footer gives before
    compression. Too small where many rows of a group are the same: the file holds those once."""
    rows, sizes = [], []
    for i in range(about.num_row_groups):
        group = about.row_group(i)
        size = sum(
            max(0, chunk.total_uncompressed_size - LENGTH_BYTES * group.num_rows)
            for chunk in map(group.column, range(group.num_columns))
            if chunk.path_in_schema == column
        )
        rows.append(group.num_rows)
        sizes.append(size)
    return rows, sizes


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
    # A JSON string is never shorter than its text.
    bound = None if path.suffix == ".gz" else path.stat().st_size
    return Shard(name=str(path), text_bytes_at_most=bound), list(first)


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


def _check_column(path: Path | str, wanted: str, columns: list[str]) -> None:
    if wanted not in columns:
        raise SourceError(
            f"data.text_column: {path} has no column {wanted!r}",
            f"It has {_list(columns)}: name the one that holds the text",
        )


def _list(names: list[str]) -> str:
    return ", ".join(names) if names else "no columns"
