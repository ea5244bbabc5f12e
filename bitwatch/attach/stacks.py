"""Where the ranks of a run are, for who looks at it: asked now, and judged as its supervisor does.

It takes up to a second, and longer where py-spy has to help: for another thread than the screen's.
"""

from __future__ import annotations

import contextlib
import time

import msgspec

from bitwatch import small
from bitwatch.attach import gone
from bitwatch.record import codec, events, rundir
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES, View
from bitwatch.record.waits import Wait
from bitwatch.sense import spy, stacks
from bitwatch.sense.stacks import Look, Target, Thread
from bitwatch.sense.stat import STATE_WORDS
from bitwatch.supervise import blame
from bitwatch.supervise.stalls import seen_to_end, waits
from bitwatch.supervise.watch_rows import of_attempt

BEGIN_BYTES = 1 << 16  # of a rank's record: it says first who it is


class RankStacks(msgspec.Struct, frozen=True):
    """One rank. `threads` the main one first; where there are none, `why` says why."""

    wait: Wait
    pid: int | None = None
    state_words: str = ""
    wchan: str = ""
    why: str = ""
    threads: tuple[Thread, ...] = ()


class Stacks(msgspec.Struct, frozen=True):
    """`text` names who keeps the others waiting, or says why nothing can be known."""

    text: str
    t: float
    ranks: tuple[RankStacks, ...] = ()


def look(run: RunDir, view: View) -> Stacks:
    now = time.time()
    if view.state in END_STATES:
        return Stacks(f"{view.state}: no rank of attempt {view.attempt} runs any more", now)
    with contextlib.suppress(rundir.RunDirError):
        if elsewhere := rundir.is_here(run.identity()):
            return Stacks(f"its ranks cannot be asked from here: {elsewhere}", now)
    targets = foreign(view) if view.foreign else own(run, view)
    if not targets and gone.is_gone(run):
        words = f"its ranks cannot be asked: {gone.GONE}, and it says which processes they are"
        return Stacks(words, now)
    if not targets:
        return Stacks("no rank has said a word yet", now)
    looks = stacks.ask(targets)
    if not view.foreign:
        looks = [spy.dump(one) if one.why == stacks.NO_HANDLER else one for one in looks]
    found = waits(looks, view, now)
    by_rank = {one.target.rank: one for one in looks}
    told = tuple(_rank(wait, by_rank.get(wait.rank)) for wait in found)
    return Stacks(blame.sentence(view, found, now), now, told)


def own(run: RunDir, view: View) -> list[Target]:
    """The ranks of the attempt, by their own first words."""
    found = []
    for rank in range(view.ranks):
        start = _start(run, view.attempt, rank)
        if start is not None:
            path = run.stacks(view.attempt, rank)
            found.append(Target(rank, start.pid, start.starttime, path))
    return found


def foreign(view: View) -> list[Target]:
    """They are looked at, and not asked. One whose number could not be read has the only one that
    is left."""
    rows = [row for row in of_attempt(view) if row.role == "rank"]
    numbered = {row.rank for row in rows}
    left = set(range(view.ranks)) - numbered - seen_to_end(view)
    only = left.pop() if len(left) == 1 and [row.rank for row in rows].count(None) == 1 else None
    numbers = [(only if row.rank is None else row.rank, row) for row in rows]
    return [
        Target(rank, row.pid, row.starttime, None, stacks.READ_ONLY)
        for rank, row in numbers
        if rank is not None
    ]


def _start(run: RunDir, attempt: int, rank: int) -> events.ProcessStart | None:
    try:
        with small.opened(run.rank(attempt, rank)) as file:
            lines = file.read(BEGIN_BYTES).splitlines()
    except OSError:
        return None
    records = (codec.decode(line) for line in lines)
    return next((one for one in records if isinstance(one, events.ProcessStart)), None)


def _rank(wait: Wait, look: Look | None) -> RankStacks:
    if look is None:
        return RankStacks(wait)
    words = STATE_WORDS.get(look.state, f"in state {look.state}") if look.state else "ended"
    return RankStacks(wait, look.target.pid, words, look.wchan, look.why, look.threads)
