"""What ranks could not write into their records: what it changes, and how it is said. Pure."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from bitwatch.record import events

if TYPE_CHECKING:
    from bitwatch.record.state import RankState

ALERT = "telemetry-stale"
NAMED = 8  # ranks, in a sentence and in the evidence
UNKNOWN = "the reason is not known"

Words = Mapping[int, events.Unwritten]


def joined(rank: RankState, beside: RankState | None, word: events.Unwritten | None) -> RankState:
    """A rank with the newest of what it could not write. It is told for as long as the record
    lacks it, so nothing in the record is newer."""
    if beside is None or word is None:
        return rank
    step = beside.step
    if step is None or (rank.step is not None and rank.step.step >= step.step):
        step = rank.step
    return msgspec.structs.replace(
        rank,
        pid=rank.pid or beside.pid,
        starttime=rank.starttime or beside.starttime,
        started=rank.started or beside.started,
        updated=max(rank.updated, beside.updated, word.newest),
        phase=beside.phase or rank.phase,
        model=beside.model or rank.model,
        step=step,
        first_step=rank.first_step or beside.first_step,
        epoch=beside.epoch or rank.epoch,
        ended=beside.ended or rank.ended,
        notes=[*rank.notes, *beside.notes],
        evaluations=[*rank.evaluations, *beside.evaluations],
        checkpoints=[*rank.checkpoints, *beside.checkpoints],
    )


def sentence(words: Words, ranks: int, state: events.State) -> str:
    """Empty where everything was written."""
    if not words:
        return ""
    who, why = _who(list(words)), _why(words)
    if state in ("done", "failed", "stopped", "lost"):
        lost = sum(word.lost for word in words.values())
        return f"{lost:,} record{'s' * (lost > 1)} of {who} could not be written ({why})"
    many = len(words) > 1
    text = f"{who} cannot write {'their' if many else 'its'} records ({why})"
    if many and len(words) == ranks:
        text = f"no rank can write its records ({why})"
    return text + ("; the training goes on" if state == "running" else "")


def alerts(
    words: Words, steps: Mapping[int, int], ranks: int, state: events.State, attempt: int
) -> Iterator[events.Alert]:
    """While it lasts. `steps`: how far each rank has come."""
    if not words:
        return
    named = sorted(words)[:NAMED]
    evidence = [
        f"rank {rank}: {words[rank].lost:,} not written since {_clock(words[rank].t)}"
        + (f"; it is at step {steps[rank]:,}" if rank in steps else "")
        for rank in named
    ]
    if len(words) > len(named):
        evidence.append(f"and {len(words) - len(named)} more ranks")
    yield events.Alert(
        id=ALERT,
        severity="warning",
        text=sentence(words, ranks, state),
        evidence=[*evidence, "only the newest of what they tell is known; curves stand still"],
        next=_next(words),
        attempt=attempt,
        t=min(word.t for word in words.values()),
        m=0.0,
    )


def _next(words: Words) -> str:
    if any(word.error == os.strerror(errno.EFBIG) for word in words.values()):
        return (
            "no file may grow beyond the limit that it was launched under: stop it, and resume it "
            "from a shell with a higher one (ulimit -f); its checkpoints are not part of this"
        )
    return (
        "make room where the run's folder is, or have the quota raised: they write again by "
        "themselves then; its checkpoints are not part of this"
    )


def _who(ranks: list[int]) -> str:
    names = [str(rank) for rank in sorted(ranks)]
    if len(names) > NAMED:
        return f"{len(names)} ranks"
    listed = ", ".join(names[:-1])
    return f"ranks {listed} and {names[-1]}" if listed else f"rank {names[0]}"


def _why(words: Words) -> str:
    return "; ".join(sorted({word.error for word in words.values() if word.error})) or UNKNOWN


def _clock(t: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(t))
