"""What stands in the way of a mode of reading, and what it costs to prepare.

As far as the facts tell: what they do not tell is never a reason to take a mode.
"""

from __future__ import annotations

from bitwatch import config as configuration
from bitwatch.plan import row_groups, sharding
from bitwatch.plan.facts import DataFacts
from bitwatch.text import counted, size

# Where this machine has not written a larger text yet: on two shared cores of a virtual machine
# 53 MB of text a second were hashed and taken out of parquet, of a text of 159 MB, everything
# included, and 2 s went by before anything else. A download comes on top.
INDEX_BYTES_PER_S = 50e6
START_S = 2.0
INDEX_SLACK = 1.05  # footers tell the size of the text to within some percent
ROW_BYTES = 9  # of the index for each row: where its text begins, and its newline


def index(config: configuration.Config, facts: DataFacts) -> str | None:
    """Why the text cannot be indexed, or not be known to fit; None when nothing is in the way."""
    if facts.cache is not None and facts.cache.present:
        return None
    if text_bytes(facts) is None:
        return "only reading could tell how much text there is"
    wanted = index_bytes(facts) * INDEX_SLACK
    limit = config.data.cache_limit_gib
    if limit is not None and wanted > limit * 2**30:
        return f"an index of {size(wanted)} is more than data.cache_limit_gib = {limit:g} allows"
    if facts.cache is None or facts.cache.free_bytes is None:
        return "nobody could look at the disk for an index"
    if wanted > facts.cache.free_bytes:
        free = size(facts.cache.free_bytes)
        return f"an index of {size(wanted)} does not fit into {free} free in {facts.cache.folder}"
    return None


def reshard(facts: DataFacts, readers: int) -> str | None:
    """Why row groups cannot be dealt out to so many readers; None when nothing is in the way."""
    if facts.format is not None and facts.format != "parquet":
        return f"{facts.format} files have no row groups to deal out"
    if not row_groups.known(facts.shards):
        return "the row groups are not known"
    groups = sum(len(shard.group_rows or ()) for shard in facts.shards)
    if groups < readers:
        return f"{counted(groups, 'row group')} cannot keep {counted(readers, 'reader')} busy"
    return None


def text_bytes(facts: DataFacts) -> int | None:
    """Of all shards; where only a bound is known, at most as many."""
    if not facts.shards or len(facts.shards) != facts.num_shards:
        return None
    return sharding.total(
        [
            shard.text_bytes_at_most if shard.text_bytes is None else shard.text_bytes
            for shard in facts.shards
        ]
    )


def amount(facts: DataFacts) -> str:
    """The size of the text as half a sentence; "" where nobody knows it."""
    text = text_bytes(facts)
    if text is None:
        return ""
    exact = all(shard.text_bytes is not None for shard in facts.shards)
    return f"the text is {'' if exact else 'at most '}{size(text)}"


def index_bytes(facts: DataFacts) -> int:
    """What an index will take on the disk; 0 where it is already there."""
    if facts.cache is not None and facts.cache.present:
        return 0
    rows = sharding.total([shard.rows for shard in facts.shards]) or 0
    return (text_bytes(facts) or 0) + ROW_BYTES * rows


def index_s(facts: DataFacts) -> float:
    """About how long writing it will take, by the rate that this machine has reached before."""
    cache = facts.cache
    if cache is not None and cache.present:
        return 0.0
    rate = cache.bytes_per_s if cache is not None and cache.bytes_per_s else INDEX_BYTES_PER_S
    return round(START_S + (text_bytes(facts) or 0) / rate, 1)
