"""How long a stop waits for a checkpoint before signals end the ranks.

By what was measured in this run, else by what the size of the model lets expect. Knows no
processes and no clock: `escalation` waits, `launch` hands the same to torchrun.
"""

from __future__ import annotations

from typing import Any

from bitwatch.record import events
from bitwatch.record.state import RunState
from bitwatch.record.view import median_step_s

LEAST_S = 40.0  # torchrun's own default is 30
CHECKPOINTS = 2  # that a stop may wait for: one that is under way, and its own
STEPS = 2  # after which the ranks have agreed to stop; an evaluation may lie between
MARGIN_S = 10.0
BYTES_A_PARAMETER = 12  # a float32 weight and the two moments of AdamW
WRITE_BYTES_PER_S = 200e6  # a modest disk


def grace_s(wanted_s: float | None, plan: dict[str, Any], state: RunState) -> float:
    """`wanted_s` is watch.grace_s, which overrides everything; `plan` is plan.json."""
    if wanted_s is not None:
        return wanted_s
    saved = last_checkpoint(state)
    return needed_s(saved.seconds if saved else _predicted_s(plan), busy_s(state))


def needed_s(checkpoint_s: float, busy_s: float = 0.0) -> float:
    return max(LEAST_S, CHECKPOINTS * checkpoint_s + busy_s + MARGIN_S)


def busy_s(state: RunState) -> float:
    """What the ranks of the newest attempt that told of any steps may have to end first."""
    told = [rank for _, rank in sorted(state.ranks.items()) if rank.step]
    if not told:
        return 0.0
    scored = [
        rank.evaluations[-1].seconds for _, rank in sorted(state.ranks.items()) if rank.evaluations
    ]
    return STEPS * (median_step_s(told[-1]) or 0.0) + (scored[-1] if scored else 0.0)


def last_checkpoint(state: RunState) -> events.Checkpoint | None:
    """The newest that any attempt of the run has written."""
    saved = [(key, rank.checkpoints[-1]) for key, rank in state.ranks.items() if rank.checkpoints]
    return max(saved, key=lambda pair: pair[0])[1] if saved else None


def _predicted_s(plan: dict[str, Any]) -> float:
    built = plan.get("model", {}).get("built") or 0
    return built * BYTES_A_PARAMETER / WRITE_BYTES_PER_S
