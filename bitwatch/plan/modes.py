"""Which mode of reading the text to take, and which would be better than the one taken.

Pure: the best that the data and the disk allow, as far as the facts tell. What they do not
tell is never a reason to take a mode.
"""

from __future__ import annotations

import copy

from bitwatch import config as configuration
from bitwatch.plan import reading, row_groups, sharding
from bitwatch.plan.facts import DataFacts
from bitwatch.plan.result import Correction, DataPlan
from bitwatch.plan.sharding import Mode
from bitwatch.text import counted, size

# Text that one process took out of parquet and wrote each second on a core of a shared virtual
# machine: 57 MB. A download comes on top of it.
INDEX_BYTES_PER_S = 50e6
INDEX_SLACK = 1.05  # footers tell the size of the text to within some percent
ROW_BYTES = 9  # of the index for each row: where its text begins, and its newline
# Packed sequences are never quite equal between ranks, and ranks end an epoch together: below
# this much, what stays unread is not worth a warning.
UNEVEN_PERCENT = 1.0


def choose(config: configuration.Config, facts: DataFacts) -> tuple[Mode, str]:
    """The mode that the configuration asks for; for "auto" and "ask", the best there is and
    why, as half a sentence."""
    asked = config.data.sharding
    if asked in ("as-is", "reshard", "indexed"):
        return asked, ""
    if facts.num_shards is None or facts.error is not None:
        return "as-is", ""
    trouble = _trouble(reading.plan(config, facts, "as-is"), config)
    obstacle = index_obstacle(config, facts)
    if obstacle is None:
        return "indexed", f"{trouble}; {_amount(facts)}"
    readers = config.parallel.ranks * max(1, config.data.workers)
    if (few := _reshard_obstacle(facts, readers)) is None:
        groups = sum(shard.row_groups or 0 for shard in facts.shards)
        return "reshard", f"{trouble}; {obstacle}; {groups:,} row groups for {readers:,} readers"
    return "as-is", f"{obstacle}; {few}"


def index_obstacle(config: configuration.Config, facts: DataFacts) -> str | None:
    """Why the text cannot be indexed, or not be known to fit; None when nothing is in the way."""
    text = _text_bytes(facts)
    if text is None:
        return "only reading could tell how much text there is"
    rows = sharding.total([shard.rows for shard in facts.shards]) or 0
    wanted = text * INDEX_SLACK + ROW_BYTES * rows
    limit = config.data.cache_limit_gib
    if limit is not None and wanted > limit * 2**30:
        return f"an index of {size(wanted)} is more than data.cache_limit_gib = {limit:g} allows"
    if facts.cache is None or facts.cache.free_bytes is None:
        return "nobody could look at the disk for an index"
    if wanted > facts.cache.free_bytes:
        free = size(facts.cache.free_bytes)
        return f"an index of {size(wanted)} does not fit into {free} free in {facts.cache.folder}"
    return None


def corrections(config: configuration.Config, facts: DataFacts, data: DataPlan) -> list[Correction]:
    """Changes that make this plan better in something and worse in nothing, the best first.
    All begin a new epoch in a run that is already under way: where its ranks are in the text
    means nothing to another way of reading it."""
    if data.num_shards is None or data.readers_busy is None or data.mode == "indexed":
        return []
    found: list[Correction] = []
    if index_obstacle(config, facts) is None:
        better = reading.plan(config, facts, "indexed")
        why = (
            "the text is written once to a file of bytes, and every reader reads its share of "
            "it: each sequence once an epoch, the same number of steps on every rank, and an "
            "exact resume under any number of ranks and workers"
        )
        if _improves(better, data, config):
            found.append(
                _correction("indexed", better, why, _prepare_s(facts), {"data.sharding": "indexed"})
            )
    if data.mode == "as-is" and _reshard_obstacle(facts, data.readers) is None:
        better = reading.plan(config, facts, "reshard")
        why = (
            f"the {counted(better.num_shards or 0, 'row group')} of the files are dealt out by "
            f"size: each of the {counted(data.readers, 'reader')} reads its own, and nothing is "
            "read twice"
        )
        if _improves(better, data, config):
            found.append(_correction("reshard", better, why, 0.0, {"data.sharding": "reshard"}))
    if data.readers_idle and data.num_shards >= data.ranks:
        fewer = copy.deepcopy(config)
        fewer.data.workers = workers_without_idle(data)
        better = reading.plan(fewer, facts, data.mode)
        why = (
            f"{counted(fewer.data.workers, 'worker')} for each rank instead of "
            f"{data.workers_per_rank}: the {counted(better.readers_busy or 0, 'reader')} that "
            "have something to read stay, the idle ones are not started"
        )
        if not better.readers_idle:
            found.append(
                _correction(
                    "fewer-workers", better, why, 0.0, {"data.workers": better.workers_per_rank}
                )
            )
    if found:
        found[0].recommended = True
    return found


def workers_without_idle(data: DataPlan) -> int:
    """The most workers of each rank that leave no reader idle in the plan's mode."""
    number = data.num_shards or 0
    if data.mode == "reshard":
        return max(1, min(data.workers_per_rank, number // data.ranks))
    return sharding.workers_without_idle(number, data.ranks, data.workers_per_rank)


def _reshard_obstacle(facts: DataFacts, readers: int) -> str | None:
    if facts.format is not None and facts.format != "parquet":
        return f"{facts.format} files have no row groups to deal out"
    if not row_groups.known(facts.shards):
        return "the row groups are not known"
    groups = sum(len(shard.group_rows or ()) for shard in facts.shards)
    if groups < readers:
        return f"{counted(groups, 'row group')} cannot keep {counted(readers, 'reader')} busy"
    return None


def _improves(better: DataPlan, data: DataPlan, config: configuration.Config) -> bool:
    faults = list(zip(_faults(better, config), _faults(data, config), strict=True))
    return any(a < b for a, b in faults) and all(a <= b for a, b in faults)


def _faults(data: DataPlan, config: configuration.Config) -> tuple[float, ...]:
    uneven = data.imbalance_percent or 0.0
    return (
        data.readers_idle or 0,
        data.copies or 1,
        data.read_amplification or 1,
        uneven if uneven >= UNEVEN_PERCENT else 0.0,
        int(data.mode == "as-is" and config.data.shuffle > 0),  # its resume is never exact
    )


def _correction(
    id_: str, data: DataPlan, why: str, prepare_s: float, changes: dict[str, str | int]
) -> Correction:
    return Correction(
        id=id_,
        recommended=False,
        workers_per_rank=data.workers_per_rank,
        num_shards=data.num_shards or 0,
        readers_busy=data.readers_busy or 0,
        readers_idle=data.readers_idle or 0,
        copies=data.copies or 1,
        read_amplification=data.read_amplification or 1,
        resume="new-epoch",
        prepare_s=prepare_s,
        changes=changes,
        why=why,
        data=data,
    )


def _trouble(as_is: DataPlan, config: configuration.Config) -> str:
    """What as-is would do badly."""
    shards = counted(as_is.num_shards or 0, "shard")
    if as_is.readers_idle:
        return f"{shards} would leave {as_is.readers_idle} of {as_is.readers} readers idle"
    if as_is.split == "examples" and as_is.ranks > 1:
        return f"{shards} over {as_is.ranks} ranks would have every rank read everything"
    if (as_is.imbalance_percent or 0.0) >= UNEVEN_PERCENT:
        return f"the ranks' shares of {shards} would be {as_is.imbalance_percent:.0f} % apart"
    if config.data.shuffle:
        return "what a shuffle buffer holds is lost at a resume"
    return "every rank takes the same number of steps"


def _text_bytes(facts: DataFacts) -> int | None:
    """Of all shards; where only a bound is known, at most as many."""
    if not facts.shards or len(facts.shards) != facts.num_shards:
        return None
    return sharding.total(
        [
            shard.text_bytes_at_most if shard.text_bytes is None else shard.text_bytes
            for shard in facts.shards
        ]
    )


def _amount(facts: DataFacts) -> str:
    exact = all(shard.text_bytes is not None for shard in facts.shards)
    return f"the text is {'' if exact else 'at most '}{size(_text_bytes(facts))}"


def _prepare_s(facts: DataFacts) -> float:
    return round((_text_bytes(facts) or 0) / INDEX_BYTES_PER_S, 1)
