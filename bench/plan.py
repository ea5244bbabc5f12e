"""How long a plan takes: everything that is computed from facts, with all corrections.

    python bench/plan.py [--shards N] [--ranks W] [--workers K] [--repeats R] [--json FILE]

10,000 shards for 64 ranks x 16 workers as a rule: with one row group in each and with four,
divisible by the ranks and not (then all ranks read everything), as-is and "auto". Repetitions
in turns, so that a slow moment hits all alike; beside each median its ratio to the incident's
own plan (2 shards for 4 ranks x 4 workers), which a person makes without noticing. Gathering
the facts is not measured, nor writing the plan down; how large that is, is said.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

from bitwatch import config as configuration
from bitwatch.plan.facts import CacheFacts, DataFacts, Facts, Shard
from bitwatch.plan.preflight import make_plan, to_json
from bitwatch.plan.result import Plan

TARGET_MS = 100.0
ROWS, ROW_BYTES = 1000, 300  # of a row group, about
REFERENCE = "the incident: 2 shards, 901 row groups each"


class Case(NamedTuple):
    name: str
    config: configuration.Config
    facts: Facts

    def plan(self) -> Plan:
        return make_plan(self.config, self.facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=10_000, help="at least twice the ranks")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(
        cases(arguments.shards, arguments.ranks, arguments.workers), arguments.repeats
    )
    print(f"{'':<48}{'median ms':>10}{'slowest':>9}{'x incident':>12}{'JSON kB':>9}  corrections")
    for name, row in figures.items():
        print(
            f"{name:<48}{row['median_ms']:>10.1f}{row['slowest_ms']:>9.1f}"
            f"{row['times_incident']:>12.1f}{row['json_bytes'] / 1000:>9,.0f}"
            f"  {', '.join(row['corrections'])}"
        )
    print(f"target: a median of at most {TARGET_MS:.0f} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def cases(shards: int, ranks: int, workers: int) -> list[Case]:
    made = [Case(REFERENCE, settings("as-is", 4, 4), facts_of(2, 901))]
    even = shards - shards % ranks
    for groups in (1, 4):
        for number in (even, even + ranks // 2 + 1):
            facts = facts_of(number, groups)
            for sharding in ("as-is", "auto"):
                name = f"{sharding}: {number:,} shards, {groups} row group{'s'[: groups - 1]} each"
                made.append(Case(name, settings(sharding, ranks, workers), facts))
    return made


def settings(sharding: str, ranks: int, workers: int) -> configuration.Config:
    changes = (
        *(f"data.sharding={sharding}", f"parallel.ranks={ranks}", f"data.workers={workers}"),
        *(f"train.batch={4 * ranks}", "train.micro_batch=4"),
    )
    return configuration.load(configuration.bundled("configs/demo.toml"), changes)


def facts_of(shards: int, groups: int) -> Facts:
    """Files about as uneven as those that people have."""
    draw = random.Random(1)
    files = []
    for number in range(shards):
        rows = [draw.randint(ROWS // 2, ROWS) for _ in range(groups)]
        text = [n * draw.randint(ROW_BYTES // 2, ROW_BYTES) for n in rows]
        files.append(
            Shard(
                name=f"/text/train-{number:05}.parquet",
                rows=sum(rows),
                row_groups=groups,
                text_bytes=sum(text),
                group_rows=rows,
                group_bytes=text,
            )
        )
    cache = CacheFacts(folder="/cache", free_bytes=1 << 50)
    return Facts(data=DataFacts(format="parquet", num_shards=shards, shards=files, cache=cache))


def measure(all_cases: list[Case], repeats: int) -> dict[str, Any]:
    times_ms: dict[str, list[float]] = {case.name: [] for case in all_cases}
    plans = {case.name: case.plan() for case in all_cases}  # and whatever is imported late
    for _ in range(repeats):
        for case in all_cases:
            began = time.perf_counter()
            case.plan()
            times_ms[case.name].append(1000 * (time.perf_counter() - began))
    reference = statistics.median(times_ms[REFERENCE])
    return {
        name: {
            "median_ms": statistics.median(times),
            "slowest_ms": max(times),
            "times_incident": statistics.median(times) / reference,
            "json_bytes": len(to_json(plans[name])),
            "corrections": [one.id for one in plans[name].corrections],
        }
        for name, times in times_ms.items()
    }


if __name__ == "__main__":
    main()
