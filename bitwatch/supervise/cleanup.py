"""Ends processes: only those whose identity is proven, every signal through a pidfd.

The order is agents, ranks and workers, then trackers: a resource tracker is spared, for when
all others are gone it unlinks its semaphores and leaves by itself. TERM with CONT first, KILL
after the grace; then everything is looked at anew, until nothing is left. What has come
since the first were told to leave gets no grace: it is a child of theirs. All of it is bounded
in time, whatever the processes do, and can be done again when it was interrupted.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bitwatch.sense import processes
from bitwatch.sense.processes import Stat

Key = tuple[int, int]
TRACKER = "resource tracker"
FIRST = ("agent", "prepare")  # who would start others, or tell of their death
KILLED_S = 2.0  # until a process that was sent KILL has gone
TRACKERS_S = 1.0  # a spared one leaves by itself in milliseconds
ROUNDS = 12  # of looking anew


class Target(NamedTuple):
    """A process to be ended. `role` decides its turn."""

    key: Key
    role: str = ""


class Ended(NamedTuple):
    """`how`: SIGTERM, SIGKILL, by itself; of a survivor why it is still there."""

    key: Key
    how: str


def clean(
    find: Callable[[], Sequence[Target]],
    grace_s: float,
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[list[Ended], list[Ended]]:
    """Ends what `find` finds, again and again until it finds nothing: (ended, survivors)."""
    ended: dict[Key, str] = {}
    stuck: dict[Key, str] = {}
    owed: set[Key] | None = None  # a grace: those that were there when the first one was given
    for _ in range(ROUNDS):
        targets = [target for target in find() if target.key not in stuck]
        others = [target for target in targets if target.role != TRACKER]
        if not targets:
            break
        if others:
            if owed is None:
                owed = {target.key for target in others}
            first = [target for target in others if target.key in owed]
            how = _end(first or others, grace_s if first else 0.0, meanwhile)
            owed -= how.keys()
        else:
            how = _end_trackers(targets, meanwhile)
        for key, word in how.items():
            (ended if word in ENDINGS else stuck)[key] = word
    left = {target.key: stuck.get(target.key, "comes again and again") for target in find()}
    for key in left:  # who is still there has not ended, whatever was seen of it
        ended.pop(key, None)
    return [Ended(*item) for item in ended.items()], [Ended(*item) for item in left.items()]


ENDINGS = ("SIGTERM", "SIGKILL", "by itself")


def _end(
    targets: Sequence[Target], grace_s: float, meanwhile: Callable[[], object]
) -> dict[Key, str]:
    """How each of them ended, or why it did not."""
    order = sorted(targets, key=lambda target: target.role not in FIRST)
    order = order[: _room_for(len(order))]  # the rest is found again, and told then
    held, refused = _hold(target.key for target in order)
    how = {target.key: "by itself" for target in order if target.key not in held} | refused
    try:
        if grace_s > 0:
            refused |= _signal(held, signal.SIGTERM)
            _signal(held, signal.SIGCONT)
            before = set(held)
            _wait(held, grace_s, meanwhile)
            how |= dict.fromkeys(before - held.keys(), "SIGTERM")
        else:
            _signal(held, signal.SIGSTOP)  # all of them, before one can start another
        refused |= _signal(held, signal.SIGKILL)
        before = set(held)
        _wait(held, KILLED_S, meanwhile)
        how |= dict.fromkeys(before - held.keys(), "SIGKILL")
        return how | {key: refused.get(key) or _why_it_lives(key) for key in held}
    finally:
        for fd in held.values():
            os.close(fd)


def _end_trackers(targets: Sequence[Target], meanwhile: Callable[[], object]) -> dict[Key, str]:
    held, refused = _hold(target.key for target in targets)
    how = dict.fromkeys((target.key for target in targets), "by itself") | refused
    _wait(held, TRACKERS_S, meanwhile)
    for fd in held.values():
        os.close(fd)
    late = [target for target in targets if target.key in held]
    # Somebody who is not ended keeps its pipe open, or it hangs: nobody else needs it.
    return how | (_end(late, 0.0, meanwhile) if late else {})


def _hold(keys: Iterable[Key]) -> tuple[dict[Key, int], dict[Key, str]]:
    """A pidfd of each that lives, and why there is none of those of whom that cannot be had."""
    held: dict[Key, int] = {}
    refused: dict[Key, str] = {}
    for key in keys:
        try:
            if (fd := processes.open_pidfd(*key)) is not None:
                held[key] = fd
        except OSError as error:
            refused[key] = f"cannot be signalled ({error.strerror})"
    return held, refused


def _room_for(wanted: int) -> int:
    """How many pidfds may be held at once, at least that many if this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted > soft // 2 and soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return max(1, min(wanted, soft // 2))


def _why_it_lives(key: Key) -> str:
    stat = processes.read_stat(key[0])
    if stat is not None and stat.state == "D":
        return "waits in the kernel (state D), which no signal ends"
    return "is still there after SIGKILL"


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
        and not processes.is_dead(stat)
    ]


def end(targets: Iterable[Key], grace_s: float, meanwhile: Callable[[], object]) -> list[Key]:
    """TERM with CONT to all, KILL after `grace_s` to those that are still there. Returns
    those that survive even that (state D), or cannot be signalled. `meanwhile` is called while
    waiting, to reap."""
    held, refused = _hold(targets)
    try:
        for number in (signal.SIGTERM, signal.SIGCONT):
            _signal(held, number)
        _wait(held, grace_s, meanwhile)
        _signal(held, signal.SIGKILL)
        _wait(held, KILLED_S, meanwhile)
        return [*held, *refused]
    finally:
        for fd in held.values():
            os.close(fd)


def _signal(held: dict[Key, int], number: signal.Signals) -> dict[Key, str]:
    """Why it could not be sent, of those to whom it could not."""
    refused = {}
    for key, fd in held.items():
        try:
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            pass  # gone, and that is what is wanted
        except OSError as error:
            refused[key] = f"may not be signalled ({error.strerror})"
    return refused


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
