"""A log on the disk, followed while others write, rotate, truncate or delete it.

Only an ordinary file is ever read: nothing here can wait for somebody who does not write. What
stands in the way is a sentence in `trouble`, never an exception.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bitwatch.attach.log_text import (
    SAMPLE_BYTES,
    Decoder,
    Splitter,
    encoding_of,
    looks_binary,
)
from bitwatch.attach.said import Line
from bitwatch.attach.sieve import Sieve

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 256  # a file whose beginning has changed was written anew
MOST_COUNTED_BYTES = 4 << 30  # lines before the newest ones are counted up to here


class LogError(Exception):
    """Why a file cannot be read as a log, as one sentence."""


def unfit(path: Path) -> str:
    """Why this is no log, as a sentence; empty when it may be one."""
    try:
        fd = open_log(path)
    except LogError as error:
        return str(error)
    try:
        beginning = os.pread(fd, SAMPLE_BYTES, 0)
    except OSError as error:
        return f"{path}: cannot be read: {error.strerror}"
    finally:
        os.close(fd)
    if not beginning:
        return f"{path}: is empty"
    return f"{path}: is a binary file, not a log" if looks_binary(beginning) else ""


def open_log(path: Path) -> int:
    """A descriptor of an ordinary file. Raises LogError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        raise LogError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid name"
        raise LogError(f"{path}: cannot be read: {reason}") from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    kinds = [(stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device")]
    kind = next((name for test, name in kinds if test(mode)), "no ordinary file")
    raise LogError(f"{path}: is {kind}, not a log file")


def pieces(path: Path, begin: int, end: int, sieve: Sieve | None = None) -> Iterator[list[Line]]:
    """The lines between two places in bytes (of which `begin` is where a line begins), oldest
    first, a list for each block that is read, which may be empty. Raises LogError."""
    fd = open_log(path)
    try:
        encoding = encoding_of(os.pread(fd, 4, 0))
        number = _lines_before(fd, begin, encoding)
        splitter = Splitter(str(path), number, os.fstat(fd).st_mtime)
        decoder = Decoder(encoding)
        for block in _blocks(fd, begin, end):
            yield splitter.feed(decoder.feed(block), sieve)
        last = splitter.end()
        if last:
            yield last
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)


class OpenLog:
    """A log that stays open between two looks at it. `renewed` counts how often it was emptied, or
    its path has come to mean another file. `trouble` is what stands in the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble = ""
        self.renewed = 0
        self._fd = -1
        self._which: tuple[int, int] | None = None  # file was opened last
        self._head = b""

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()

    @contextlib.contextmanager
    def _look(self) -> Iterator[None]:
        """One look at the file: what stands in its way is a sentence, until the next one."""
        self.trouble = ""
        try:
            yield
        except LogError as error:
            self.trouble = str(error)
        except OSError as error:  # a stale handle of a network's file system
            self.trouble = f"{self.path}: cannot be read: {error.strerror}"
            self.close()

    def _begins_as_before(self) -> bool:
        return not self._head or os.pread(self._fd, len(self._head), 0) == self._head

    def _is_another_file(self, done: str) -> bool:
        """Whether the path has come to mean another file than the open one. `done` is what is done
        with what is still written to that."""
        try:
            there = os.stat(self.path)
        except OSError:
            self.trouble = (
                f"{self.path}: was deleted or moved away; what is still written to it is {done}"
            )
            return False
        return (there.st_dev, there.st_ino) != self._which


class LogFile(OpenLog):
    """Gives the lines of one file as they come. With `newest_bytes` it begins with the first
    whole line of only so many at the end; `gap` is then what `pieces` can read later. `raw`
    shows every byte: escapes and carriage returns literally, long lines in pieces."""

    def __init__(self, path: Path, newest_bytes: int | None = None, *, raw: bool = False) -> None:
        super().__init__(path)
        self.gap: tuple[int, int] | None = None
        self._newest_bytes = newest_bytes
        self._raw = raw
        self._seeks = False  # for the first end of a line, where the beginning was left out
        self._unread = True  # the open file was not looked at yet
        self._encoding = "utf-8"
        self._splitter = Splitter(str(path), raw=raw)
        self._decoder = Decoder("utf-8")
        self._offset = 0

    @property
    def offset(self) -> int:
        """How many bytes of the file have been read."""
        return self._offset

    def new(self, *, final: bool = False, most_bytes: int | None = None) -> list[Line]:
        """The lines since the last call; with `final` also a last one without an end. With
        `most_bytes` about so much is read at most, and what is left comes next time."""
        found: list[Line] = []
        with self._look():
            if self._fd < 0:
                self._open()
            found += self._read(most_bytes)
            if self._is_another_file("read on") and self._offset >= os.fstat(self._fd).st_size:
                found += self._splitter.end()
                self.close()
                self._open()
                found += self._read(most_bytes)
        if final:
            found += self._splitter.end()
        return found

    def _open(self) -> None:
        self._fd = open_log(self.path)
        status, before = os.fstat(self._fd), self._which
        self._which = status.st_dev, status.st_ino
        if self._which == before and status.st_size >= self._offset and self._begins_as_before():
            return  # the same after an error
        self.renewed += before is not None
        self._begin()

    def _begin(self) -> None:
        """At the beginning of the open file, or near its end if only that is wanted."""
        status = os.fstat(self._fd)
        self._offset, self._head, self._unread, self._seeks = 0, b"", True, False
        self._splitter = Splitter(str(self.path), 1, status.st_mtime, self._raw)
        if self._newest_bytes is not None and self.gap is None:
            self._offset = max(0, status.st_size - self._newest_bytes)
            self._offset -= self._offset % 2  # UTF-16 has two bytes a character
            self._seeks = self._offset > 0
        self._newest_bytes = None  # what comes after a rotation is read from its beginning

    def _read(self, most_bytes: int | None) -> list[Line]:
        if self._fd < 0:
            return []
        size = os.fstat(self._fd).st_size
        if size < self._offset or not self._begins_as_before():
            found = self._splitter.end()
            self.renewed += 1
            self._begin()
            return found + self._read(most_bytes)
        if size == self._offset or self._refused():
            return []
        found = []
        end = size if most_bytes is None else min(size, self._offset + most_bytes)
        while self._offset < end:
            block = os.pread(self._fd, min(BLOCK_BYTES, end - self._offset), self._offset)
            if not block:
                break
            self._offset += len(block)
            self._splitter.times.near = os.fstat(self._fd).st_mtime
            inside = self._seeks and self._raw and not (b"\n" in block or b"\r" in block)
            if self._seeks:
                block = self._from_first_whole_line(block)
            if block:
                found += self._splitter.feed(self._decoder.feed(block))
            if inside:  # a line of which nobody knows when it ends
                found += self._splitter.end()
        return found

    def _refused(self) -> bool:
        """Looks at a file's first bytes, once; true for a binary one."""
        if self._unread:
            beginning = os.pread(self._fd, SAMPLE_BYTES, 0)
            self._head = beginning[:HEAD_BYTES]
            self._encoding = encoding_of(beginning)
            self._decoder = Decoder(self._encoding)
            self._unread = False
            if looks_binary(beginning) and not self._raw:
                self._unread = True
                self.trouble = f"{self.path}: is a binary file, not a log"
                return True
        elif len(self._head) < HEAD_BYTES:
            self._head = os.pread(self._fd, HEAD_BYTES, 0)
        return False

    def _from_first_whole_line(self, block: bytes) -> bytes:
        """What follows the first end of a line, or of a progress bar's piece. Where every byte is
        shown, and none of them ends a line, all of it: it is within one that has no end yet."""
        wide = self._encoding.startswith("utf-16")
        text = block.decode(self._encoding, "replace") if wide else block.decode("latin-1")
        ends = [at for at in (text.find("\n"), text.find("\r")) if at >= 0]
        if ends:
            at = min(ends) + 1
            at += text[at : at + 1] == "\n"
            at *= 2 if wide else 1
        elif self._raw:  # not from within a character
            at = 0 if wide else next((n for n, c in enumerate(block) if c & 0xC0 != 0x80), 0)
        else:
            return b""
        self._seeks = False
        begin = self._offset - len(block) + at
        self.gap = (0, begin)
        number = _lines_before(self._fd, begin, self._encoding)
        self._splitter = Splitter(str(self.path), number, self._splitter.times.near, self._raw)
        return block[at:]


def _blocks(fd: int, begin: int, end: int) -> Iterator[bytes]:
    while begin < end:
        block = os.pread(fd, min(BLOCK_BYTES, end - begin), begin)
        if not block:
            return
        begin += len(block)
        yield block


def _lines_before(fd: int, begin: int, encoding: str) -> int:
    """The number of the line that begins there; 0 when it would take too long to know."""
    if begin > MOST_COUNTED_BYTES:
        return 0
    decoder = Decoder(encoding)
    return 1 + sum(decoder.feed(block).count(b"\n") for block in _blocks(fd, 0, begin))
