"""Where a rank tells what its record has no room for: one block of a file of its own, which it was
given at the start.

A quota, a full disk, or a limit on the size of files ends the growth of a record while the training
goes on. To write over a block that is there takes no more room, so the newest that the rank has to
say still reaches who watches. How many records were lost is said with it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bitwatch import small
from bitwatch.record import codec, events

PLACE_BYTES = 4096
SETTLED_S = 1.0  # a file that was last changed longer ago than that shows each change by its time
# What is told first where there is not room for all: of each kind the newest.
KINDS: tuple[type[events.Record], ...] = (
    events.RankEnded,
    events.Step,
    events.Phase,
    events.ProcessStart,
    events.Checkpoint,
    events.Evaluation,
    events.Epoch,
    events.Note,
    events.ModelBuilt,
)


class Aside:
    """The place of one rank. It never raises: where nothing can be written, nothing is told."""

    def __init__(self, path: Path, rank: int) -> None:
        self.path = path
        self.word = events.Unwritten(rank=rank)
        self._held: dict[type[events.Record], events.Record] = {}
        self._fd = -1
        with contextlib.suppress(OSError):
            # Not to append: what is written at a place must come there.
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._write([])

    @property
    def holds(self) -> bool:
        """Whether there is something that the record lacks."""
        return self.word.lost > 0

    def held(self) -> list[events.Record]:
        """The newest of each kind, oldest first."""
        return sorted(self._held.values(), key=lambda record: record.t)

    def hold(self, record: events.Record, error: str) -> None:
        """`record` was not written, because of `error`."""
        if not self.holds:
            self.word = events.Unwritten(rank=self.word.rank, t=record.t, m=record.m)
        self.word.error, self.word.newest = error, record.t
        self.word.lost += 1
        self._held[type(record)] = record
        self._tell()

    def drop(self, record: events.Record) -> None:
        """It stands in the record after all."""
        del self._held[type(record)]
        self.word.lost -= 1

    def clear(self) -> None:
        """The record grows again, and has all that was held here."""
        self._held.clear()
        self.word = events.Unwritten(rank=self.word.rank)
        self._tell()

    def _tell(self) -> None:
        lines = [codec.encode(self.word)]
        room = PLACE_BYTES - len(lines[0])
        for kind in KINDS:
            if kind in self._held and (line := _line(self._held[kind], room)):
                lines.append(line)
                room -= len(line)
        self._write(lines)

    def _write(self, lines: list[bytes]) -> None:
        """At once, and with blanks to its end, which no reader takes for a record."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.pwrite(self._fd, b"".join(lines).ljust(PLACE_BYTES - 1) + b"\n", 0)


class AsideReader:
    """Reads such a place again whenever it has changed, as a `JournalReader` reads what is new."""

    skipped = 0
    gap = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self._data = b""
        self._settled_ns: int | None = None

    def batches(self) -> Iterator[list[codec.Any_]]:
        yield self.read()

    def read(self) -> list[codec.Any_]:
        """All that it holds; nothing while that is as before, or half written just now."""
        try:
            with small.opened(self.path) as file:
                changed_ns = os.fstat(file.fileno()).st_mtime_ns
                if changed_ns == self._settled_ns:
                    return []
                data = file.read(PLACE_BYTES)
        except OSError:
            return []  # not there yet, or gone
        old = time.time_ns() - changed_ns > SETTLED_S * 1e9
        self._settled_ns = changed_ns if old else None
        if data == self._data:
            return []
        records = [codec.decode(line) for line in data.split(b"\n") if line.strip()]
        whole = [record for record in records if record is not None]
        if len(whole) < len(records):
            self._settled_ns = None
            return []
        self._data, self.offset = data, len(data)
        return whole


def _line(record: events.Record, room: int) -> bytes:
    """Empty where it does not fit. Why a rank ended is cut to what does."""
    line = codec.encode(record)
    while len(line) > room and isinstance(record, events.RankEnded) and record.cause:
        record = msgspec.structs.replace(record, cause=record.cause[: len(record.cause) // 2])
        line = codec.encode(record)
    return line if len(line) <= room else b""
