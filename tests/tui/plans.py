"""Plans with corrections, their readers dealt out as the planner deals them out."""

from __future__ import annotations

from typing import Any

import msgspec

from bitwatch.plan import sharding
from bitwatch.plan.result import Correction, DataPlan, MemoryPlan, ModelPlan, Plan, Problem

INDEXED = "the text is written once to a file of bytes, and every reader reads its share of it"


def data(shards: int, ranks: int, workers: int, **fields: Any) -> DataPlan:
    dealt = sharding.assign(shards, ranks, workers, [100] * shards)
    values: dict[str, Any] = {
        "num_shards": shards,
        "rows": 100 * shards,
        "ranks": ranks,
        "workers_per_rank": workers,
        "readers": len(dealt.readers),
        "split": dealt.split,
        "readers_busy": dealt.busy,
        "readers_idle": dealt.idle,
        "copies": dealt.copies,
        "read_amplification": dealt.read_amplification,
        "steps_per_epoch": 120,
        "estimated": True,
        "assignment": dealt.readers,
    }
    return DataPlan(**{**values, **fields})


def indexed(ranks: int, workers: int) -> DataPlan:
    busy = ranks * max(workers, 1)
    return data(
        2, ranks, workers, mode="indexed", assignment=[], readers_busy=busy, readers_idle=0,
        copies=1, read_amplification=1, imbalance_percent=0.0, estimated=False,
    )  # fmt: skip


def reshard(ranks: int, workers: int) -> DataPlan:
    readers = [
        sharding.ReaderShare(rank=at // workers, worker=at % workers, shards=[f"a.parquet[{at}:9]"])
        for at in range(ranks * workers)
    ]
    return data(
        2, ranks, workers, mode="reshard", num_shards=1802, assignment=readers,
        readers_busy=len(readers), readers_idle=0, read_amplification=1,
    )  # fmt: skip


def correction(id_: str, after: DataPlan, **fields: Any) -> Correction:
    values: dict[str, Any] = {
        "id": id_,
        "recommended": False,
        "workers_per_rank": after.workers_per_rank,
        "num_shards": after.num_shards,
        "readers_busy": after.readers_busy,
        "readers_idle": after.readers_idle,
        "copies": after.copies,
        "read_amplification": after.read_amplification,
        "resume": "new-epoch",
        "changes": {"data.sharding": id_},
        "why": f"why {id_}",
        "data": after,
    }
    return Correction(**{**values, **fields})


def incident(ranks: int = 4, workers: int = 4, *, blocked: bool = False) -> Plan:
    """2 shards for 4 ranks of 4 workers: two corrections, and one that only a person can make."""
    old = data(2, ranks, workers)
    problems = [
        Problem(
            id="workers-exceed-shards",
            severity="warning",
            text=f"{old.readers_idle} of {old.readers} readers will be idle. It does not hang.",
            next="",
        ),
    ]
    if blocked:
        text = "There is no text for rank 3: 0.5 rows a rank. That ends the run."
        problems.append(Problem(id="rank-without-data", severity="error", text=text, next=""))
    return Plan(
        verdict="error" if blocked else "warning",
        model=ModelPlan(),
        memory=MemoryPlan(),
        data=old,
        corrections=[
            correction("more-files", data(16, ranks, workers), changes={}),
            correction("reshard", reshard(ranks, workers)),
            correction(
                "indexed", indexed(ranks, workers), recommended=True, why=INDEXED,
                prepare_bytes=539_000_000, prepare_s=10.8,
            ),
        ],
        problems=problems,
    )  # fmt: skip


def as_json(plan: Plan) -> dict[str, Any]:
    """As a record of a run has it."""
    found: dict[str, Any] = msgspec.to_builtins(plan)
    return found
