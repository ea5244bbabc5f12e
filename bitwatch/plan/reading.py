"""How the text would reach the ranks, in each mode of reading it: the data part of a plan."""

from __future__ import annotations

from bitwatch import config as configuration
from bitwatch.plan import row_groups, sharding
from bitwatch.plan.facts import DataFacts, Shard
from bitwatch.plan.result import DataPlan
from bitwatch.plan.sharding import Mode

NAMED_SHARDS = 20_000  # that the assignment of a plan names: some 120 kB of JSON


def plan(
    config: configuration.Config, facts: DataFacts, mode: Mode, named: int = NAMED_SHARDS
) -> DataPlan:
    """What `mode` would do with the text of `facts`. What they do not tell stays None. Who
    reads what is left out where it would name more than `named` shards."""
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
        _reshard(made, config, shards, named)
    else:
        _as_is(made, config, shards, named)
    return made


def _as_is(made: DataPlan, config: configuration.Config, shards: list[Shard], named: int) -> None:
    """As `datasets` deals the shards out."""
    number, ranks = made.num_shards or 0, made.ranks
    rows = [shard.rows for shard in shards] if shards else None
    text_bytes = [shard.text_bytes for shard in shards]
    bounds = [
        shard.text_bytes_at_most if shard.text_bytes is None else shard.text_bytes
        for shard in shards
    ]
    if config.data.shuffle:
        # The buffer comes with a new order of the shards, which only the library knows: what
        # each reader gets is known where they are all alike.
        rows = _alike(rows)
        if sharding.split_taken(number, ranks) == "shards":
            text_bytes, bounds = _alike(text_bytes) or [], _alike(bounds) or []
    dealt = sharding.assign(number, ranks, made.workers_per_rank, rows)
    made.split = dealt.split
    made.readers_busy, made.readers_idle = dealt.busy, dealt.idle
    made.copies, made.read_amplification = dealt.copies, dealt.read_amplification
    made.rows_per_rank = dealt.rows_per_rank
    names = number * (1 if dealt.split == "shards" else ranks)
    if names <= named and not config.data.shuffle:
        made.assignment = dealt.readers
    sequence_bytes = configuration.bytes_per_sequence(config.model)
    sequences = None
    if text_bytes:
        sequences = sharding.sequences_per_rank(dealt, text_bytes, sequence_bytes)
    _count(made, sequences, config.train.batch)
    if made.imbalance_percent is None and bounds:
        # No text is larger than its file, and as a rule a larger file holds more.
        likely = sharding.sequences_per_rank(dealt, bounds, sequence_bytes)
        if likely is not None:
            made.imbalance_percent = round(sharding.imbalance_percent(likely), 2)
            made.estimated = True


def _reshard(made: DataPlan, config: configuration.Config, shards: list[Shard], named: int) -> None:
    """Row groups are the shards, dealt out by size."""
    if not row_groups.known(shards):
        return
    dealt = row_groups.Dealt(shards, made.ranks, made.workers_per_rank)
    made.num_shards = dealt.groups
    made.split = "none"
    made.readers_busy, made.readers_idle = dealt.busy, made.readers - dealt.busy
    made.copies = made.read_amplification = 1
    made.rows_per_rank = dealt.rows_per_rank
    if dealt.most_runs <= named:
        made.assignment = dealt.assignment().readers
    sequence_bytes = configuration.bytes_per_sequence(config.model)
    _count(made, dealt.sequences_per_rank(sequence_bytes), config.train.batch)


def _indexed(made: DataPlan, config: configuration.Config, shards: list[Shard]) -> None:
    """Sequences of the whole text, dealt out evenly whatever the files are: all ranks take the
    same number, and what is left at the end, less than a batch, nobody takes. `datasets` splits
    nothing. Rows are not dealt out: a rank's are as many as are in its sequences on average."""
    ranks = made.ranks
    made.split = "none"
    made.readers_busy, made.readers_idle = made.readers, 0
    made.copies = made.read_amplification = 1
    made.imbalance_percent = 0.0
    made.hang_risk = False
    if made.rows is not None:
        made.rows_per_rank = [(made.rows + rank) // ranks for rank in reversed(range(ranks))]
        made.estimated = True
    size = sharding.total([shard.text_bytes for shard in shards]) if shards else None
    if size is not None:
        sequences = size // configuration.bytes_per_sequence(config.model)
        steps = sequences // config.train.batch
        _steps(made, [steps * config.train.batch // ranks] * ranks, config.train.batch)
        # A worker reads whole steps: with fewer of them than workers, the last have none.
        made.readers_busy = ranks * min(max(1, made.workers_per_rank), steps)
        made.readers_idle = made.readers - made.readers_busy


def _count(made: DataPlan, sequences: list[int] | None, batch: int) -> None:
    """Steps and imbalance, of the packed sequences of each rank, else of its rows."""
    if sequences is not None:
        _steps(made, sequences, batch)
    amounts = made.rows_per_rank if sequences is None else sequences
    if amounts is not None:
        made.imbalance_percent = round(sharding.imbalance_percent(amounts), 2)
        made.estimated = True


def _steps(made: DataPlan, sequences: list[int], batch: int) -> None:
    made.sequences_per_rank = sequences
    made.steps_per_rank = sharding.steps_per_rank(sequences, batch)
    made.steps_per_epoch = min(made.steps_per_rank)
    made.hang_risk = sharding.hang_risk(made.steps_per_rank)
    made.estimated = True


def _alike(sizes: list[int | None] | None) -> list[int | None] | None:
    return sizes if sizes and len(set(sizes)) == 1 else None
