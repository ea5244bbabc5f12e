"""The processes of this machine: one door to what is known of them, and signals that mean
exactly one.

Signals go through pidfds that are checked against the start time: between seeing a process
and signalling it, its pid may have become another's.
"""

from __future__ import annotations

import errno
import os
import select
import signal

from bitwatch.sense.details import Details, details
from bitwatch.sense.facts import CommandLines, Facts, Tags
from bitwatch.sense.roles import role_of_command
from bitwatch.sense.scanner import EVERYTHING_S, Scanner
from bitwatch.sense.stat import (
    PAGE_MIB,
    TICKS_PER_S,
    Key,
    Stat,
    age_s,
    descendants,
    is_dead,
    live_threads,
    parse_stat,
    read_stat,
    read_uptime_s,
    scan,
    state_words,
)

__all__ = [
    "EVERYTHING_S",
    "PAGE_MIB",
    "TICKS_PER_S",
    "CommandLines",
    "Details",
    "Facts",
    "Key",
    "Scanner",
    "Stat",
    "Tags",
    "age_s",
    "descendants",
    "details",
    "is_dead",
    "live_threads",
    "open_pidfd",
    "parse_stat",
    "read_stat",
    "read_uptime_s",
    "role_of_command",
    "scan",
    "send_signal",
    "state_words",
]


def open_pidfd(pid: int, starttime: int) -> int | None:
    """A pidfd that surely means this process, or None when it is gone. Raises OSError when that
    cannot be told: no right to, no room for another file, a kernel that has none."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    except OSError:
        stat = read_stat(pid)
        if stat is None or (stat.starttime == starttime and not is_dead(stat)):
            raise
        return None  # its number is another's by now, perhaps that of a thread
    stat = read_stat(pid)
    if stat is not None and stat.starttime == starttime and not is_dead(stat):
        return fd
    ended = stat is not None or _has_ended(fd)
    os.close(fd)
    if not ended:
        raise PermissionError(errno.EACCES, "its entry in /proc cannot be read")
    return None


def _has_ended(fd: int) -> bool:
    """A pidfd is readable when its process ends."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def send_signal(pid: int, starttime: int, number: signal.Signals) -> bool:
    """Signals exactly this process; whether it was there to be signalled, and could be."""
    try:
        fd = open_pidfd(pid, starttime)
    except OSError:
        return False
    if fd is None:
        return False
    try:
        signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
