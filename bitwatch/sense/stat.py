"""/proc/PID/stat: what the kernel says of any process at once, without looking into it.

It can be read of every process, in every state, and reading it never waits. A process is
named by its pid and its start time together: a pid alone may be another process tomorrow.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

STATE_WORDS = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting in the kernel (D)",
    "T": "stopped (T)",
    "t": "traced (t)",
    "Z": "dead, waits for its parent",
    "X": "dead",
    "I": "idle in the kernel",
}

Key = tuple[int, int]  # pid and start time


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that are used here. Times in clock ticks. Where the
    environment lies is 0 of a process that may not be read, and of a dead one."""

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
    group: int = 0
    virtual_mib: float = 0.0
    env_start: int = 0
    env_end: int = 0

    @property
    def key(self) -> Key:
        return self.pid, self.starttime

    @property
    def image(self) -> tuple[int, int, str]:
        """Changes when the process becomes another program: an exec makes a new stack, in
        another place, and a new name."""
        return self.env_start, self.env_end, self.name


def read_raw(path: str, folder: int | None = None, limit: int = 4096) -> bytes | None:
    """The begin of a file, in one read; below the directory descriptor `folder` if there is
    one. None when it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        return os.read(fd, limit)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_stat(pid: int) -> Stat | None:
    """None when there is no such process, or it may not be seen."""
    data = read_raw(f"/proc/{pid}/stat")
    return parse_stat(data) if data else None


def parse_stat(data: bytes) -> Stat | None:
    """A name may hold anything, `) R 1 1 (x` too: the fields begin behind the last `)`."""
    before, closing, after = data.rpartition(b")")
    pid, opening, name = before.partition(b"(")
    fields = after.split()
    if not closing or not opening or len(fields) < 22:
        return None
    has_environment = len(fields) > 48
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
        group=int(fields[2]),
        virtual_mib=int(fields[20]) / 2**20,
        env_start=int(fields[47]) if has_environment else 0,
        env_end=int(fields[48]) if has_environment else 0,
    )


def pids() -> set[int]:
    """Of every process that is listed. Some may be gone already, or may not be looked at."""
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}


def scan() -> dict[int, Stat]:
    """Every process that can be seen, by pid."""
    found = {}
    for pid in pids():
        stat = read_stat(pid)
        if stat is not None:
            found[pid] = stat
    return found


def children_by_parent(table: dict[int, Stat]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for stat in table.values():
        children.setdefault(stat.ppid, []).append(stat.pid)
    return children


def descendants(
    table: dict[int, Stat], roots: set[int], children: dict[int, list[int]] | None = None
) -> list[Stat]:
    """The processes below `roots` (not the roots themselves), parents before children."""
    if children is None:
        children = children_by_parent(table)
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


def age_s(stat: Stat) -> float:
    """Seconds since the process started."""
    return read_uptime_s() - stat.starttime / TICKS_PER_S


def read_uptime_s() -> float:
    """By the clock that start times are told in. /proc/uptime may be a container's own."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def thread_states(pid: int, folder: int | None = None) -> dict[int, str]:
    """The state of each thread. `folder` is a descriptor of /proc/PID that is already held."""
    path = "task" if folder is not None else f"/proc/{pid}/task"
    states: dict[int, str] = {}
    try:
        task = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return states
    try:
        for name in os.listdir(task):
            data = read_raw(f"{name}/stat", task)
            if data and (stat := parse_stat(data)):
                states[stat.pid] = stat.state
    except OSError:
        pass  # it ended while it was listed
    finally:
        os.close(task)
    return states


def live_threads(pid: int) -> int:
    """How many of its threads are not dead. The first one may be, and the others go on."""
    return sum(state not in "ZX" for state in thread_states(pid).values())


def is_dead(stat: Stat) -> bool:
    """Whether nothing of it runs any more: a zombie whose threads live is alive, holds what
    it held, and can be killed."""
    return stat.state == "X" or (stat.state == "Z" and not live_threads(stat.pid))


def state_words(stat: Stat) -> str:
    """What its state means, for people."""
    if stat.state == "Z" and (count := live_threads(stat.pid)):
        return f"leader dead, {count} thread{'' if count == 1 else 's'} live"
    return STATE_WORDS.get(stat.state, f"in state {stat.state}")
