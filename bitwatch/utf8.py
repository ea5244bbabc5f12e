"""Names that are not UTF-8: a file may have one, and Python then holds it with half surrogate
pairs, which nothing that is written as UTF-8 can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()


def is_text(name: str | Path) -> bool:
    """Whether it can be written into a record, and read from there as what it was."""
    try:
        str(name).encode()
    except UnicodeEncodeError:
        return False
    return True


def to_json(value: Any) -> bytes:
    """As msgspec does, on one line; what is no text is written as its escape, as people see it."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_escaped(msgspec.to_builtins(value, str_keys=True)))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(one) for one in value]
    return value
