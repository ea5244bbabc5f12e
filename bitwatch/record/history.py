"""The middle of a rank's long telemetry file, read after its ends.

A follower that shows the newest picture first leaves a gap. This fills it a piece at a time,
in order, so that whoever reads can do something else between two pieces. Only what a picture
of the past needs is taken: losses, evaluations, checkpoints.
"""

from __future__ import annotations

import bisect
from pathlib import Path
from typing import Any

import msgspec

from bitwatch import small
from bitwatch.record import codec, curves, events
from bitwatch.record.state import KEPT, RankState

PIECE_BYTES = 128 << 10  # a fraction of a millisecond's decoding


class _Step(events.Record, tag="step"):
    """Of a step record, what the curves need: faster to decode than the whole."""

    step: int = 0
    tokens: int = 0
    loss: float | None = None
    bits_per_byte: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    step_s: float | None = None
    data_s: float | None = None
    tokens_per_s: float | None = None


class _Evaluation(events.Evaluation, tag="evaluation"):
    pass


class _Checkpoint(events.Checkpoint, tag="checkpoint"):
    pass


_lines = msgspec.json.Decoder(_Step | _Evaluation | _Checkpoint)


class Past:
    """Fills one gap. `skipped` counts lines that were no record; `share` runs from 0 to 1."""

    def __init__(self, path: Path, gap: tuple[int, int], rank: RankState) -> None:
        self._path = path
        self._begin, self._last = gap
        self._offset = gap[0]
        self._rank = rank
        self._rest = b""
        self.skipped = 0
        self.done = False

    @property
    def share(self) -> float:
        return 1.0 if self.done else (self._offset - self._begin) / (self._last - self._begin)

    def piece(self) -> None:
        """Folds in the next piece; a file that is gone has no more."""
        try:
            with small.opened(self._path) as file:
                file.seek(self._offset)
                block = file.read(PIECE_BYTES)
        except OSError:
            block = b""
        whole, newline, rest = (self._rest + block).rpartition(b"\n")
        begin = self._offset - len(self._rest)
        self._offset += len(block)
        self._rest = rest
        beyond = begin + len(whole) - self._last
        if beyond >= 0:  # the last line wanted ends at the first newline at or after its begin
            end = whole.find(b"\n", max(0, self._last - begin))
            whole = whole if end < 0 else whole[:end]
        self.done = not block or beyond >= 0
        records, skipped = decode(whole + newline)
        self.skipped += skipped
        self._fold(records)

    def _fold(self, records: list[codec.Any_]) -> None:
        steps = steps_of(records)
        curves.extend(self._rank.loss, self._rank.curves, steps)
        for record in records if len(steps) < len(records) else ():
            if isinstance(record, events.Evaluation):
                _insert(self._rank.evaluations, record)
            elif isinstance(record, events.Checkpoint):
                _insert(self._rank.checkpoints, record)


def decode(text: bytes) -> tuple[list[codec.Any_], int]:
    """What whole lines tell of the past, and how many of them were no record. Fast, and slower
    only where one is broken."""
    try:
        return _lines.decode_lines(text), 0
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    records = [record for line in lines if (record := codec.decode(line)) is not None]
    return records, len(lines) - len(records)


def steps_of(records: list[codec.Any_]) -> list[Any]:
    """The step records among them, whole or as much of them as the curves need."""
    return [record for record in records if isinstance(record, _Step | events.Step)]


def _insert(items: list, record: events.Evaluation | events.Checkpoint) -> None:
    """In order of time, before what is newer; the newest are kept, as the fold keeps them."""
    items.insert(bisect.bisect_right(items, record.t, key=lambda item: item.t), record)
    del items[:-KEPT]
