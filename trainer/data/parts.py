"""A source cut into parts that can be read side by side, and the text of each part.

Together, in order, the parts hold exactly what the stream of `datasets` gives. Parquet files
of this machine are read here, only the text column and only so much at a time; everything
else is read by `datasets`, a shard at a time. Files with nothing in them are left out: they
crash the stream, and hold no text.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trainer.data import files
from trainer.data.rowtext import Block, array_block, column_blocks, text_bytes
from trainer.data.source import Source, SourceError
from trainer.failures import Failed, sentence

if TYPE_CHECKING:
    from datasets import IterableDataset

PART_BYTES = 32 << 20  # of source or text, whichever is known: work for about a second
BATCH_BYTES = 8 << 20  # of text in memory at once, where rows are about as long as their mean
BATCH_ROWS = 512  # at most, where they are not


class Part(msgspec.Struct, frozen=True):
    """A run of a source's shards, or of the row groups of a single parquet shard.

    weight: its share of the work, in bytes of the source. expected: bytes of its text, where
    something says how many there will be.
    """

    shards: tuple[int, ...]
    row_groups: tuple[int, ...] = ()
    weight: int = 1
    expected: int | None = None


def cut(source: Source, column: str) -> tuple[Source, list[Part]]:
    """The source without its empty files, and its parts in order. Raises Failed."""
    if source.hub is not None:
        count = _open(source, column).num_shards
        return source, [Part((shard,)) for shard in range(count)]
    pieces: list[Part] = []
    kept: list[str] = []
    for name in source.files:
        try:
            found = _pieces(Path(name), source, column, len(kept))
        except OSError as error:
            raise _unreadable(source, name, error.strerror or str(error)) from None
        if found:
            kept.append(name)
            pieces += found
    if not pieces:
        raise SourceError(f"{source.key}: its files hold no rows", "Give a source with text")
    return msgspec.structs.replace(source, files=tuple(kept)), _gather(pieces)


def blocks(source: Source, column: str, part: Part) -> Iterator[Block]:
    """The text of a part, some rows at a time. Raises Failed, naming the file."""
    for shard in part.shards:
        try:
            yield from _shard_blocks(source, column, part, shard)
        except Failed:
            raise
        except Exception as error:  # any of datasets, fsspec, pyarrow
            name = source.files[shard] if source.files else f"shard {shard} of {source.hub}"
            raise _unreadable(source, name, sentence(error)) from error


def _shard_blocks(source: Source, column: str, part: Part, shard: int) -> Iterator[Block]:
    if source.kind == "parquet":
        yield from _parquet(source.files[shard], column, part)
        return
    from trainer.data import sharing

    rows = _open(source, column)
    tables = sharing.tables_of_shard(rows, shard)
    if tables is None:
        yield from _row_blocks(sharing.rows_of_shard(rows, shard), column)
    else:
        for table in tables:
            yield from column_blocks(table, column)


def _pieces(path: Path, source: Source, column: str, shard: int) -> list[Part]:
    """The smallest parts of a file. Raises SourceError, OSError."""
    if source.kind == "parquet":
        return _groups(path, source.key, column, shard)
    size = path.stat().st_size
    expected = size if source.kind == "text" and path.suffix != ".gz" else None
    return [Part((shard,), (), size, expected)] if size else []


def _groups(path: Path, key: str, column: str, shard: int) -> list[Part]:
    """One piece for each row group that has rows."""
    with open(path, "rb") as file:
        about, _ = files.footer(file, str(path), key, column)
    pieces = []
    for number, (rows, size) in enumerate(
        zip(about.group_rows or [], about.group_bytes or [], strict=True)
    ):
        if rows:
            # Each row's text has a newline, which as a rule is not in the file.
            pieces.append(Part((shard,), (number,), size + rows, size + rows))
    return pieces


def _gather(pieces: list[Part]) -> list[Part]:
    """Neighbours together up to PART_BYTES: a part costs a few milliseconds by itself."""
    parts = [pieces[0]]
    for piece in pieces[1:]:
        last = parts[-1]
        one_file = last.shards == piece.shards or not piece.row_groups
        if not one_file or last.weight + piece.weight > PART_BYTES:
            parts.append(piece)
            continue
        known = last.expected is not None and piece.expected is not None
        parts[-1] = Part(
            last.shards if piece.row_groups else last.shards + piece.shards,
            last.row_groups + piece.row_groups,
            last.weight + piece.weight,
            (last.expected or 0) + (piece.expected or 0) if known else None,
        )
    return parts


def _parquet(name: str, column: str, part: Part) -> Iterator[Block]:
    """With one open file, and of it no more in memory than a batch."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(name, buffer_size=1 << 20) as file:
        rows = sum(file.metadata.row_group(group).num_rows for group in part.row_groups)
        of_a_row = max(1, (part.expected or 0) // max(1, rows))
        batches = file.iter_batches(
            batch_size=max(1, min(BATCH_ROWS, BATCH_BYTES // of_a_row)),
            row_groups=list(part.row_groups),
            columns=[column],
            use_threads=False,
        )
        for batch in batches:
            if batch.num_rows:
                yield array_block(batch.column(0), column)


def _row_blocks(rows: Iterator[dict[str, Any]], column: str) -> Iterator[Block]:
    texts: list[bytes] = []
    size = 0
    for row in rows:
        texts.append(text_bytes(row, column))
        size += len(texts[-1])
        if size >= BATCH_BYTES:
            yield _block(texts)
            texts, size = [], 0
    if texts:
        yield _block(texts)


def _block(texts: list[bytes]) -> Block:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.frombuffer(b"".join(texts), np.uint8), lengths


def _unreadable(source: Source, name: str, why: str) -> SourceError:
    return SourceError(
        f"{source.key}: {name} cannot be read: {why}",
        "Correct the file or its permissions, or take it out",
    )


@functools.lru_cache(maxsize=1)
def _open(source: Source, column: str) -> IterableDataset:
    """All shards of a source, as `datasets` has them. Opened once by a process: the first
    file says for all what the columns are."""
    from trainer.data import hub, sharing

    if source.hub is not None:
        hub.prepare()
    return sharing.open_rows(source, column)
