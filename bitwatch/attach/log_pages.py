"""Pages of a log of any size: the lines around a place in it, forwards and backwards, read from
there. Nothing here reads more of a file than what it is asked for.

A line longer than a few kB comes in pieces. Where it is cut must be known without looking for its
beginning, which may be a gigabyte away: at every 8 KiB of the file that have 8 KiB without an end
of a line before them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from bitwatch.attach.log_file import HEAD_BYTES, LogError, OpenLog, open_log
from bitwatch.attach.log_text import SAMPLE_BYTES, encoding_of, looks_binary

PIECE_BYTES = 8 << 10
BLOCK_BYTES = 64 << 10  # read at a time; must hold more than two pieces of a line
CHARACTER_BYTES = 4  # the longest in UTF-8


class Row(NamedTuple):
    """A line of a file, or a piece of a long one, in its bytes from `begin` up to `end`. `data`
    has no end of a line. `whole` is false for a last line that may still grow."""

    data: bytes
    begin: int
    end: int
    whole: bool = True


class Pager(OpenLog):
    """Reads one file where it is asked to. `look` sees how large it is by now, and all else is
    about what it saw."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.size = 0
        self.end = 0  # of the last row that cannot change any more
        self.written: float | None = None  # when, as of the last look

    def look(self) -> None:
        """Takes in what was written, and whether the file is another one by now."""
        with self._look():
            if self._fd < 0:
                self._open()
            size = os.fstat(self._fd).st_size
            if size < self.size or not self._begins_as_before():
                self._begin_anew()
            elif size == self.size and self._is_another_file("shown"):
                self.close()
                self._open()
            size = os.fstat(self._fd).st_size
            if size != self.size:
                self._take(size)

    def after(self, place: int, most: int) -> list[Row]:
        """Rows from where one begins, at most so many, oldest first."""
        rows: list[Row] = []
        while place < self.end and len(rows) < most:
            length = min(BLOCK_BYTES, self.end - place)
            data = self.read(place, length + CHARACTER_BYTES)
            length = min(length, len(data))
            ends = place + length == self.end
            at = 0
            while at < length and len(rows) < most:
                end = row_end(data, place, at, length)
                if end <= 0 and not ends:
                    break  # the rest of this row is in the next block
                end = end if end > 0 else length
                rows.append(_row(data, place, at, end))
                at = end
            if at == 0:
                break  # the file has become shorter meanwhile
            place += at
        return rows

    def before(self, place: int, most: int) -> list[Row]:
        """Rows up to where one ends, at most so many and the nearest of them, oldest first."""
        rows: list[Row] = []
        while place > 0 and len(rows) < most:
            begin = max(0, place - BLOCK_BYTES)
            data = self.read(begin, place - begin + CHARACTER_BYTES)
            stop = place - begin
            if len(data) < stop:
                break
            while stop > 0 and len(rows) < most:
                at = row_begin(data, begin, stop)
                if at < 0:
                    break
                rows.append(_row(data, begin, at, stop))
                stop = at
            if begin + stop == place:
                break
            place = begin + stop
        rows.reverse()
        return rows

    def begin_of(self, byte: int) -> int:
        """Where the row begins that has this byte."""
        begin = max(0, byte + 1 - BLOCK_BYTES)
        data = self.read(begin, byte + 1 - begin)
        return begin + max(0, row_begin(data, begin, len(data))) if data else begin

    def rest(self) -> Row | None:
        """The last line, while it has no end."""
        if self.end >= self.size:
            return None
        data = self.read(self.end, self.size - self.end)
        return Row(data, self.end, self.size, whole=False) if data else None

    def read(self, begin: int, length: int) -> bytes:
        """No more than there was at the last look."""
        length = min(length, self.size - begin)
        if self._fd < 0 or length <= 0:
            return b""
        try:
            return os.pread(self._fd, length, begin)
        except OSError as error:
            self.trouble = f"{self.path}: cannot be read: {error.strerror}"
            return b""

    def _open(self) -> None:
        self._fd = open_log(self.path)
        status, before = os.fstat(self._fd), self._which
        self._which = status.st_dev, status.st_ino
        if before is not None and (self._which != before or not self._begins_as_before()):
            self._begin_anew()

    def _begin_anew(self) -> None:
        self.renewed += 1
        self.size, self.end, self._head = 0, 0, b""

    def _take(self, size: int) -> None:
        if len(self._head) < HEAD_BYTES:
            beginning = os.pread(self._fd, SAMPLE_BYTES, 0)
            if encoding_of(beginning).startswith("utf-16"):
                raise LogError(f"{self.path}: is in UTF-16; `bitwatch logs` prints it")
            if looks_binary(beginning):
                raise LogError(f"{self.path}: is a binary file, not a log")
            self._head = beginning[:HEAD_BYTES]
        self.size, self.written = size, os.fstat(self._fd).st_mtime
        self.end = size if self.read(size - 1, 1) == b"\n" else self.begin_of(size - 1)


def row_end(data: bytes, offset: int, at: int, stop: int | None = None) -> int:
    """Where the row ends that begins there, in data that lies at this offset of the file; -1 when
    the data ends before it does."""
    stop = len(data) if stop is None else stop
    end = data.find(b"\n", at, stop)
    place = offset + at
    cut = -(-place // PIECE_BYTES) * PIECE_BYTES + PIECE_BYTES - offset
    if cut < (end if end >= 0 else stop):
        return cut
    return end + 1 if end >= 0 else -1


def row_begin(data: bytes, offset: int, stop: int) -> int:
    """Where the row begins that ends there; -1 when it begins before the data, which it cannot
    where that has three pieces."""
    line = data.rfind(b"\n", 0, stop - 1) + 1
    cut = (offset + stop - 1) // PIECE_BYTES * PIECE_BYTES - offset
    while cut - PIECE_BYTES >= line:
        if data[cut] != 10:  # an end of a line is no piece by itself
            return cut
        cut -= PIECE_BYTES
    return line if line or not offset else -1


def _row(data: bytes, offset: int, at: int, end: int) -> Row:
    """With characters that are cut in two wholly in the piece in which they begin."""
    text = data[at:end]
    if text.endswith(b"\n"):
        text = text[:-1]
    else:
        text += _continued(data, end)
    if offset + at and (offset + at) % PIECE_BYTES == 0:
        text = text[len(_continued(data, at)) :]
    return Row(text, offset + at, offset + end)


def _continued(data: bytes, at: int) -> bytes:
    """The rest of a character that began before this place."""
    end = at
    while end < min(len(data), at + CHARACTER_BYTES - 1) and data[end] & 0xC0 == 0x80:
        end += 1
    return data[at:end]
