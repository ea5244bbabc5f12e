"""Whether an attempt that has ranks moves: each phase is judged by its own limit. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bitwatch.record import events
from bitwatch.record.recent import median_step_s
from bitwatch.record.state import AttemptState, RankState, RunState

STALL_STEPS = 5  # a step is late when it takes this many times the usual one
SLOWER = 1.5  # than usual, that the steps before it may be which nobody tells of
STALL_PAUSES = 5  # and a checkpoint or an evaluation, as many times the last one
UNMEASURED_S = 600.0  # that the first checkpoint, or evaluation, may take
WAITS_ALONG = ("collective", "busy")  # kinds of wait of a rank beside one that compiles


def moving(
    ranks: Mapping[int, RankState],
    attempt: AttemptState,
    began: float,
    earlier: Mapping[str, float],
    now: float,
) -> events.State:
    """`began`: when the ranks were to start. `earlier`: the seconds of the last checkpoint and the
    last evaluation of any attempt, by the name of their phase, and of a step of the last one."""
    first = ranks.get(0)
    started = attempt.started or events.AttemptStarted()
    if first is None or first.step is None:
        # A first step loads and compiles: until it is done, all is still beginning.
        since = max(began, first.phase.t if first and first.phase else 0.0)
        # A resumed one tells of no step before it has taken log_every of them.
        limit_s = started.start_timeout_s + started.log_every * earlier.get("step", 0.0)
        late = bool(attempt.started) and now - since > limit_s
        return "stalled" if late else "starting"
    limit_s = _limit_s(first, started, earlier)
    if compiles(attempt.stuck, first):
        limit_s = max(limit_s, started.start_timeout_s)
    return "stalled" if now - first.updated > limit_s else "running"


def lasted(
    state: RunState, saved: Sequence[events.Checkpoint], scored: Sequence[events.Evaluation]
) -> dict[str, float]:
    """What `moving` takes as `earlier`."""
    found: dict[str, float] = {}
    if saved:
        found["checkpoint"] = saved[-1].seconds
    if scored:
        found["evaluate"] = scored[-1].seconds
    for (_, number), rank in sorted(state.ranks.items()):
        if number == 0 and (usual := median_step_s(rank)) is not None:
            found["step"] = usual
    return found


def _limit_s(
    first: RankState, started: events.AttemptStarted, earlier: Mapping[str, float]
) -> float:
    phase = first.phase.name if first.phase else "train"
    if phase == "train":
        usual = median_step_s(first) or 0.0
        late_s = (STALL_STEPS + SLOWER * (started.log_every - 1)) * usual
        late_s = max(started.stall_s, late_s)
        # The first one's step has compiled and started everything: no later one is like it.
        return min(late_s, started.start_timeout_s) if len(first.recent) == 1 else late_s
    if phase in ("checkpoint", "evaluate"):
        last = earlier.get(phase)
        return max(started.stall_s, UNMEASURED_S if last is None else STALL_PAUSES * last)
    return max(started.stall_s, started.start_timeout_s)


def compiles(stuck: events.Stuck | None, first: RankState) -> bool:
    """Whether the ranks, asked since the last movement, were found at work on a compilation."""
    if stuck is None or stuck.t < first.updated:
        return False
    return merely_compiles(stuck.waits)


def merely_compiles(waits: Sequence[events.Wait]) -> bool:
    """Whether nothing is wrong: some compile, and whoever does not waits for them."""
    kinds = {wait.kind for wait in waits}
    return "compile" in kinds and not kinds - {"compile", *WAITS_ALONG}
