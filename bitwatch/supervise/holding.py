"""Who holds the lock of a run: its supervisor, or somebody who is only writing a few lines into
the record (a cleanup, say) and is soon done."""

from __future__ import annotations

import time
from pathlib import Path

from bitwatch.record.follow import lives
from bitwatch.record.rundir import Lock, LockHeld, RunDir

SUPERVISOR = "bitwatch.supervise.supervisor"  # the module; a process of it says so
WRITING_S = 5.0  # who closes the record of a long run reads it first


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
