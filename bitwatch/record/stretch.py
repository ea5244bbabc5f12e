"""A stretch of a rank's telemetry file, read again for its full detail.

The record keeps 2,048 buckets of a curve, so of a long run one bucket is many steps. A file is
in order of its steps: where a stretch begins is found by halving, and only the stretch is read.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from bitwatch import small
from bitwatch.record import history
from bitwatch.record.curves import Stepped, extend
from bitwatch.record.series import Series

NEAR_BYTES = 64 << 10  # a beginning that is known as well as this is near enough
BLOCK_BYTES = 1 << 20
MOST_BYTES = 96 << 20  # of one stretch


class Stretch(msgspec.Struct):
    """All curves of an attempt from step `first` to step `last`; the loss is `curves["loss"]`.
    `told` is the newest step in them."""

    attempt: int
    first: int
    last: int
    curves: dict[str, Series] = {}
    told: int = 0

    def add(self, records: Sequence[Stepped]) -> None:
        """Takes step records of the stretch that are newer than all in it."""
        new = [one for one in records if max(self.told + 1, self.first) <= one.step <= self.last]
        if new:
            extend(self.curves.setdefault("loss", Series()), self.curves, new)
            self.told = max(self.told, *(one.step for one in new))


def read(path: Path, attempt: int, first: int, last: int) -> Stretch:
    """What the file says of these steps; raises OSError when it cannot be read."""
    found = Stretch(attempt, first, last)
    with io.BufferedReader(small.opened(path)) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(_beginning(file, size, first))
        rest, taken = b"", 0
        while taken < MOST_BYTES and (block := file.read(BLOCK_BYTES)):
            taken += len(block)
            whole, newline, rest = (rest + block).rpartition(b"\n")
            steps = history.steps_of(history.decode(whole + newline)[0])
            _take(found, steps)
            if steps and steps[-1].step > last:
                break
    return found


def _take(found: Stretch, steps: list) -> None:
    """As they stand in the file: a step that is told twice counts twice, as everywhere."""
    inside = [one for one in steps if found.first <= one.step <= found.last]
    if inside:
        extend(found.curves.setdefault("loss", Series()), found.curves, inside)
        found.told = max(found.told, *(one.step for one in inside))


def _beginning(file: BinaryIO, size: int, step: int) -> int:
    """The offset of a line before which no step of the stretch stands."""
    low, high = 0, size
    while high - low > NEAR_BYTES:
        middle = (low + high) // 2
        told = _step_after(file, middle, high)
        if told is not None and told < step:
            low = middle
        else:
            high = middle
    return _line_after(file, low) if low else 0


def _line_after(file: BinaryIO, offset: int) -> int:
    file.seek(offset)
    file.readline()
    return file.tell()


def _step_after(file: BinaryIO, offset: int, end: int) -> int | None:
    """The first step that is told after an offset."""
    _line_after(file, offset)
    while file.tell() < end and (line := file.readline()):
        for record in history.steps_of(history.decode(line)[0]):
            return int(record.step)
    return None
