"""The one place where children are waited for, so that no exit status is ever lost.

The supervisor is a subreaper: orphans of the run become its children. It looks with WNOWAIT
first, so that the start time of the dead is still readable, then reaps.
"""

from __future__ import annotations

import os
import signal as signals
from typing import NamedTuple

from bitwatch.record.follow import lives
from bitwatch.sense import processes


class Exit(NamedTuple):
    """`status` is the exit code, or None when a signal ended it (then `signal` is its number)."""

    pid: int
    starttime: int
    status: int | None
    signal: int | None


def reap() -> list[Exit]:
    """Every child that has ended and was not reaped yet. Never waits."""
    ended: list[Exit] = []
    while True:
        try:
            info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return ended
        if info is None:
            return ended
        stat = processes.read_stat(info.si_pid)
        os.waitpid(info.si_pid, 0)
        exited = info.si_code == os.CLD_EXITED
        ended.append(
            Exit(
                pid=info.si_pid,
                starttime=stat.starttime if stat else 0,
                status=info.si_status if exited else None,
                signal=None if exited else info.si_status,
            )
        )


def runs(pid: int, starttime: int) -> bool:
    """Whether it has not ended yet. Of a child the kernel's word counts: killed, its first
    thread is a zombie for an instant while the others still go, and no status is there yet."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return lives(pid, starttime)


def describe(ended: Exit | None) -> str:
    """How a process ended, in words."""
    if ended is None:
        return "exit status unknown"
    return (
        f"exit code {ended.status}" if ended.signal is None else f"killed by {name(ended.signal)}"
    )


def name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
