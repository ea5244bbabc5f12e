"""Who holds the lock of a run: its supervisor, or somebody who is only writing a few lines into
the record (a cleanup, say) and is soon done."""

from __future__ import annotations

import time
from pathlib import Path

from bitwatch.record.follow import Follower, lives
from bitwatch.record.rundir import Lock, LockHeld, RunDir

SUPERVISOR = "bitwatch.supervise.supervisor"  # the module; a process of it says so
WRITING_S = 5.0  # who closes the record of a long run reads it first
CLOSING_S = 15.0  # after the end is on record: the sensor is ended, the user's command waited for
LOOK_S = 0.02


def lock(run: RunDir) -> Lock:
    """Waits for whoever is only writing. Raises LockHeld when a supervisor holds the run, or
    somebody else does for too long, RunDirError when there can be no lock."""
    deadline = time.monotonic() + WRITING_S
    while True:
        try:
            return Lock(run)
        except LockHeld:
            if task_of_supervisor(run) or time.monotonic() > deadline:
                raise


def task_of_supervisor(run: RunDir) -> tuple[int, str] | None:
    """The attempt that the supervisor which holds the run began with, and what it was to do with
    it (launch, adopt or relaunch); None when whoever holds it is no supervisor, or nobody does."""
    holder = run.holder()
    if holder is None or not run.lock_is_held() or not lives(holder.pid, holder.starttime):
        return None
    try:
        command = Path(f"/proc/{holder.pid}/cmdline").read_bytes().decode(errors="replace")
        words = command.split("\0")
        after = words[words.index(SUPERVISOR) + 1 :]  # the directory, the attempt, what to do
        return int(after[1]), after[2]
    except (OSError, ValueError, IndexError):
        return None


def is_free(run: RunDir) -> bool:
    """Whether nobody holds the run. A supervisor that has just written down how its attempt ended
    is about to let go, and is waited for; one whose attempt goes on, or that begins another, is
    not."""
    deadline = time.monotonic() + CLOSING_S
    while task_of_supervisor(run) and _has_ended(run) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return not run.lock_is_held()


def _has_ended(run: RunDir) -> bool:
    follower = Follower(run, glance=True)
    follower.poll()
    newest = follower.state.journal.attempts.get(follower.state.newest_attempt())
    return newest is not None and newest.ended is not None
