"""All processes of this machine from raw /proc, and which of them descend from ours.

`stat` is read first and for all; a command line only once per process, and never of one in
state D (reading it can hang for ever). A process that vanishes in the middle of a scan is
simply not in it. Signals go through pidfds that are checked against the start time.
"""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COMMAND_BYTES = 4096  # of a command line, what is kept


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that are used here. Times in clock ticks."""

    pid: int
    name: str
    state: str
    ppid: int
    session: int
    terminal: int
    cpu_ticks: int
    threads: int
    starttime: int
    rss_mib: float

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.starttime


def read_stat(pid: int) -> Stat | None:
    """None when there is no such process, or it may not be seen."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    return parse_stat(data)


def parse_stat(data: bytes) -> Stat | None:
    """A name may hold anything, `) R 1 1 (x` too: the fields begin behind the last `)`."""
    before, closing, after = data.rpartition(b")")
    pid, opening, name = before.partition(b"(")
    fields = after.split()
    if not closing or not opening or len(fields) < 22:
        return None
    return Stat(
        pid=int(pid),
        name=name.decode(errors="replace"),
        state=fields[0].decode(),
        ppid=int(fields[1]),
        session=int(fields[3]),
        terminal=int(fields[4]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        threads=int(fields[17]),
        starttime=int(fields[19]),
        rss_mib=int(fields[21]) * PAGE_MIB,
    )


def scan() -> dict[int, Stat]:
    """Every process that can be seen, by pid."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            stat = read_stat(int(name))
            if stat is not None:
                found[stat.pid] = stat
    return found


def descendants(table: dict[int, Stat], roots: set[int]) -> list[Stat]:
    """The processes below `roots` (not the roots themselves), parents before children."""
    children: dict[int, list[int]] = {}
    for stat in table.values():
        children.setdefault(stat.ppid, []).append(stat.pid)
    found: list[Stat] = []
    seen = set(roots)
    queue = sorted(roots)
    for pid in queue:
        for child in sorted(children.get(pid, ())):
            if child not in seen:
                seen.add(child)
                queue.append(child)
                found.append(table[child])
    return found


class CommandLines:
    """Command lines, each read once. A young process may still show its parent's, or
    nothing: what is empty, or was read within `settle_s` of its start, is read again."""

    settle_s = 1.0

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], str] = {}

    def get(self, stat: Stat) -> str:
        known = self._known.get(stat.key)
        if known:
            return known
        if stat.state in "DZX":
            return ""
        try:
            with open(f"/proc/{stat.pid}/cmdline", "rb", buffering=0) as file:
                raw = file.read(COMMAND_BYTES)
        except OSError:
            return ""
        text = " ".join(raw.decode(errors="replace").split("\0")).strip()
        if text and age_s(stat) > self.settle_s:
            self._known[stat.key] = text
        return text

    def is_settled(self, stat: Stat) -> bool:
        """Whether what `get` gave is the process's own for good."""
        return stat.key in self._known

    def forget_all_but(self, keys: set[tuple[int, int]]) -> None:
        for key in self._known.keys() - keys:
            del self._known[key]


def age_s(stat: Stat) -> float:
    """Seconds since the process started."""
    return read_uptime_s() - stat.starttime / TICKS_PER_S


def read_uptime_s() -> float:
    with open("/proc/uptime", "rb", buffering=0) as file:
        return float(file.read(64).split()[0])


def open_pidfd(pid: int, starttime: int) -> int | None:
    """A pidfd that surely means this process, or None when it is gone."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    stat = read_stat(pid)
    if stat is None or stat.starttime != starttime or stat.state in "ZX":
        os.close(fd)
        return None
    return fd


def send_signal(pid: int, starttime: int, number: signal.Signals) -> bool:
    """Signals exactly this process; whether it was there to be signalled."""
    fd = open_pidfd(pid, starttime)
    if fd is None:
        return False
    try:
        signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
