"""What the newest step records of a rank say together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bitwatch.record.events import Step
from bitwatch.record.state import RankState

RECENT_S, FEW_STEPS = 60.0, 5  # whose steps count for how much of them is waiting
WAITING_LEVELS = (0.3, 0.5, 0.7, 0.9)  # of a step: few, so that what is said changes seldom
BEHIND_FACTOR, BEHIND_SHARE = 1.5, 0.2  # of the best rank's own time, and of the step
STAYS_FACTOR, STAYS_SHARE = 1.3, 0.12  # once it is behind: what hovers at a limit changes nothing
MARGIN = 0.05  # below a level before it is left: a share that hovers at one changes nothing


def median_step_s(rank: RankState) -> float | None:
    """Of the newest step records: one slow step, such as the first, or a pause for an evaluation,
    moves nothing."""
    seconds = [step.step_s for step in rank.recent if step.step_s is not None]
    return sorted(seconds)[(len(seconds) - 1) // 2] if seconds else None


def data_share(rank: RankState) -> float | None:
    """Of the step, waiting for data: the median of the last minute's step records, or of the
    last few. One that starts new workers says nothing of the others."""
    shares = [
        step.data_s / step.step_s for step in _late(rank) if step.data_s is not None and step.step_s
    ]
    return sorted(shares)[len(shares) // 2] if len(shares) >= FEW_STEPS else None


class Own(NamedTuple):
    """Seconds of a step: all of it, what of it a rank did not spend on waiting for the others, and
    what of that it waited for data. Work that the collectives of the model wait for is in the own
    time of all ranks alike."""

    step_s: float
    own_s: float
    data_s: float


class Behind(NamedTuple):
    """`rank` keeps the others waiting, `best` the least; `is_data`: because of its text."""

    rank: int
    best: int
    is_data: bool
    told: dict[int, Own]


def own_time(rank: RankState) -> Own | None:
    """The medians of the same records as for `data_share`."""
    parts = [
        Own(step.step_s, step.step_s - step.wait_s, step.data_s or 0.0)
        for step in _late(rank)
        if step.step_s and step.wait_s is not None
    ]
    if len(parts) < FEW_STEPS:
        return None
    return Own(*(sorted(values)[len(values) // 2] for values in zip(*parts, strict=True)))


def behind(owns: Mapping[int, Own], before: Behind | None) -> Behind | None:
    """The rank whose own part of a step is much longer than the best one's. `before`: what this
    said last."""
    if len(owns) < 2:
        return None
    worst = max(owns, key=lambda rank: owns[rank].own_s)
    best = min(owns, key=lambda rank: owns[rank].own_s)
    slow, quick = owns[worst], owns[best]
    again = before is not None and before.rank == worst
    factor, share = (STAYS_FACTOR, STAYS_SHARE) if again else (BEHIND_FACTOR, BEHIND_SHARE)
    late_s = slow.own_s - quick.own_s
    if slow.own_s < factor * quick.own_s or late_s < share * slow.step_s:
        return None
    if again and before is not None:
        best = before.best
    return Behind(worst, best, slow.data_s - quick.data_s > late_s / 2, dict(owns))


def _late(rank: RankState) -> list[Step]:
    """The step records of the last minute, or the last few."""
    newest = rank.recent[-1].t if rank.recent else 0.0
    late = sum(step.t > newest - RECENT_S for step in rank.recent)
    return rank.recent[-max(late, FEW_STEPS) :]


def waiting_levels(shares: Mapping[int, float], before: Mapping[int, float]) -> dict[int, float]:
    """The level that each rank's share of waiting is at, for those that are at one. `before`:
    what this said last."""
    reached = {
        rank: [
            level
            for level in WAITING_LEVELS
            if share >= level - (MARGIN if level <= before.get(rank, 0.0) else 0.0)
        ]
        for rank, share in sorted(shares.items())
    }
    return {rank: levels[-1] for rank, levels in reached.items() if levels}
