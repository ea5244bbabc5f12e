"""Which way of reading the text a plan takes.

Pure. "ask" plans what is configured, as-is, with its problems and corrections: the person at
the keyboard decides. "auto" takes the first correction of as-is that can be launched: the
best that the data and the disk allow. Where as-is has no faults, or nothing better can be
launched, it stays: for what counts as a fault, and why the index is not always taken, see
`faults`.
"""

from __future__ import annotations

from bitwatch import config as configuration
from bitwatch.config import changed
from bitwatch.plan import faults, obstacles, reading
from bitwatch.plan.corrections import corrections
from bitwatch.plan.facts import DataFacts
from bitwatch.plan.result import Correction, DataPlan
from bitwatch.text import counted


def taken(config: configuration.Config, facts: DataFacts) -> DataPlan:
    """The plan of the mode that the configuration asks for; for "auto", of the best there is,
    with the reason as half a sentence."""
    asked = config.data.sharding
    if asked in ("as-is", "reshard", "indexed"):
        return reading.plan(config, facts, asked)
    as_is = changed(config, {"data.sharding": "as-is"})
    plan = reading.plan(as_is, facts, "as-is")
    if asked == "ask" or plan.num_shards is None:
        return plan
    better = [one for one in corrections(as_is, facts, plan) if one.changes]
    reason = _reason(as_is, facts, plan, better[0] if better else None)
    if better:
        # Made anew: a correction may leave out who reads what.
        then = changed(as_is, better[0].changes)
        plan = reading.plan(then, facts, better[0].data.mode)
    plan.mode_reason = reason
    return plan


def _reason(
    as_is: configuration.Config, facts: DataFacts, plan: DataPlan, better: Correction | None
) -> str:
    trouble = faults.trouble(as_is, facts, plan)
    if not trouble:
        known = plan.imbalance_percent is not None
        even = "and every rank about as much as the others"
        unknown = "and only reading could tell whether every rank has as much"
        return f"every reader has shards of its own, {even if known else unknown}"
    if better is not None and better.id == "indexed":
        return _joined(trouble, obstacles.amount(facts))
    no_index = obstacles.index(as_is, facts)
    if better is not None and better.id == "reshard":
        groups, readers = f"{better.num_shards:,} row groups", f"{plan.readers:,} readers"
        return _joined(trouble, no_index, f"{groups} for {readers}")
    few = obstacles.reshard(facts, plan.readers)
    fewer = f"{counted(better.workers_per_rank, 'worker')} for each rank" if better else ""
    return _joined(trouble, no_index, few, fewer)


def _joined(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)
