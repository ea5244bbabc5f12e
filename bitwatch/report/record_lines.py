"""The lines of one file of a record with their numbers, in bounded memory.

Nothing but a plain file is opened: whatever lies in a folder that somebody names as a run must
not make a report wait.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bitwatch.record.journal import LONGEST_LINE_BYTES, READ_BYTES


class Lines:
    """Gives the whole lines of a file as it is now, a block at a time: the number of the first,
    and the lines, of which those that are empty are nothing. After that, `skipped` counts those that were
    too long, `torn` is whether the last one has no end, and `trouble` says why the file could
    not be read, empty when it could.

    With `ends_bytes` only so much of a long file's beginning and of its end is given; the lines
    between are only counted, so that the numbers stay true. `left_out` is how many there were.
    """

    def __init__(self, path: Path, ends_bytes: int | None = None) -> None:
        self.path = path
        self.skipped = 0
        self.left_out = 0
        self.torn = False
        self.trouble = ""
        self._ends_bytes = ends_bytes
        self._number = 0
        self._rest = b""
        self._overlong = False

    def __iter__(self) -> Iterator[tuple[int, list[bytes]]]:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.trouble = error.strerror or str(error)
            return
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode):
                self.trouble = "is no plain file"
                return
            yield from self._of(fd, facts.st_size)
        except OSError as error:
            self.trouble = error.strerror or str(error)
        finally:
            os.close(fd)

    def _of(self, fd: int, size: int) -> Iterator[tuple[int, list[bytes]]]:
        """`size` ends it: of a file that grows faster than it is read there would be no end."""
        ends = self._ends_bytes
        if ends and size > 2 * ends:
            yield from self._between(fd, 0, ends)
            newlines = self._count(fd, ends, size - ends)
            self._number += newlines
            self.left_out = newlines
            # From within a line: what follows of it counts as left out.
            self._rest, self._overlong = b"", True
            yield from self._between(fd, size - ends, size)
        else:
            yield from self._between(fd, 0, size)
        self.torn = bool(self._rest.strip()) or self._overlong

    def _between(self, fd: int, begin: int, end: int) -> Iterator[tuple[int, list[bytes]]]:
        while begin < end:
            block = os.pread(fd, min(READ_BYTES, end - begin), begin)
            if not block:
                return
            begin += len(block)
            *lines, self._rest = (self._rest + block).split(b"\n")
            if lines and self._overlong:
                lines[0], self._overlong = b"", False
            yield self._number + 1, lines
            self._number += len(lines)
            if len(self._rest) > LONGEST_LINE_BYTES:
                self.skipped += not self._overlong
                self._rest, self._overlong = b"", True

    def _count(self, fd: int, begin: int, end: int) -> int:
        newlines = 0
        while begin < end:
            block = os.pread(fd, min(READ_BYTES, end - begin), begin)
            if not block:
                break
            begin += len(block)
            newlines += block.count(b"\n")
        return newlines
