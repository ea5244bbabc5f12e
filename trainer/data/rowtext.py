"""A row's text as the bytes that are trained on: UTF-8, and a newline at its end.

From rows of Python and from columns of Arrow, byte for byte the same. Imports nothing heavy:
what prepares a text needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

# Texts of some rows end to end, uint8, and the length of each, int64.
Block = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def text_bytes(row: dict[str, object], column: str) -> bytes:
    """A row's text as UTF-8 with its newline. A missing value is an empty row."""
    if column not in row:
        raise ValueError(f"a row has no column {column!r}; it has {', '.join(row)}")
    text = row[column]
    if text is None:
        return b"\n"
    if not isinstance(text, str):
        raise ValueError(f"column {column!r} holds {type(text).__name__}, not text")
    raw = text.encode("utf-8", errors="replace")  # lone surrogates have no UTF-8
    return raw if raw.endswith(b"\n") else raw + b"\n"


def column_blocks(table: pa.Table, column: str) -> Iterator[Block]:
    """What `text_bytes` gives for the rows of a table, a chunk of it at a time."""
    if column not in table.column_names:
        names = ", ".join(table.column_names)
        raise ValueError(f"a row has no column {column!r}; it has {names}")
    for chunk in table.column(column).chunks:
        if len(chunk):
            yield array_block(chunk, column)


def array_block(array: pa.Array, column: str) -> Block:
    """The same for an Arrow array of at least one row."""
    import pyarrow as pa
    from pyarrow import compute

    text = pa.large_string()  # its offsets do not overflow at 2 GiB
    if array.null_count == len(array):
        return np.full(len(array), ord("\n"), np.uint8), np.ones(len(array), np.int64)
    if not is_text(array.type):
        value = array.drop_null()[0].as_py()
        raise ValueError(f"column {column!r} holds {type(value).__name__}, not text")
    array = compute.fill_null(array.cast(text), pa.scalar("", text))
    array.validate(full=True)  # files can hold strings that are no UTF-8, which Python refuses
    ended = compute.ends_with(array, pattern="\n")
    if not compute.all(ended).as_py():
        newline, nothing = pa.scalar("\n", text), pa.scalar("", text)
        with_it = compute.binary_join_element_wise(array, newline, nothing)
        array = compute.if_else(ended, array, with_it) if compute.any(ended).as_py() else with_it
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]], np.diff(offsets)


def is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind) in TEXT_TYPES


TEXT_TYPES = ("string", "large_string", "string_view")  # as arrow calls them
