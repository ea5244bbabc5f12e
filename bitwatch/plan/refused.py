"""Remedies that are often given for idle workers, and do not work.

Both were given for the incident that this program is for. They are computed and answered, and
never offered.
"""

from __future__ import annotations

from collections.abc import Iterator

from bitwatch import config as configuration
from bitwatch.plan import faults, reading
from bitwatch.plan.corrections import changed, settled
from bitwatch.plan.facts import DataFacts
from bitwatch.plan.result import DataPlan, Refused
from bitwatch.text import counted

WORKERS = "num_workers = min(4, num_shards // world_size)"
SHARD = "dataset.shard(num_shards=world_size * 4)"


def refused(config: configuration.Config, facts: DataFacts, data: DataPlan) -> Iterator[Refused]:
    """For a plan with idle readers or with ranks that read everything."""
    if data.mode == "indexed" or not data.num_shards:
        return
    if not data.readers_idle and (data.read_amplification or 1) == 1:
        return
    if why := _why_not_fewer(config, facts, data):
        yield Refused(id="workers-by-shards", remedy=WORKERS, why=why)
    yield Refused(
        id="shard-more",
        remedy=SHARD,
        why="It is a TypeError: shard needs an index too. With one it selects a part of the "
        f"{counted(data.num_shards, 'shard')} there are; it never adds any.",
    )


def _why_not_fewer(config: configuration.Config, facts: DataFacts, data: DataPlan) -> str | None:
    """None where the formula helps."""
    shards, ranks = data.num_shards or 0, data.ranks
    workers = min(4, shards // ranks)
    now = settled(config, data)
    then = changed(now, {"data.workers": workers})
    better = reading.plan(then, facts, data.mode)
    gives = f"It gives {counted(workers, 'worker')} here (min(4, {shards} // {ranks}))"
    if workers == 0:
        alone = "each rank then reads by itself between its steps, with nothing read ahead"
        still = "; every rank still reads everything" if (data.read_amplification or 1) > 1 else ""
        return f"{gives}: {alone}{still}."
    if faults.fewer(faults.of(then, facts, better), faults.of(now, facts, data)):
        return None
    left = faults.left(then, facts, better) or ["nothing gets better"]
    return f"{gives}: {left[0]}."
