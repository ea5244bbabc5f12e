"""How the text would reach the ranks, in each mode of reading it: the data part of a plan."""

from __future__ import annotations

from bitwatch import config as configuration
from bitwatch.plan import row_groups, sharding
from bitwatch.plan.facts import DataFacts, Shard
from bitwatch.plan.result import DataPlan
from bitwatch.plan.sharding import Mode


def plan(config: configuration.Config, facts: DataFacts, mode: Mode) -> DataPlan:
    """What `mode` would do with the text of `facts`. What they do not tell stays None."""
    ranks, workers = config.parallel.ranks, config.data.workers
    readers = ranks * max(1, workers)
    made = DataPlan(ranks=ranks, workers_per_rank=workers, readers=readers, mode=mode)
    if facts.num_shards is None or facts.error is not None:
        return made
    shards = facts.shards if len(facts.shards) == facts.num_shards else []
    made.num_shards = facts.num_shards
    if shards:
        made.rows = sharding.total([shard.rows for shard in shards])
        made.row_groups = sharding.total([shard.row_groups for shard in shards])
    if mode == "indexed":
        _indexed(made, config, shards)
    elif mode == "reshard":
        _reshard(made, config, shards)
    else:
        _as_is(made, config, shards)
    return made


def _as_is(made: DataPlan, config: configuration.Config, shards: list[Shard]) -> None:
    """As `datasets` deals the shards out."""
    number, ranks = made.num_shards or 0, made.ranks
    rows = [shard.rows for shard in shards] if shards else None
    text_bytes = [shard.text_bytes for shard in shards] if shards else None
    if config.data.shuffle:
        # The buffer comes with a new order of the shards, which only the library knows: what
        # each reader gets is known where they are all alike.
        rows = _alike(rows)
        if sharding.split_taken(number, ranks) == "shards":
            text_bytes = _alike(text_bytes)
    dealt = sharding.assign(number, ranks, made.workers_per_rank, rows)
    _take(made, dealt)
    if config.data.shuffle:
        made.assignment = []
    sequences = None
    if text_bytes:
        sequence_bytes = configuration.bytes_per_sequence(config.model)
        sequences = sharding.sequences_per_rank(dealt, text_bytes, sequence_bytes)
    _count(made, sequences, config.train.batch)


def _reshard(made: DataPlan, config: configuration.Config, shards: list[Shard]) -> None:
    """Row groups are the shards, dealt out by size."""
    if not row_groups.known(shards):
        return
    ranks, workers = made.ranks, made.workers_per_rank
    dealt = row_groups.assign(shards, ranks, workers)
    made.num_shards = dealt.num_shards
    _take(made, dealt)
    sequence_bytes = configuration.bytes_per_sequence(config.model)
    sequences = row_groups.sequences_per_rank(shards, ranks, workers, sequence_bytes)
    _count(made, sequences, config.train.batch)


def _indexed(made: DataPlan, config: configuration.Config, shards: list[Shard]) -> None:
    """Sequences of the whole text, dealt out evenly whatever the files are. `datasets` splits
    nothing. Rows are not dealt out: a rank's are as many as are in its sequences on average."""
    ranks = made.ranks
    made.split = "none"
    made.readers_busy, made.readers_idle = made.readers, 0
    made.copies = made.read_amplification = 1
    made.imbalance_percent = 0.0
    if made.rows is not None:
        made.rows_per_rank = [(made.rows + rank) // ranks for rank in reversed(range(ranks))]
        made.estimated = True
    size = sharding.total([shard.text_bytes for shard in shards]) if shards else None
    if size is not None:
        sequences = size // configuration.bytes_per_sequence(config.model)
        made.steps_per_epoch = sequences // config.train.batch
        made.estimated = True


def _take(made: DataPlan, dealt: sharding.Assignment) -> None:
    made.split = dealt.split
    made.readers_busy = dealt.busy
    made.readers_idle = dealt.idle
    made.copies = dealt.copies
    made.read_amplification = dealt.read_amplification
    made.assignment = dealt.readers
    made.rows_per_rank = dealt.rows_per_rank


def _count(made: DataPlan, sequences: list[int] | None, batch: int) -> None:
    """Steps and imbalance, of the packed sequences of each rank, else of its rows."""
    if sequences is not None:
        made.steps_per_epoch = sharding.steps(sequences, batch)
    amounts = made.rows_per_rank if sequences is None else sequences
    if amounts is not None:
        made.imbalance_percent = round(sharding.imbalance_percent(amounts), 2)
        made.estimated = True


def _alike(sizes: list[int | None] | None) -> list[int | None] | None:
    return sizes if sizes and len(set(sizes)) == 1 else None
