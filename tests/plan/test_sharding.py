"""The numbers that are known from measurements and from the incident."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bitwatch.plan import sharding


def test_the_incident() -> None:
    """2 files for 4 ranks x 4 workers."""
    plan = sharding.assign(2, 4, 4, [900_675, 900_675])
    assert len(plan.readers) == 16
    assert (plan.busy, plan.idle) == (8, 8)
    assert plan.split == "examples"
    assert (plan.copies, plan.read_amplification) == (1, 4)
    assert sum(plan.rows_per_rank or []) == 1_801_350


def test_its_row_groups_as_shards_do_not_divide_by_four_either() -> None:
    assert sharding.split_taken(1802, 4) == "examples"


def test_without_a_split_every_rank_has_a_copy() -> None:
    plan = sharding.assign(2, 4, 4, [10, 10], "none")
    assert (plan.copies, plan.read_amplification) == (4, 4)
    assert plan.rows_per_rank == [20, 20, 20, 20]


def test_unequal_files_make_unequal_ranks_although_they_divide() -> None:
    """FACTS: 4 files, 2 ranks x 2 workers, 1500 / 989 rows: 188 against 125 batches of 8."""
    plan = sharding.assign(4, 2, 2, [1000, 500, 500, 489])
    assert plan.split == "shards"
    assert plan.rows_per_rank == [1500, 989]
    assert sharding.batches_per_rank(plan, 8) == [188, 125]
    assert round(sharding.imbalance_percent([1500, 989])) == 34


def test_asked_for_shards_that_do_not_divide() -> None:
    """FACTS: S=3, W=2: 1659 / 830 rows, 208 against 104 batches of 8."""
    plan = sharding.assign(3, 2, 4, [830, 830, 829], "shards")
    assert plan.rows_per_rank == [1659, 830]
    assert sharding.batches_per_rank(plan, 8) == [208, 104]
    assert [bool(reader.shards) for reader in plan.readers] == [1, 1, 0, 0, 1, 0, 0, 0]


def test_without_workers_the_ranks_read() -> None:
    plan = sharding.assign(3, 2, 0, [5, 6, 7])
    assert [(r.rank, r.worker, r.shards) for r in plan.readers] == [
        (0, 0, [0, 1, 2]),
        (1, 0, [0, 1, 2]),
    ]
    assert plan.rows_per_rank == [9, 9]


def test_unknown_rows_stay_unknown() -> None:
    plan = sharding.assign(2, 2, 2, [5, None])
    assert plan.rows_per_rank is None
    assert [reader.rows for reader in plan.readers] == [5, 0, None, 0]
    assert sharding.batches_per_rank(plan, 4) is None
    assert sharding.sequences_per_rank(plan, [100, None], 32) is None


def test_steps_end_with_the_shortest_rank() -> None:
    plan = sharding.assign(2, 2, 1, [1, 1])
    sequences = sharding.sequences_per_rank(plan, [32 * 40 + 31, 32 * 17], 32)
    assert sequences == [40, 17]
    assert sharding.steps_per_rank(sequences, batch=16) == [5, 2]
    assert sharding.hang_risk([5, 2]) and not sharding.hang_risk([2, 2])


@given(shards=st.integers(1, 40), ranks=st.integers(1, 8), workers=st.integers(1, 16))
def test_the_workers_that_are_offered_leave_nobody_idle(
    shards: int, ranks: int, workers: int
) -> None:
    fewer = sharding.workers_without_idle(shards, ranks, workers)
    assert 1 <= fewer <= workers
    assert sharding.assign(shards, ranks, fewer).idle == 0
    if fewer < workers:  # and one more would
        assert sharding.assign(shards, ranks, fewer + 1).idle > 0
