"""Which runs there are to attach to: the live ones, and all with how they stand.

A live run is found by its lock in a fraction of a millisecond; only a run without a word of
its end is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bitwatch import listing
from bitwatch.record import events, rundir
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES
from bitwatch.supervise import begin

MANY = 200  # runs that a picker lists
PART = 20  # listed at a time, so that the first are there at once
REFRESH_S = 2.0


class Choice(msgspec.Struct, frozen=True):
    run: RunDir
    state: events.State
    step: int = 0
    steps: int = 0
    loss: float | None = None
    age_s: float | None = None


def live(home: Path) -> list[RunDir]:
    """Runs that something of lives, newest first."""
    return [run for run in rundir.list_runs(home) if is_live(run)]


def is_live(run: RunDir) -> bool:
    if run.lock_is_held():
        return True
    attempts = run.attempts()
    return bool(attempts) and not run.exit(attempts[-1]).exists() and begin.still_lives(run)


def growing(home: Path) -> Iterator[list[Choice]]:
    """All runs, live first, each group newest first: first in parts, so that the newest are
    there at once, then again and again. What has ended is read once."""
    ended: dict[str, Choice] = {}
    first = True
    while True:
        runs = rundir.list_runs(home)[:MANY]
        found: list[Choice] = []
        for at, run in enumerate(runs, start=1):
            one = ended.get(run.id) or choice(run)
            if one.state in END_STATES and not run.lock_is_held():
                ended[run.id] = one
            else:
                ended.pop(run.id, None)
            found.append(one)
            if first and at % PART == 0:
                yield in_order(found)
        first = False
        yield in_order(found)
        time.sleep(REFRESH_S)


def in_order(found: list[Choice]) -> list[Choice]:
    return sorted(found, key=lambda one: one.state in END_STATES)


def choice(run: RunDir) -> Choice:
    row = listing.row(run)
    age_s = max(0.0, time.time() - row.updated) if row.updated else None
    return Choice(run, row.state, row.step, row.steps, row.loss, age_s)
