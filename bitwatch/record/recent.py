"""What the newest step records of a rank say together."""

from __future__ import annotations

from collections.abc import Mapping

from bitwatch.record.state import RankState

RECENT_S, FEW_STEPS = 60.0, 5  # whose steps count for how much of them is waiting
WAITING_LEVELS = (0.3, 0.5, 0.7, 0.9)  # of a step: few, so that what is said changes seldom
MARGIN = 0.05  # below a level before it is left: a share that hovers at one changes nothing


def median_step_s(rank: RankState) -> float | None:
    """Of the newest step records: one slow step, or a pause for an evaluation, moves nothing."""
    seconds = [step.step_s for step in rank.recent if step.step_s is not None]
    return sorted(seconds)[len(seconds) // 2] if seconds else None


def data_share(rank: RankState) -> float | None:
    """Of the step, waiting for data: the median of the last minute's step records, or of the
    last few. One that starts new workers says nothing of the others."""
    newest = rank.recent[-1].t if rank.recent else 0.0
    late = sum(step.t > newest - RECENT_S for step in rank.recent)
    shares = [
        step.data_s / step.step_s
        for step in rank.recent[-max(late, FEW_STEPS) :]
        if step.data_s is not None and step.step_s
    ]
    return sorted(shares)[len(shares) // 2] if len(shares) >= FEW_STEPS else None


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
