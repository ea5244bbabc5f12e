"""What ended attempts of a run have left alive, and its end.

Only what the journal recorded by pid and start time, in a role that bitwatch itself gave out,
of an attempt that has ended: a live attempt, ourselves, our ancestors, another user's process
and another pid namespace are never touched.
"""

from __future__ import annotations

import os
import time

from bitwatch.record import events
from bitwatch.record.follow import lives
from bitwatch.record.journal import JournalWriter
from bitwatch.record.state import RunState
from bitwatch.sense.facts import owner
from bitwatch.supervise import cleanup
from bitwatch.supervise.evidence import ancestors

LOOK_S = 2.0
ROLES = {"agent", "prepare", "rank", "worker", "compile worker"}


def find(state: RunState, ended: set[int]) -> list[events.ProcessStart]:
    """Live processes that the journal recorded in the attempts `ended`."""
    journal = state.journal
    return [
        start
        for key in journal.processes.keys() - journal.exits.keys()
        if (start := journal.processes[key]).role in ROLES
        and start.attempt in ended
        and lives(*key)
        and owner(start.pid) == os.getuid()
    ]


def ended_attempts(state: RunState) -> set[int]:
    """Those of which the record says so, and all before the newest: a new one is launched
    only when nothing of the run lives."""
    closed = {number for number, attempt in state.journal.attempts.items() if attempt.ended}
    return closed | set(range(1, state.newest_attempt()))


class Before:
    """What attempts before this one have left, for who asks every second: it is looked for less
    often, and what has ended since is left out."""

    def __init__(self, attempt: int) -> None:
        self._attempt = attempt
        self._found: tuple[events.ProcessStart, ...] = ()
        self._next = 0.0

    def look(self, state: RunState) -> tuple[events.ProcessStart, ...]:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LOOK_S
            self._found = tuple(find(state, ended_attempts(state) - {self._attempt}))
        self._found = tuple(start for start in self._found if lives(start.pid, start.starttime))
        return self._found


def end(state: RunState, ended: set[int], journal: JournalWriter, by: str, grace_s: float) -> str:
    """Ends them, tells the journal, and says in words what was done. For the one writer."""
    spared = ancestors()
    found = [start for start in find(state, ended) if start.pid not in spared]
    if not found:
        return "nothing is left of ended attempts"
    left = cleanup.end([(p.pid, p.starttime) for p in found], grace_s, lambda: None)
    gone = [p for p in found if (p.pid, p.starttime) not in left]
    text = f"ended {_names(gone)}" if gone else "ended nothing"
    if left:
        text += f"; {', '.join(str(pid) for pid, _ in left)} cannot be ended"
    attempts = ", ".join(str(n) for n in sorted({p.attempt for p in found}))
    journal.write(events.Action(name="clean", by=by, on=f"attempt {attempts}", result=text))
    return text


def _names(found: list[events.ProcessStart]) -> str:
    def name(start: events.ProcessStart) -> str:
        of = "" if start.rank is None else f" {start.rank}"
        if start.role == "worker":
            of = f" {start.worker} of rank {start.rank}"
        return f"{start.role}{of} (pid {start.pid})"

    shown = [name(start) for start in found[:4]]
    more = [f"{len(found) - 4} more"] if len(found) > 4 else []
    return ", ".join(shown + more)
