"""What a configuration would do, before anything is launched.

`make_plan` joins the arithmetic of this floor into one value. What the facts do not tell
stays None in it, and is said as a problem.
"""

from __future__ import annotations

import msgspec

from bitwatch import config as configuration
from bitwatch.plan import parameters, problems, sharding
from bitwatch.plan.facts import DataFacts, Facts, ModelFacts
from bitwatch.plan.result import (
    Correction,
    DataPlan,
    MemoryPlan,
    ModelPlan,
    Plan,
    Problem,
    Verdict,
)


def make_plan(config: configuration.Config, facts: Facts, *, launching: bool = False) -> Plan:
    """The plan of `config` under `facts`.

    `launching` says that the machine of the facts is the one that is about to train. A plan
    alone may be made on a machine without any GPU: that is then only a warning.
    """
    model = _model(config, facts.model or ModelFacts())
    data = _data(config, facts.data or DataFacts())
    found = [
        *problems.about_facts(facts),
        *problems.about_model(model, config.parallel.ranks),
        *problems.about_devices(config, facts.devices, launching=launching),
        *problems.about_data(data),
    ]
    return Plan(
        verdict=_verdict(found, model, data),
        model=model,
        memory=MemoryPlan(),
        data=data,
        corrections=_corrections(data),
        problems=found,
    )


def to_json(plan: Plan) -> bytes:
    """The plan as a person can read it: indented JSON, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(plan)) + b"\n"


def _model(config: configuration.Config, facts: ModelFacts) -> ModelPlan:
    asked = config.model.expected_parameters
    if not facts.parameters:
        return ModelPlan(asked=asked)
    ranks = config.parallel.ranks
    shapes = [parameter.shape for parameter in facts.parameters]
    built = parameters.built(shapes)
    return ModelPlan(
        asked=asked,
        built=built,
        held=parameters.held(shapes, ranks),
        flat_shard=parameters.flat_shard(built, ranks),
    )


def _data(config: configuration.Config, facts: DataFacts) -> DataPlan:
    ranks, workers = config.parallel.ranks, config.data.workers
    plan = DataPlan(ranks=ranks, workers_per_rank=workers, readers=ranks * max(1, workers))
    if facts.num_shards is None or facts.error is not None:
        return plan
    shards = facts.shards if len(facts.shards) == facts.num_shards else None
    rows = [shard.rows for shard in shards] if shards else None
    text_bytes = [shard.text_bytes for shard in shards] if shards else None
    if config.data.shuffle:
        # The buffer comes with a new order of the shards, which only the library knows: what
        # each reader gets is known where they are all alike.
        rows = _alike(rows)
        if sharding.split_taken(facts.num_shards, ranks) == "shards":
            text_bytes = _alike(text_bytes)
    dealt = sharding.assign(facts.num_shards, ranks, workers, rows)
    plan.num_shards = facts.num_shards
    plan.split = dealt.split
    plan.readers_busy = dealt.busy
    plan.readers_idle = dealt.idle
    plan.copies = dealt.copies
    plan.read_amplification = dealt.read_amplification
    plan.assignment = [] if config.data.shuffle else dealt.readers
    plan.rows_per_rank = dealt.rows_per_rank
    amounts = plan.rows_per_rank
    if shards:
        plan.rows = sharding.total([shard.rows for shard in shards])
        plan.row_groups = sharding.total([shard.row_groups for shard in shards])
    if text_bytes:
        sequences = sharding.sequences_per_rank(
            dealt, text_bytes, configuration.bytes_per_sequence(config.model)
        )
        if sequences is not None:
            plan.steps_per_epoch = sharding.steps(sequences, config.train.batch)
            amounts = sequences
    if amounts is not None:
        plan.imbalance_percent = round(sharding.imbalance_percent(amounts), 2)
        plan.estimated = True
    return plan


def _alike(sizes: list[int | None] | None) -> list[int | None] | None:
    return sizes if sizes and len(set(sizes)) == 1 else None


def _corrections(data: DataPlan) -> list[Correction]:
    """Changes that work with what is built today, best first: fewer workers, where every
    rank can have a shard and the surplus workers only idle."""
    if data.num_shards is None or not data.readers_idle or data.num_shards < data.ranks:
        return []
    workers = sharding.workers_without_idle(data.num_shards, data.ranks, data.workers_per_rank)
    dealt = sharding.assign(data.num_shards, data.ranks, workers)
    if dealt.idle:
        return []
    return [
        Correction(
            id="fewer-workers",
            recommended=True,
            workers_per_rank=workers,
            num_shards=data.num_shards,
            readers_busy=dealt.busy,
            readers_idle=dealt.idle,
            copies=dealt.copies,
            resume="new-epoch",
            prepare_s=0.0,
            why=(
                f"{problems.count(workers, 'worker')} for each rank instead of "
                f"{data.workers_per_rank}: the {problems.count(dealt.busy, 'reader')} that "
                "have something to read stay, the idle ones are not started"
            ),
        )
    ]


def _verdict(found: list[Problem], model: ModelPlan, data: DataPlan) -> Verdict:
    severities = {problem.severity for problem in found}
    if "error" in severities:
        return "error"
    # What nobody could look at is not known to be good.
    if "warning" in severities or data.num_shards is None or model.built is None:
        return "warning"
    return "ok"
