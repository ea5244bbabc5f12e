"""Alerts about ranks that take no step, and about one that keeps the others waiting. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bitwatch.record import events, readers
from bitwatch.record.recent import Behind
from bitwatch.record.view import View
from bitwatch.supervise import blame
from bitwatch.text import clock

RANKS_TOLD = 16  # in the evidence
FRAMES_TOLD = 9  # of each


def stalled(view: View, now: float) -> Iterator[events.Alert]:
    if view.state != "stalled":
        return
    stuck = view.stuck
    yield events.Alert(
        id="stalled",
        severity="warning",
        text=_since(view) + (f": {stuck.text}" if stuck and stuck.text else ""),
        evidence=[
            f"phase {view.phase or 'unknown'}, last step {view.step:,}",
            *_ranks(view, stuck.waits if stuck else []),
        ],
        next=_next(view, stuck.waits if stuck else [], now),
    )


def _since(view: View) -> str:
    if view.last is None:
        return "no step yet: the ranks have not begun to train"
    return f"no step since {clock(view.last.t)}"


def _ranks(view: View, waits: list[events.Wait]) -> list[str]:
    """A line each: what it does, how far it came, and the frames of its main thread."""
    lines = []
    for wait in waits[:RANKS_TOLD]:
        step = view.rank_steps.get(wait.rank)
        where = f", {wait.where}" if wait.where else ""
        last = f"; last step {step.step}" if step else ""
        frames = " < ".join(wait.evidence[:FRAMES_TOLD])
        lines.append(f"rank {wait.rank}: {wait.kind}{where}{last}; {frames}")
    if len(waits) > RANKS_TOLD:
        lines.append(f"and {len(waits) - RANKS_TOLD} more ranks")
    return lines


def _next(view: View, waits: list[events.Wait], now: float) -> str:
    causes = blame.culprits(waits)
    run = view.run or "RUN"
    if not causes:
        if any(wait.kind == "collective" for wait in waits):
            return (
                "all ranks wait for each other: key s shows where; if that does not change, stop it "
                f"(bitwatch stop {run}), it goes on from its last checkpoint"
            )
        return f"key s shows where each rank is; bitwatch logs {run}"
    first = causes[0]
    pids = {row.rank: row.pid for row in view.processes if row.role == "rank"}
    pid = pids.get(first.rank)
    match first.kind:
        case "stopped":
            return f"kill -CONT {pid or 'its pid'} lets rank {first.rank} go on"
        case "ended":
            return f"bitwatch logs {run} --rank {first.rank} says why it ended"
        case "kernel":
            return "look at the disk, the network drive or the driver that the kernel waits for"
        case "data":
            return _next_of_data(view, first.rank, now)
        case "checkpoint":
            return "look at the disk that checkpoints are written to (checkpoint.folder)"
    return f"key s shows where rank {first.rank} is; bitwatch logs {run} --rank {first.rank}"


def _next_of_data(view: View, rank: int, now: float) -> str:
    for (of, worker), judged in readers.judged(view, now).items():
        if of == rank and judged.reader and judged.state == "stuck":
            letters = {row.key: row.state for row in view.processes}
            key = judged.reader.pid, judged.reader.starttime
            if letters.get(key, "") in readers.HALTED:
                return f"kill -CONT {key[0]} lets worker {worker} of rank {rank} go on"
            shard = readers.shard_of(judged.reader) or "the text"
            return (
                f"look at the disk or the network that {shard} is on; the run goes on by itself "
                "when the read returns"
            )
    return "look at the source of the text: the panel of readers (key 2) has what each of them does"


def straggler(view: View, behind: Behind | None) -> Iterator[events.Alert]:
    """A rank whose own work takes longer than that of the others, step after step."""
    if behind is None or view.state != "running":
        return
    data = "; most of that is waiting for its text" if behind.is_data else ""
    yield events.Alert(
        id="straggler",
        severity="warning",
        text=f"rank {behind.rank} keeps the others waiting: its own part of a step takes more than "
        f"1.5 times as long as that of rank {behind.best}{data}",
        evidence=[
            f"rank {rank}: {own.own_s:.3g} s of a step of {own.step_s:.3g} s are its own, "
            f"{own.data_s:.3g} s of them for text (medians of its recent step records)"
            for rank, own in behind.told.items()
        ],
        next="look at its readers: key 2"
        if behind.is_data
        else f"look at what else runs on its GPU or its processors: key 1 and key 4, rank {behind.rank}",
    )
