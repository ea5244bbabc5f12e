"""The files that a training writes its output to, found through the processes that have them
open. Files are looked at and never opened: opening a pipe or a terminal changes what it does.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat as modes
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bitwatch.sense.entry import opened
from bitwatch.sense.members import Member
from bitwatch.sense.stat import Stat, read_raw
from bitwatch.text import literal

LOOKS_LIKE_LOG = re.compile(
    r"\.(?:log|txt|out|err|jsonl)(?:[.-][\w-]+)*$|(?:^|[._-])logs?$", re.IGNORECASE
)
GONE = " (deleted)"
PIPE = "pipe:["
NO_FILES = ("/dev/", "/proc/", "/sys/", "/memfd:")  # not that anybody would read again
TRIES, PAUSE_S = 3, 0.01  # of a process that waits in the kernel just now
PIPES_DEEP = 3  # tee, then ts, then a file

OUTPUT, WRITTEN, OTHER_OUTPUT, ERRORS = range(4)  # likeliest first


class Log(NamedTuple):
    """A file that something of a training writes. `path` as it is named; `opened` is the way to
    exactly that file through the process that has it open, also when it has been deleted.
    `how` says who writes it, as in "standard output of rank 0"."""

    path: str
    opened: str
    pid: int
    how: str
    deleted: bool = False


class _File(NamedTuple):
    """One descriptor. `inode` is None of a pipe, whose name is its `link`."""

    fd: int
    link: str
    inode: tuple[int, int] | None = None
    written: float = 0.0
    deleted: bool = False

    @property
    def path(self) -> str:
        return self.link.removesuffix(GONE) if self.deleted else self.link


class _Found(NamedTuple):
    likeliness: int
    file: _File
    log: Log


class LogFinder:
    """Where the processes in `table` write."""

    def __init__(self, table: dict[int, Stat]) -> None:
        self.table = table
        self._listeners: dict[str, list[Stat]] | None = None  # by the pipe on their stdin

    def logs(self, root: Stat, members: Iterable[Member]) -> tuple[Log, ...]:
        """Each file once, likeliest first: what rank 0 and the root print, then what any of
        them writes beside it, then what other ranks print, then errors. Newest first."""
        found: list[_Found] = []
        for member in members:
            if member.role == "rank" or member.stat.key == root.key:
                found.extend(self._of(member))
        found.sort(key=lambda one: (one.likeliness, -one.file.written))
        first: dict[tuple[int, int] | None, Log] = {}
        for one in found:
            first.setdefault(one.file.inode, one.log)
        return tuple(first.values())

    def writes_log(self, stat: Stat) -> bool:
        """Whether its output goes to a file, or it writes one that looks like a log."""
        return bool(self.logs(stat, [Member(stat, "rank")]))

    def writers_into(self, stat: Stat) -> list[Stat]:
        """The processes whose output `stat` reads on its stdin."""
        pipe = _pipe(stat.pid, 0)
        if not pipe:
            return []
        return [
            one
            for one in self.table.values()
            if one.pid != stat.pid and pipe in (_pipe(one.pid, 1), _pipe(one.pid, 2))
        ]

    def _of(self, member: Member) -> Iterator[_Found]:
        who = _words(member)
        is_first = member.role != "rank" or member.rank in (0, None)
        printed = OUTPUT if is_first else OTHER_OUTPUT
        for file in _files(member.stat):
            if file.fd in (1, 2):
                likeliness = printed if file.fd == 1 else ERRORS
                how = f"standard {'output' if file.fd == 1 else 'error'} of {who}"
                if file.inode:
                    yield _found(likeliness, member.stat, file, how)
                else:
                    yield from self._behind(file.link, likeliness, how, {member.stat.pid})
            elif LOOKS_LIKE_LOG.search(os.path.basename(file.path)):
                yield _found(WRITTEN, member.stat, file, f"a file that {who} writes")

    def _behind(self, pipe: str, likeliness: int, how: str, seen: set[int]) -> Iterator[_Found]:
        """The files of who reads the pipe: all that it writes but its errors."""
        for stat in self._readers().get(pipe, ()):
            if stat.pid in seen or len(seen) > PIPES_DEEP:
                continue
            through = f"{how}, through {literal(stat.name)} (pid {stat.pid})"
            for file in _files(stat):
                if file.inode and file.fd != 2:
                    yield _found(likeliness, stat, file, through)
                elif file.fd == 1:
                    yield from self._behind(file.link, likeliness, through, seen | {stat.pid})

    def _readers(self) -> dict[str, list[Stat]]:
        if self._listeners is None:
            self._listeners = {}
            for stat in self.table.values():
                if pipe := _pipe(stat.pid, 0):
                    self._listeners.setdefault(pipe, []).append(stat)
        return self._listeners


def _found(likeliness: int, stat: Stat, file: _File, how: str) -> _Found:
    way = f"/proc/{stat.pid}/fd/{file.fd}"
    return _Found(likeliness, file, Log(file.path, way, stat.pid, how, file.deleted))


def _words(member: Member) -> str:
    if member.role != "rank":
        return "the launcher" if member.role == "agent" else f"pid {member.stat.pid}"
    return "the training" if member.rank is None else f"rank {member.rank}"


def _pipe(pid: int, fd: int) -> str:
    """The pipe that this descriptor is, empty for none. By the pid alone, as it is asked of every
    process: of one that has just ended it may be its successor's, whose files are then none
    of a training's. Empty for processes of others, too."""
    try:
        link = os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""
    return link if link.startswith(PIPE) else ""


def _files(stat: Stat) -> list[_File]:
    """The regular files that it has open for writing, and the pipes that it prints to. Empty
    where that may not be seen."""
    for _ in range(TRIES):
        with contextlib.suppress(OSError), opened(stat) as entry:
            # A file's system that does not answer keeps whoever asks for it, as it keeps this.
            if entry.may_wait():
                time.sleep(PAUSE_S)
                continue
            fds = os.open("fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=entry.folder)
            try:
                numbers = sorted(int(name) for name in os.listdir(fds))
                found = (_file(fd, fds, entry.folder) for fd in numbers)
                return [file for file in found if file]
            finally:
                os.close(fds)
        break
    return []


def _file(fd: int, fds: int, folder: int) -> _File | None:
    try:
        link = os.readlink(str(fd), dir_fd=fds)
        if link.startswith(PIPE):
            return _File(fd, link) if fd in (1, 2) else None
        if not link.startswith("/") or link.startswith(NO_FILES):
            return None
        if not _for_writing(read_raw(f"fdinfo/{fd}", folder) or b""):
            return None
        facts = os.stat(str(fd), dir_fd=fds)  # of the open file itself: nothing is opened
    except OSError:
        return None
    if not modes.S_ISREG(facts.st_mode):
        return None
    deleted = link.endswith(GONE) and facts.st_nlink == 0
    return _File(fd, link, (facts.st_dev, facts.st_ino), facts.st_mtime, deleted)


def _for_writing(fdinfo: bytes) -> bool:
    for line in fdinfo.splitlines():
        if line.startswith(b"flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE in (os.O_WRONLY, os.O_RDWR)
    return False
