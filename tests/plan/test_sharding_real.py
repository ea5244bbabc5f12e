"""The planner's arithmetic against the libraries themselves: real datasets, real workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import datasets
import pytest
from datasets.distributed import split_dataset_by_node
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, get_worker_info

from bitwatch.plan import sharding

logging.getLogger("datasets").setLevel(logging.ERROR)
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

RULES = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def rows_of(shards: list[tuple[int, int]]) -> Iterator[dict[str, int]]:
    """Rows of the given (shard, size) pairs, each saying which worker read it."""
    worker = get_worker_info()
    for shard, size in shards:
        for row in range(size):
            yield {
                "shard": shard,
                "row": row,
                "worker": worker.id if worker else 0,
            }


def what_the_libraries_do(
    sizes: list[int], ranks: int, workers: int, strategy: str, batch: int, drop_last: bool
) -> tuple[dict[tuple[int, int], list[tuple[int, int]]], list[int]]:
    """((rank, worker) -> its (shard, row)s in order, batches of each rank)."""
    given_rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
    batches = [0] * ranks
    for rank in range(ranks):
        stream: Any = datasets.IterableDataset.from_generator(
            rows_of, gen_kwargs={"shards": list(enumerate(sizes))}
        )
        assert stream.num_shards == len(sizes)
        if strategy != "none":
            stream = split_dataset_by_node(stream, rank, ranks, strategy=strategy)
        loader: DataLoader[Any] = DataLoader(
            stream,
            batch_size=batch,
            num_workers=workers,
            drop_last=drop_last,
            multiprocessing_context="fork" if workers else None,
        )
        for columns in loader:
            batches[rank] += 1
            read = zip(
                columns["worker"].tolist(),
                columns["shard"].tolist(),
                columns["row"].tolist(),
                strict=True,
            )
            for worker, shard, row in read:
                given_rows.setdefault((rank, worker), []).append((shard, row))
    return given_rows, batches


def what_the_plan_says(
    plan: sharding.Assignment, sizes: list[int]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    said = {}
    for reader in plan.readers:
        rows = [(shard, row) for shard in reader.shards for row in range(sizes[shard])]
        if plan.split == "examples":
            rows = rows[reader.rank :: plan.ranks]
        assert reader.rows == len(rows)
        if rows:
            said[reader.rank, reader.worker] = rows
    return said


@RULES
@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=9),
    ranks=st.integers(1, 4),
    workers=st.sampled_from([0, 0, 0, 1, 2, 3]),
    strategy=st.sampled_from(["auto", "auto", "auto", "shards", "examples", "none"]),
    batch=st.integers(1, 5),
    drop_last=st.booleans(),
)
@example(sizes=[6, 7], ranks=4, workers=4, strategy="auto", batch=2, drop_last=False)  # incident
@example(sizes=[6, 7], ranks=4, workers=4, strategy="none", batch=2, drop_last=True)
@example(sizes=[3, 3, 2], ranks=2, workers=4, strategy="shards", batch=2, drop_last=False)
@example(sizes=[9, 5, 4, 4], ranks=2, workers=2, strategy="auto", batch=2, drop_last=True)
@example(sizes=[0, 5, 0], ranks=2, workers=2, strategy="auto", batch=2, drop_last=False)
@example(sizes=[0, 0], ranks=2, workers=1, strategy="auto", batch=1, drop_last=False)
def test_every_reader_gets_the_rows_that_the_plan_says(
    sizes: list[int],
    ranks: int,
    workers: int,
    strategy: sharding.Strategy,
    batch: int,
    drop_last: bool,
) -> None:
    assume(strategy != "shards" or len(sizes) >= ranks)
    plan = sharding.assign(len(sizes), ranks, workers, sizes, strategy)
    rows, batches = what_the_libraries_do(sizes, ranks, workers, strategy, batch, drop_last)
    # A rank with several workers has a short batch in each of them, and drops it there.
    assert sharding.batches_per_rank(plan, batch, drop_last=drop_last) == batches
    said = what_the_plan_says(plan, sizes)
    if drop_last:
        said = {reader: of_it[: len(of_it) // batch * batch] for reader, of_it in said.items()}
        assert {reader: of_it for reader, of_it in said.items() if of_it} == rows
        return
    assert said == rows
    trained_on = sorted(row for given_rows in rows.values() for row in given_rows)
    everything = sorted((shard, row) for shard, size in enumerate(sizes) for row in range(size))
    assert trained_on == sorted(everything * plan.copies)


def test_fewer_shards_than_ranks_cannot_be_split_by_shards() -> None:
    with pytest.raises(ValueError):
        sharding.assign(2, 4, 1, strategy="shards")
    stream = datasets.IterableDataset.from_generator(
        rows_of, gen_kwargs={"shards": list(enumerate([3, 3]))}
    )
    with pytest.raises(ValueError):
        list(split_dataset_by_node(stream, 0, 4, strategy="shards"))
