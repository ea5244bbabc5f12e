"""How row groups are dealt out, against every other way of cutting them."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from bitwatch.plan import row_groups
from bitwatch.plan.facts import Shard

SIZES = st.lists(st.integers(0, 9) | st.sampled_from([50, 1000]), max_size=9)


def shard(name: str, *sizes: int) -> Shard:
    """A file of row groups of one row each and so many bytes of text."""
    return Shard(name=name, rows=len(sizes), group_rows=[1] * len(sizes), group_bytes=[*sizes])


def sums(sizes: list[int], cuts: list[tuple[int, int]]) -> list[int]:
    return [sum(sizes[begin:end]) for begin, end in cuts]


@settings(deadline=None, max_examples=300)
@given(sizes=SIZES, parts=st.integers(1, 5), least=st.integers(1, 3))
def test_no_other_cuts_have_a_larger_smallest_part(
    sizes: list[int], parts: int, least: int
) -> None:
    cuts = row_groups.cut(sizes, parts, least)
    assert len(cuts) == parts
    assert [i for begin, end in cuts for i in range(begin, end)] == list(range(len(sizes)))
    if len(sizes) < parts:
        assert sum(end > begin for begin, end in cuts) == len(sizes)
        return
    floor = min(least, len(sizes) // parts)
    assert min(end - begin for begin, end in cuts) >= floor
    others = (
        list(itertools.pairwise((0, *inner, len(sizes))))
        for inner in itertools.combinations(range(1, len(sizes)), parts - 1)
    )
    allowed = [
        min(sums(sizes, other))
        for other in others
        if min(end - begin for begin, end in other) >= floor
    ]
    assert min(sums(sizes, cuts)) == max(allowed)


@settings(deadline=None)
@given(
    files=st.lists(st.lists(st.integers(0, 90), max_size=5), max_size=5),
    ranks=st.integers(1, 4),
    workers=st.integers(0, 4),
)
def test_every_row_group_goes_to_one_reader_in_the_order_of_the_files(
    files: list[list[int]], ranks: int, workers: int
) -> None:
    shards = [shard(f"{i}.parquet", *sizes) for i, sizes in enumerate(files)]
    dealt = row_groups.Dealt(shards, ranks, workers).runs()
    assert len(dealt) == ranks * max(1, workers)
    line = [(run.file, group) for runs in dealt for run in runs for group in range(*run[1:])]
    assert line == [(i, group) for i, sizes in enumerate(files) for group in range(len(sizes))]
    busy = sum(bool(runs) for runs in dealt)
    if len(line) >= len(dealt):
        assert busy == len(dealt)
    for runs in dealt:  # no file twice, so each is opened once
        assert len({run.file for run in runs}) == len(runs)
    said = row_groups.Dealt(shards, ranks, workers).assignment()
    assert (said.busy, said.num_shards, said.copies) == (busy, len(line), 1)
    assert sum(said.rows_per_rank or []) == len(line)
    sequences = row_groups.Dealt(shards, ranks, workers).sequences_per_rank(1)
    assert sum(sequences) == sum(map(sum, files))


def test_the_incidents_row_groups_serve_every_reader_evenly() -> None:
    files = [shard(f"{i}.parquet", *[300_000] * 901) for i in range(2)]
    plan = row_groups.Dealt(files, 4, 4).assignment()
    assert (plan.busy, plan.idle, plan.num_shards) == (16, 0, 1802)
    assert plan.read_amplification == 1
    assert max(plan.rows_per_rank or []) - min(plan.rows_per_rank or []) <= 1
    assert plan.readers[0].shards == ["0.parquet[0:112]"]


def test_one_huge_row_group_is_left_alone_and_the_rest_is_shared() -> None:
    plan = row_groups.Dealt([shard("a", 1000, 1, 1, 1, 1, 1)], 2, 1).runs()
    assert plan == [[(0, 0, 1)], [(0, 1, 6)]]
    # Its rank's second worker must have something to read as well.
    assert row_groups.Dealt([shard("a", 1000, 1, 1, 1)], 2, 2).runs() == [
        [(0, 0, 1)],
        [(0, 1, 2)],
        [(0, 2, 3)],
        [(0, 3, 4)],
    ]


def test_a_rank_comes_before_a_second_worker_of_another() -> None:
    dealt = row_groups.Dealt([shard("a", 5, 5)], 2, 2).runs()
    assert [bool(runs) for runs in dealt] == [True, False, True, False]
    assert [bool(runs) for runs in row_groups.Dealt([shard("a", 5)], 2, 2).runs()] == [
        True,
        False,
        False,
        False,
    ]


def test_text_whose_size_no_footer_tells_is_dealt_out_by_rows() -> None:
    """Many equal rows are stored once: their footers say next to nothing."""
    file = Shard(name="a", rows=60, group_rows=[10] * 6, group_bytes=[0] * 6)
    assert row_groups.Dealt([file], 3, 1).assignment().rows_per_rank == [20, 20, 20]
