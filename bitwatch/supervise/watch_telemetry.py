"""The alert that a rank says nothing any more while the others do: what the screen shows of it is
old. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bitwatch.record import events, unwritten
from bitwatch.record.view import View
from bitwatch.text import clock

RECORDS = 5  # of others, that a rank has not followed
LATE_S = 60.0  # and for so long
LATE_RECORDS = 2.0  # or for as long as so many records take
NAMED = 8
STATES = ("starting", "running", "stalled")  # as rank 0 has it, which may be the one that is silent


def stale(view: View, now: float) -> Iterator[events.Alert]:
    """Ranks take every step together: who tells of none while another one tells of five works, but
    cannot write. Who has ended, and a training of which only one file is known, is not meant."""
    if view.foreign or view.state not in STATES:
        return
    if view.unwritten:  # these say so themselves
        steps = {rank: step.step for rank, step in view.rank_steps.items()}
        yield from unwritten.alerts(view.unwritten, steps, view.ranks, view.state, view.attempt)
        return
    telling = max(view.rank_steps.values(), key=lambda step: (step.step, step.t), default=None)
    if telling is None:
        return
    every = max(1, view.log_every)
    late_s = max(LATE_S, LATE_RECORDS * every * (telling.step_s or 0.0))
    if now - telling.t > late_s:
        return  # then nobody moves, or all evaluate, save or compile
    began = view.rank_firsts.get(telling.rank, telling)
    late: dict[int, events.Step | None] = {}
    for rank in range(view.ranks):
        if rank in view.last_words or rank == telling.rank:
            continue
        newest = view.rank_steps.get(rank)
        behind = telling.step - (newest or began).step >= RECORDS * every
        since = newest.t if newest else (view.attempt_started or began.t)
        if behind and telling.t - since > late_s:
            late[rank] = newest
    if not late:
        return
    names = ", ".join(str(rank) for rank in list(late)[:NAMED]) + (
        ", ..." if len(late) > NAMED else ""
    )
    first = next(iter(late))
    yield events.Alert(
        id="telemetry-stale",
        severity="warning",
        text=f"rank{'s' if len(late) > 1 else ''} {names} no longer write{'s' * (len(late) == 1)} "
        "records, though the others do: what the screen shows of them is old",
        evidence=[
            f"rank {rank}: "
            + (
                f"last record of step {step.step:,}, at {clock(step.t)}"
                if step
                else "no record of a step yet"
            )
            for rank, step in list(late.items())[:NAMED]
        ]
        + [f"rank {telling.rank}: step {telling.step:,}, at {clock(telling.t)}"],
        next=f"see whether its disk is full or its file is gone: bitwatch logs {view.run or 'RUN'} "
        f"--rank {first}",
    )
