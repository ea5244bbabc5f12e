"""What is wrong after an attempt has ended, when no supervisor is there to say so. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch.record import events
from bitwatch.record.state import AttemptState, RunState

RELAUNCH_FAILED = "relaunch-failed"  # an action and an alert


def alerts(
    state: RunState,
    number: int,
    ended: tuple[events.State, str],
    leftovers: Sequence[events.ProcessStart],
    now: float,
) -> list[events.Alert]:
    """`number` is the newest attempt, `ended` its state and why, `leftovers` what lives of
    ended ones."""
    return [*_leftovers(leftovers, now), *_relaunch(state, number, ended)]


def _leftovers(leftovers: Sequence[events.ProcessStart], now: float) -> Iterator[events.Alert]:
    if not leftovers:
        return
    many = len(leftovers)
    attempts = sorted({process.attempt for process in leftovers})
    yield events.Alert(
        id="leftovers",
        severity="error",
        text=f"{many} {'process' if many == 1 else 'processes'} of ended attempt "
        f"{', '.join(map(str, attempts))} still there",
        evidence=[
            f"pid {p.pid}: {p.role}{'' if p.rank is None else f' of rank {p.rank}'}, "
            f"recorded in attempt {p.attempt}"
            for p in leftovers
        ],
        next="c cleans them up",
        attempt=attempts[-1],
        t=now,
        m=0.0,
    )


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
        next=f"nothing is lost: R goes back to the settings of attempt {started.relaunch_of}"
        if started.correction not in ("same", "back")
        else "nothing is lost: R tries again",
        attempt=number,
        t=at,
        m=0.0,
    )


def _kept(state: RunState) -> str:
    saved = [rank.checkpoints[-1] for rank in state.ranks.values() if rank.checkpoints]
    if not saved:
        return "there is no checkpoint yet"
    newest = max(saved, key=lambda checkpoint: checkpoint.t)
    return f"the checkpoint of step {newest.step} is at {newest.path}"
