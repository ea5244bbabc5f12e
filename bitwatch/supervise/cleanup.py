"""Ends what an attempt has left behind: only processes whose identity is proven.

The proof here: recorded by pid and start time in one of our roles, or descending in the
session of such a process. A resource tracker is spared: when all others are gone it unlinks
its semaphores and leaves by itself. Every signal goes through a pidfd.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable

from bitwatch.sense import processes
from bitwatch.sense.processes import Stat

Key = tuple[int, int]
TRACKER = "resource tracker"


def ours(own: dict[Key, Stat], roles: dict[Key, tuple[str, int | None, int | None]]) -> list[Key]:
    """Of the processes below the supervisor, those that it may end: in a role, or in the
    session of one. Not the supervisor, not its sensor, not trackers, and not what nobody
    knows in a session of its own (a daemon that was started inside the run)."""
    killable = {"agent", "prepare", "rank", "worker", "compile worker"}
    sessions = {own[key].session for key in own if roles.get(key, ("",))[0] in killable}
    sessions.discard(os.getsid(0))
    keep = {"supervisor", "sensor", TRACKER}
    return [
        key
        for key, stat in own.items()
        if roles.get(key, ("other",))[0] not in keep
        and (roles.get(key, ("other",))[0] in killable or stat.session in sessions)
        and stat.state not in "ZX"
    ]


def end(targets: Iterable[Key], grace_s: float, meanwhile: Callable[[], object]) -> list[Key]:
    """TERM with CONT to all, KILL after `grace_s` to those that are still there. Returns
    those that survive even that (state D). `meanwhile` is called while waiting, to reap."""
    held = {key: fd for key in targets if (fd := processes.open_pidfd(*key)) is not None}
    try:
        for number in (signal.SIGTERM, signal.SIGCONT):
            _signal(held.values(), number)
        _wait(held, grace_s, meanwhile)
        _signal(held.values(), signal.SIGKILL)
        _wait(held, 2.0, meanwhile)
        return list(held)
    finally:
        for fd in held.values():
            os.close(fd)


def _signal(fds: Iterable[int], number: signal.Signals) -> None:
    for fd in fds:
        try:
            signal.pidfd_send_signal(fd, number)
        except OSError:
            pass  # gone, and that is what is wanted


def _wait(held: dict[Key, int], limit_s: float, meanwhile: Callable[[], object]) -> None:
    """Until all have ended or the limit has passed. A pidfd is readable when its process ends."""
    deadline = time.monotonic() + limit_s
    while held and (left := deadline - time.monotonic()) > 0:
        poll = select.poll()
        for fd in held.values():
            poll.register(fd, select.POLLIN)
        ended = {fd for fd, _ in poll.poll(int(1000 * min(left, 0.2)) + 1)}
        for key in [key for key, fd in held.items() if fd in ended]:
            os.close(held.pop(key))
        meanwhile()
