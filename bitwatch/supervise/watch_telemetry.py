"""The alert that a rank says nothing any more while the others do: what the screen shows of it is
old. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.text import clock

RECORDS = 5  # of rank 0, that a rank has not followed
LATE_S = 60.0  # and for so long
NAMED = 8


def stale(view: View, now: float) -> Iterator[events.Alert]:
    """Ranks take every step together: who tells of none while others tell of five works, but
    cannot write. Who has ended, and a training of which only one file is known, is not meant."""
    if view.foreign or view.state != "running" or len(view.recent) < RECORDS:
        return
    telling = max(view.rank_steps.values(), key=lambda step: step.t, default=None)
    if telling is None or now - telling.t > LATE_S:
        return  # then nobody moves, which is another alert
    limit = view.recent[-RECORDS]
    late: dict[int, events.Step | None] = {}
    for rank in range(view.ranks):
        newest = view.rank_steps.get(rank)
        if rank in view.last_words or rank == telling.rank:
            continue
        since = newest.t if newest else view.recent[0].t
        behind = newest is None or newest.step < limit.step
        if behind and telling.t - since > LATE_S:
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
