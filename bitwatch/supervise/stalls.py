"""Where the ranks of an attempt that takes no step wait: asked by its supervisor, in steps of its
loop, and written to the journal when it has changed."""

from __future__ import annotations

import time
from collections.abc import Callable

from bitwatch.record.events import Stuck
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.record.state import RunState
from bitwatch.record.view import View
from bitwatch.record.waits import Wait
from bitwatch.sense.places import wait_of
from bitwatch.sense.stacks import ENDED, Asking, Look, Target
from bitwatch.supervise import blame

AGAIN_S = 30.0  # between two questions, while nothing moves
NOT_BEGUN = "not begun"


def targets(run: RunDir, state: RunState, attempt: int) -> list[Target]:
    """The ranks that have said who they are."""
    return [
        Target(number, rank.pid, rank.starttime, run.stacks(attempt, number))
        for number, rank in state.ranks_of(attempt).items()
        if rank.pid
    ]


def waits(looks: list[Look], view: View, now: float) -> list[Wait]:
    """Of all ranks, also of those of which there is no word. Of a training that bitwatch did not
    start the others may be on another machine: only those have ended that were seen to end."""
    found = {look.target.rank: wait_of(look, _still_s(view, look, now)) for look in looks}
    if view.foreign:
        for rank in seen_to_end(view) - set(found):
            found[rank] = Wait(rank, "ended", "", None, [ENDED])
    else:
        for rank in set(range(view.ranks)) - set(found):
            found[rank] = Wait(rank, "ended", NOT_BEGUN, None, ["it has not said a word"])
    return [found[rank] for rank in sorted(found)]


def seen_to_end(view: View) -> set[int]:
    """The ranks of the attempt whose end is in the journal."""
    return {exit.rank for exit in view.exits if exit.rank is not None}


def _still_s(view: View, look: Look, now: float) -> float | None:
    """Since the rank's last step record: it waits for so long, or a little less."""
    step = view.rank_steps.get(look.target.rank)
    return max(0.0, now - step.t) if step else None


class Stalls:
    """`look` never waits: what it asks at one call is read at a later one. It returns whether it
    has written something. `ranks`: whom to look at in a picture, of a training that is not asked."""

    def __init__(
        self,
        run: RunDir,
        journal: JournalWriter,
        attempt: int,
        ranks: Callable[[View], list[Target]] | None = None,
    ) -> None:
        self._run = run
        self._ranks = ranks
        self._journal = journal
        self._attempt = attempt
        self._asking: Asking | None = None
        self._next_m = 0.0
        self._said: tuple[object, ...] = ()

    def look(self, view: View, state: RunState, now: float) -> bool:
        if view.state != "stalled":
            self._asking, self._next_m = None, 0.0
        elif self._asking is not None:
            if self._asking.is_over():
                looks, self._asking = self._asking.looks(), None
                return self._tell(waits(looks, view, now), view, now)
        elif time.monotonic() >= self._next_m:
            self._next_m = time.monotonic() + AGAIN_S
            if self._ranks is not None:
                asked = self._ranks(view)
            else:
                asked = targets(self._run, state, self._attempt)
            self._asking = Asking(asked) if asked else None
        return False

    def _tell(self, found: list[Wait], view: View, now: float) -> bool:
        text = blame.sentence(view, found, now)
        # Another line of the same function is no news; that it was found again after the run
        # has moved is.
        places = [(wait.rank, wait.kind, wait.where.partition(" (")[0]) for wait in found]
        said = (text, tuple(places), view.step)
        if said == self._said and view.stuck is not None:
            return False
        self._said = said
        return self._journal.write(Stuck(attempt=self._attempt, text=text, waits=found))
