"""Files, disks and configurations that several tests plan."""

from __future__ import annotations

from typing import Any

from bitwatch import config as configuration
from bitwatch.plan import preflight
from bitwatch.plan.facts import CacheFacts, DataFacts, Facts, ModelFacts, Parameter, Shard
from bitwatch.plan.result import Plan

GIB = 2**30


def config(sharding: str, *changes: str) -> configuration.Config:
    wanted = (f"data.sharding={sharding}", *changes)
    return configuration.load(configuration.bundled("configs/demo.toml"), wanted)


def files(*groups: int, rows: int = 100, text_bytes: int = 100_000) -> list[Shard]:
    """A file of so many equal row groups for each number."""
    return [
        Shard(
            name=f"/text/{i}.parquet",
            rows=rows * number,
            row_groups=number,
            text_bytes=text_bytes * number,
            group_rows=[rows] * number,
            group_bytes=[text_bytes] * number,
        )
        for i, number in enumerate(groups)
    ]


def plan(
    settings: configuration.Config,
    shards: list[Shard],
    free: int | None = 100 * GIB,
    format: str = "parquet",
) -> Plan:
    cache = CacheFacts(folder="/cache", free_bytes=free)
    data = DataFacts(format=format, num_shards=len(shards), shards=shards, cache=cache)
    model = ModelFacts(parameters=[Parameter(name="w", shape=[100])])
    return preflight.make_plan(settings, Facts(model=model, data=data))


def ids(found: list[Any]) -> list[str]:
    return [one.id for one in found]


def incident(*changes: str) -> Plan:
    """2 files of 901 row groups for 4 ranks x 4 workers."""
    base = ("parallel.ranks=4", "data.workers=4", "train.batch=16", "train.micro_batch=4")
    return plan(config("as-is", *base, *changes), files(901, 901, rows=1000, text_bytes=300_000))
