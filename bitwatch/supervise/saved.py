"""What the checkpoints of an attempt say of its end, where no rank could write a last word: a disk
or a quota that is full for the records need not be so where checkpoints go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from bitwatch import small
from bitwatch.record import events, stops
from bitwatch.record.state import RunState
from bitwatch.supervise import stopping
from bitwatch.supervise.reaper import Exit

MANIFEST = "step-*/manifest.json"  # written last: what has one is whole


class Saved(NamedTuple):
    step: int
    t: float


def newest(state: RunState, attempt: int) -> Saved | None:
    """The newest whole checkpoint that this attempt has written. One of a higher step may be there
    from before, when it was damaged and the attempt went on from an earlier one. None where they
    cannot be looked at: how the attempt ended is written down all the same."""
    known = state.journal.attempts.get(attempt)
    if known is None or known.started is None or not known.started.checkpoints:
        return None
    try:
        manifests = list(Path(known.started.checkpoints).glob(MANIFEST))
    except OSError:
        return None
    for path in sorted(manifests, key=_step, reverse=True):
        created = _created(path)
        if _step(path) >= 0 and created is not None and created >= known.started.t:
            return Saved(_step(path), created)
    return None


def end(
    state: RunState, attempt: int, agent: Exit | None, asked: stopping.Stop | None = None
) -> tuple[events.EndState, str] | None:
    """How it ended: all ranks save before they leave without a failure, which torchrun's exit
    status tells; where that is not known, somebody must have asked them to stop before (`asked`, or
    by the journal). None when nothing says so."""
    found = newest(state, attempt)
    if found is None or any(rank.ended for rank in state.ranks_of(attempt).values()):
        return None
    started = state.journal.attempts[attempt].started
    without = "no rank could write how it ended"
    if started and found.step == started.steps:
        return "done", f"{without}; its checkpoint is of the last step"
    if agent is not None and agent.status == 0:
        return "stopped", f"{without}; they left at step {found.step:,}{stops.WHOLE}"
    told = [a.t for a in state.journal.actions if (a.name, a.on) == ("stop", f"attempt {attempt}")]
    asked_t = asked.t if asked and asked.t else min(told, default=None)
    unknown = agent is None or (agent.status is None and agent.signal is None)
    if unknown and asked_t is not None and found.t >= asked_t:
        return "stopped", f"{without}; step {found.step:,} was saved after it was asked to stop"
    return None


def _created(manifest: Path) -> float | None:
    try:
        return float(json.loads(small.read(manifest))["created"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _step(manifest: Path) -> int:
    """-1 for a folder that is not named by a step."""
    name = manifest.parent.name.removeprefix("step-")
    return int(name) if name.isdecimal() and name.isascii() else -1
