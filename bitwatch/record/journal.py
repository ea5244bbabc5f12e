"""Appending records to a file, and reading them back while they are written.

One writer per file. A record is one `write` of one line to a file opened with O_APPEND, so
that a kill leaves at most one torn last line; the next writer begins with a newline when the
last byte is not one. A reader takes whole lines only and counts what it had to skip.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from bitwatch import small
from bitwatch.record import codec, events

READ_BYTES = 1 << 20  # one read; a longer line is still read whole
LONGEST_LINE_BYTES = 8 << 20  # what exceeds this is no record of ours and is skipped


class JournalWriter:
    """Appends records to one file.

    `write` returns False when the line could not be written whole (a full disk): nothing
    already written is touched, and the next record starts on a line of its own; `error` says why
    the last one of these was not. A `last_word`
    that finds the disk full gives up the run's `reserve` for itself: how a run ended must be
    in its record, above all when a full disk is the cause. `heard` is called with every record,
    also with what the disk had no room for.
    """

    def __init__(
        self,
        path: Path,
        reserve: Path | None = None,
        heard: Callable[[events.Record], object] | None = None,
    ) -> None:
        self.path = path
        self._heard = heard
        self._reserve = reserve
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._torn = _last_byte(self._fd) not in (b"", b"\n")
        self.lost = 0
        self.error = ""

    def write(self, record: events.Record, *, last_word: bool = False) -> bool:
        line = codec.encode(record)
        whole = self._append(line)
        if not whole and last_word and self._reserve:
            with contextlib.suppress(OSError):
                self._reserve.unlink(missing_ok=True)
            whole = self._append(line)
        self.lost += not whole
        if self._heard:
            self._heard(record)
        return whole

    def _append(self, line: bytes) -> bool:
        """One write, and where that was cut short another, which says why. What is left torn is
        ended by a newline before the next."""
        if self._torn:
            line = b"\n" + line
        written = 0
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                written += os.write(self._fd, line[written:])
        except OSError as error:
            self.error = error.strerror or str(error)
        self._torn = written < len(line) and (self._torn or written > 0)
        return written == len(line)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _last_byte(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    return os.pread(fd, 1, size - 1) if size else b""


class JournalReader:
    """Reads one growing file from where it stopped before.

    `skipped` counts lines that were no record of a kind known here. A file that shrinks
    (it never should) is read again from its beginning. A file that is missing is empty.
    With `ends_bytes` only so much of a long file's beginning and end is read the first time:
    who a process is stands at the beginning, how it is doing at the end. `gap` then says what
    was left out: every line that begins at `gap[0]` or later, up to and with `gap[1]`.
    """

    def __init__(
        self,
        path: Path,
        ends_bytes: int | None = None,
        decode: Callable[[bytes], codec.Any_ | None] = codec.decode,
    ) -> None:
        self.path = path
        self._decode = decode
        self._name = os.fspath(path)
        self._ends_bytes = ends_bytes
        self.offset = 0
        self.skipped = 0
        self.gap: tuple[int, int] | None = None
        self._rest = b""
        self._overlong = False

    def read(self, limit_bytes: int | None = None) -> list[codec.Any_]:
        """The records of all whole lines since the last call, at most about `limit_bytes`."""
        records: list[codec.Any_] = []
        taken = 0
        try:
            if self.offset and os.stat(self._name).st_size == self.offset:
                return records  # of many files most say nothing most of the time
            with small.opened(self._name) as file:
                size = os.fstat(file.fileno()).st_size
                if size < self.offset:
                    self.offset, self._rest, self._overlong = 0, b"", False
                if self._ends_bytes and not self.offset and size > 2 * self._ends_bytes:
                    self._take(file.read(self._ends_bytes), records)
                    self.offset = size - self._ends_bytes
                    self.gap = (self._ends_bytes - len(self._rest), self.offset)
                    self._rest, self._overlong = b"", True  # to the end of a line cut in two
                file.seek(self.offset)
                while limit_bytes is None or taken < limit_bytes:
                    block = file.read(min(READ_BYTES, limit_bytes or READ_BYTES))
                    if not block:
                        break
                    taken += len(block)
                    self.offset += len(block)
                    self._take(block, records)
        except OSError:
            pass  # not there yet, or gone: what was read stays read
        return records

    def batches(self, limit_bytes: int = 4 * READ_BYTES) -> Iterator[list[codec.Any_]]:
        """All records since the last call, a part of the file at a time: a week's record is
        never in memory as a whole."""
        while True:
            before = self.offset
            yield self.read(limit_bytes)
            if self.offset - before < limit_bytes:
                return

    def _take(self, block: bytes, records: list[codec.Any_]) -> None:
        *lines, rest = (self._rest + block).split(b"\n")
        self._rest = rest
        for line in lines:
            if self._overlong:
                self._overlong = False
                continue
            if not line.strip():
                continue
            record = self._decode(line)
            if record is None:
                self.skipped += 1
            else:
                records.append(record)
        if len(self._rest) > LONGEST_LINE_BYTES:
            self._rest, self._overlong = b"", True
            self.skipped += 1


def read_all(path: Path) -> tuple[list[codec.Any_], int]:
    """All records of a file, and how many lines were skipped."""
    reader = JournalReader(path)
    return reader.read(), reader.skipped
