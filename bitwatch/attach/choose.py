"""Which runs there are to attach to: the live ones, and all with how they stand; and which
trainings that bitwatch did not start.

A live run is found by its lock in a fraction of a millisecond; only a run without a word of
its end is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bitwatch import listing
from bitwatch.attach import foreign
from bitwatch.record import events, rundir
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES
from bitwatch.sense import training
from bitwatch.sense.training import Training
from bitwatch.sense.training_facts import TrainingFacts
from bitwatch.supervise import begin

MANY = 200  # runs that a picker lists
PART = 20  # listed at a time, so that the first are there at once
REFRESH_S = 2.0


class Choice(msgspec.Struct, frozen=True):
    """A run."""

    run: RunDir
    state: events.State
    step: int = 0
    steps: int = 0
    loss: float | None = None
    age_s: float | None = None

    @property
    def id(self) -> str:
        return self.run.id

    def open(self) -> RunDir:
        return self.run


class Offered(msgspec.Struct, frozen=True):
    """A training that runs here, and that bitwatch did not start. `open` makes a run on record
    of it, or raises RunDirError."""

    home: Path
    training: Training

    @property
    def id(self) -> str:
        return f"pid {self.training.root[0]}, {self.training.root[1]}"

    def open(self) -> RunDir:
        return foreign.of_training(self.home, self.training)


def trainings(facts: TrainingFacts | None = None) -> list[Training]:
    """Those of this user that bitwatch did not start, newest first."""
    return training.all_here(facts)


def live(home: Path) -> list[RunDir]:
    """Runs that something of lives, newest first."""
    return [run for run in rundir.list_runs(home) if is_live(run)]


def is_live(run: RunDir) -> bool:
    if run.lock_is_held():
        return True
    attempts = run.attempts()
    return bool(attempts) and not run.exit(attempts[-1]).exists() and begin.still_lives(run)


def growing(home: Path) -> Iterator[list[Choice | Offered]]:
    """Trainings that are nobody's run yet, then all runs, live first, each group newest first:
    first in parts, so that the newest are there at once, then again and again. What has ended is
    read once."""
    ended: dict[str, Choice] = {}
    facts = TrainingFacts()
    offered: list[Offered] = []
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
                yield [*in_order(found)]
        first = False
        yield [*offered, *in_order(found)]
        watched = foreign.roots(one.run for one in found if one.state not in END_STATES)
        offered = [Offered(home, one) for one in trainings(facts) if one.root not in watched]
        yield [*offered, *in_order(found)]
        time.sleep(REFRESH_S)


def earlier(than: RunDir) -> Iterator[tuple[list[Choice], bool]]:
    """The other runs of a run's home, newest first, in parts; and whether these are all."""
    runs = [run for run in rundir.list_runs(than.path.parent) if run.id != than.id][:MANY]
    found: list[Choice] = []
    for at, run in enumerate(runs, start=1):
        found.append(choice(run))
        if at % PART == 0:
            yield list(found), False
    yield found, True


def in_order(found: list[Choice]) -> list[Choice]:
    return sorted(found, key=lambda one: one.state in END_STATES)


def choice(run: RunDir) -> Choice:
    row = listing.row(run)
    age_s = max(0.0, time.time() - row.updated) if row.updated else None
    return Choice(run, row.state, row.step, row.steps, row.loss, age_s)
