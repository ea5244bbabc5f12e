"""How fast texts were written here, so that a plan can say how long the next one will take.

    <cache>/rates.json     by kind of source: bytes of text and seconds of the last one written

A lost or damaged file costs a good estimate and nothing else.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from bitwatch.record.rundir import write_whole
from trainer.data.source import Kind

RATES = "rates.json"
LEAST_BYTES = 64 << 20  # with less, what is measured is how long processes take to start


class Pace(msgspec.Struct, frozen=True):
    bytes: int
    seconds: float


def note(folder: Path, kind: Kind, size: int, seconds: float) -> None:
    """After a text was written: everything it took but waiting for another run."""
    if size < LEAST_BYTES or seconds <= 0:
        return
    paces = _read(folder) | {kind: Pace(size, round(seconds, 3))}
    with contextlib.suppress(OSError):
        write_whole(folder / RATES, msgspec.json.encode(paces))


def known(folder: Path, kind: Kind) -> float | None:
    """Bytes of text a second, None where nothing large enough was written yet."""
    pace = _read(folder).get(kind)
    if pace is None or not pace.seconds > 0:
        return None
    return pace.bytes / pace.seconds


def _read(folder: Path) -> dict[str, Pace]:
    try:
        return msgspec.json.decode((folder / RATES).read_bytes(), type=dict[str, Pace])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
