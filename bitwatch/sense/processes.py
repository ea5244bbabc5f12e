"""The processes of this machine: one door to what is known of them, and signals that mean
exactly one.

Signals go through pidfds that are checked against the start time: between seeing a process
and signalling it, its pid may have become another's.
"""

from __future__ import annotations

import os
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
    """A pidfd that surely means this process, or None when it is gone."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    stat = read_stat(pid)
    if stat is None or stat.starttime != starttime or is_dead(stat):
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
