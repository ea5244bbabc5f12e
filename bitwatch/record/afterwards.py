"""What is wrong that no supervisor could say: what an ended attempt has left (which that of a later
one can say too), a relaunch that failed, and that the supervisor itself is gone, or says nothing
any more. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bitwatch.record import events, unwritten
from bitwatch.record.state import AttemptState, RunState

if TYPE_CHECKING:
    from bitwatch.record.follow import Liveness

RELAUNCH_FAILED = "relaunch-failed"  # an action and an alert
LEFTOVERS = "leftovers"
LEFT_OF_WATCHED = "left-of-watched"
SUPERVISOR_GONE = "supervisor-gone"
STALE_S = 60.0  # a supervisor measures every second or so
SHOWN = 8  # of them, in the evidence


class Left(NamedTuple):
    """One process of an ended attempt. `run` names another run, and is empty for this one's."""

    pid: int
    role: str
    rank: int | None
    attempt: int
    run: str = ""
    proof: str = "recorded"


def alerts(
    state: RunState,
    number: int,
    ended: tuple[events.State, str],
    liveness: Liveness,
    now: float,
) -> list[events.Alert]:
    """`number` is the newest attempt, `ended` its state and why."""
    return [
        *leftovers(recorded(liveness.leftovers), number, now),
        *_relaunch(state, number, ended),
        *_unwatched(state, number, liveness),
        *(
            _unwritten(state, number, ended[0])
            or _unmeasured(state, number, ended[0], liveness, now)
        ),
    ]


def recorded(starts: Sequence[events.ProcessStart]) -> list[Left]:
    found = [Left(start.pid, start.role, start.rank, start.attempt) for start in starts]
    return sorted(found, key=lambda one: (one.attempt, one.pid))


def leftovers(
    found: Sequence[Left], number: int, now: float, *, over: bool = True
) -> Iterator[events.Alert]:
    """The alert about all that `c` would end, said while attempt `number` is the newest. Where its
    folder is gone nobody has written that the attempt is `over`."""
    if not found:
        return
    attempts = sorted({one.attempt for one in found if not one.run})
    theirs = [one.run for one in found if one.run]
    runs = len(set(theirs))
    other = "another run" if runs == 1 else f"{runs} other runs"
    of = f"attempt{'s' if attempts[1:] else ''} {', '.join(map(str, attempts))}"
    if theirs:
        of = "attempts" if attempts else f"attempts of {other}"
    more = f", {len(theirs)} of them of {other}" if theirs and attempts else ""
    many, are = ("1 process", "is") if len(found) == 1 else (f"{len(found):,} processes", "are")
    evidence = [
        f"pid {one.pid}: {one.role}{'' if one.rank is None else f' of rank {one.rank}'}, "
        f"of attempt {one.attempt}{f' of run {one.run}' if one.run else ''} (proof: {one.proof})"
        for one in found[:SHOWN]
    ]
    if len(found) > SHOWN:
        evidence.append(f"and {len(found) - SHOWN:,} more")
    yield events.Alert(
        id=LEFTOVERS,
        severity="error",
        text=f"{many} of {'ended ' if over else ''}{of} {are} still there{more}",
        evidence=evidence,
        next="c cleans them up",
        attempt=number,
        t=now,
        m=0.0,
    )


def left_of_watched(found: Sequence[Left], number: int, now: float) -> Iterator[events.Alert]:
    """The same of a training that bitwatch did not start: the processes are somebody's, and a
    person decides."""
    for alert in leftovers(found, number, now):
        many = "1 process" if len(found) == 1 else f"{len(found):,} processes"
        yield events.Alert(
            id=LEFT_OF_WATCHED,
            severity="warning",
            text=f"{many} of this training live on after its launcher",
            evidence=alert.evidence,
            next="key c lists them, and asks before it ends them",
            attempt=number,
            t=now,
            m=0.0,
        )


def _unwatched(state: RunState, number: int, liveness: Liveness) -> Iterator[events.Alert]:
    """Ranks go on, and nobody looks after them."""
    if not _is_open(state, number) or liveness.supervisor or liveness.elsewhere:
        return
    if not (liveness.agent or liveness.ranks):
        return
    seen = max(state.journal.updated, state.samples.processes.t if state.samples.processes else 0.0)
    yield events.Alert(
        id=SUPERVISOR_GONE,
        severity="warning",
        text="supervisor gone; the ranks go on, and nothing watches or records them",
        evidence=[f"the last that it wrote was at {_clock(seen)}"] if seen else [],
        next="key c brings another one, and so does bitwatch attach, anew; key S stops the run "
        "with a checkpoint",
        attempt=number,
        t=seen,
        m=0.0,
    )


def _unwritten(state: RunState, number: int, word: events.State) -> list[events.Alert]:
    """Ranks that cannot write. A supervisor finds it too, and may be as little able to say so."""
    if not _is_open(state, number) or word in ("done", "failed", "stopped", "lost"):
        return []
    attempt = state.journal.attempts.get(number, AttemptState())
    ranks = state.ranks_of(number)
    steps = {rank: told.step.step for rank, told in ranks.items() if told.step}
    expected = attempt.started.ranks if attempt.started else len(ranks)
    return list(unwritten.alerts(state.unwritten_of(number), steps, expected, word, number))


def _unmeasured(
    state: RunState, number: int, word: events.State, liveness: Liveness, now: float
) -> Iterator[events.Alert]:
    """It holds the run and measures nothing: halted, or it cannot write."""
    sample = state.samples.processes
    if not _is_open(state, number) or not liveness.supervisor or sample is None:
        return
    if word == "stopping" or sample.attempt != number or now - sample.t <= STALE_S:
        return
    yield events.Alert(
        id="telemetry-stale",
        severity="warning",
        text=f"nothing has been measured since {_clock(sample.t)}: processes, GPUs and alerts are as "
        "they were then",
        evidence=["its supervisor is there and holds the run, and writes no samples"],
        next="see in panel 4 whether the supervisor is stopped (kill -CONT lets it go on), and "
        "whether the disk of the run is full",
        attempt=number,
        t=sample.t,
        m=0.0,
    )


def _is_open(state: RunState, number: int) -> bool:
    """Whether it is an attempt of ours whose end is not on record."""
    run, attempt = state.journal.run, state.journal.attempts.get(number)
    ours = run is None or not run.foreign
    return ours and bool(number) and (attempt is None or attempt.ended is None)


def _relaunch(
    state: RunState, number: int, ended: tuple[events.State, str]
) -> Iterator[events.Alert]:
    """A relaunch that made no attempt, or one that took no step."""
    attempt = state.journal.attempts.get(number, AttemptState())
    word, cause = ended
    if attempt.ended is None and word not in ("failed", "lost"):
        return
    kept = _kept(state)
    at = attempt.ended.t if attempt.ended else 0.0
    since = [a for a in state.journal.actions if a.name == RELAUNCH_FAILED and a.t >= at]
    if since:
        yield events.Alert(
            id=RELAUNCH_FAILED,
            severity="error",
            text=f"attempt {number} was not relaunched: {since[-1].result}",
            evidence=[f"asked by {since[-1].by}", kept],
            next="R tries again",
            attempt=number,
            t=since[-1].t,
            m=0.0,
        )
        return
    started = attempt.started
    first = state.ranks_of(number).get(0)
    stepped = first is not None and first.step is not None
    if started is None or not started.relaunch_of or stepped or word not in ("failed", "lost"):
        return
    yield events.Alert(
        id=RELAUNCH_FAILED,
        severity="error",
        text=f"attempt {number} did not get as far as a step: {cause}",
        evidence=[started.cause, kept],
        next=f"nothing is lost: key R goes back to the settings of attempt {started.relaunch_of}"
        if started.correction not in ("same", "back")
        else "nothing is lost: key R tries again",
        attempt=number,
        t=at,
        m=0.0,
    )


def _kept(state: RunState) -> str:
    saved = [rank.checkpoints[-1] for rank in state.told().values() if rank.checkpoints]
    if not saved:
        return "there is no checkpoint yet"
    newest = max(saved, key=lambda checkpoint: checkpoint.t)
    return f"the checkpoint of step {newest.step} is at {newest.path}"


def _clock(t: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(t))
