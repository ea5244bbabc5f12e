"""Which reader reads which row groups in mode reshard. Pure arithmetic: the plan and the
readers themselves both ask it, so that what was planned is what is read.

The row groups of all files, in the order of the files, are one line. It is cut into a run for
each rank, and each run into one for each of the rank's workers: contiguous, so that a reader
opens a file once. An epoch ends for all ranks when the first has no more, so the cuts make the
smallest share as large as it can be, and lie near to equal shares beyond that.

W ranks, K workers of each rank (K = 0: the rank itself reads).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from bitwatch.plan.facts import Shard
from bitwatch.plan.sharding import Assignment, ReaderShare


class Run(NamedTuple):
    """Row groups `first` to `end` (not included) of one file, by its place in the list."""

    file: int
    first: int
    end: int


def known(files: Sequence[Shard]) -> bool:
    """Whether every file has told its row groups: parquet whose footer was read."""
    return bool(files) and all(
        file.group_rows is not None and file.group_bytes is not None for file in files
    )


def deal(files: Sequence[Shard], ranks: int, workers: int) -> list[list[Run]]:
    """The runs of every reader: first those of rank 0's workers, then rank 1's.

    A file without row groups has no run. With at least W*K row groups every reader gets one;
    with fewer, as many readers as possible, and a rank before a second worker of another.
    """
    line = [
        (place, group) for place, file in enumerate(files) for group in range(len(_sizes(file)))
    ]
    sizes = [size for file in files for size in _sizes(file)]
    readers = max(1, workers)
    dealt: list[list[Run]] = []
    for first, end in cut(sizes, ranks, readers):
        for begin, stop in cut(sizes[first:end], readers):
            dealt.append(_runs(line[first + begin : first + stop]))
    return dealt


def cut(sizes: Sequence[int], parts: int, least: int = 1) -> list[tuple[int, int]]:
    """Cuts a line of sizes into contiguous parts, (begin, end) of each. The smallest sum is as
    large as possible for parts of at least `least` items; where there are too few for that, of
    as many as there can be in every one."""
    if len(sizes) < parts:
        return [(min(i, len(sizes)), min(i + 1, len(sizes))) for i in range(parts)]
    least = min(least, len(sizes) // parts)
    sums = list(accumulate(sizes, initial=0))  # sums[i]: of the first i items

    def earliest(begin: int, floor: int) -> int:
        """Where a part that begins there can end at the earliest, holding `floor`."""
        return max(begin + least, bisect_left(sums, sums[begin] + floor))

    def can_hold(floor: int) -> bool:
        end = 0
        for _ in range(parts):
            if end > len(sizes):
                return False
            end = earliest(end, floor)
        return end <= len(sizes)

    low, high = 0, sums[-1] // parts
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if can_hold(middle) else (low, middle - 1)

    latest = [len(sizes)]  # of each part's end, from the last one back
    for _ in range(parts - 1):
        end = latest[-1]
        latest.append(min(end - least, bisect_right(sums, sums[end] - low) - 1))
    cuts = [0]
    for part, last in enumerate(latest[:0:-1], start=1):
        even = _nearest(sums, sums[-1] * part, parts)
        cuts.append(min(max(even, earliest(cuts[-1], low)), last))
    cuts.append(len(sizes))
    return list(pairwise(cuts))


def assign(files: Sequence[Shard], ranks: int, workers: int) -> Assignment:
    """The same as `sharding.assign` says it: row groups are the shards, named by `name_of`."""
    readers = []
    for place, runs in enumerate(deal(files, ranks, workers)):
        rank, worker = divmod(place, max(1, workers))
        rows = sum(sum((files[run.file].group_rows or [])[run.first : run.end]) for run in runs)
        names: list[int | str] = [name_of(files, run) for run in runs]
        readers.append(ReaderShare(rank=rank, worker=worker, shards=names, rows=rows))
    return Assignment(
        ranks=ranks,
        workers=workers,
        num_shards=sum(len(_sizes(file)) for file in files),
        split="none",
        readers=readers,
        copies=1,
        read_amplification=1,
    )


def sequences_per_rank(
    files: Sequence[Shard], ranks: int, workers: int, sequence_bytes: int
) -> list[int]:
    """Packed sequences that each rank gets in one pass: an estimate, as the footers' sizes of
    the text are. Each reader packs its own text and drops what is left at its end."""
    totals = [0] * ranks
    for place, runs in enumerate(deal(files, ranks, workers)):
        size = sum(sum((files[run.file].group_bytes or [])[run.first : run.end]) for run in runs)
        totals[place // max(1, workers)] += size // sequence_bytes
    return totals


def name_of(files: Sequence[Shard], run: Run) -> str:
    """train-0.parquet[0:12], as plans and readers' accounts call a run."""
    return f"{files[run.file].name.rsplit('/', 1)[-1]}[{run.first}:{run.end}]"


def _sizes(file: Shard) -> list[int]:
    """Bytes of each row group's text, with a newline a row: never all 0 where there are rows."""
    return [
        size + rows
        for size, rows in zip(file.group_bytes or (), file.group_rows or (), strict=True)
    ]


def _runs(groups: Sequence[tuple[int, int]]) -> list[Run]:
    """Neighbours of one file as one run."""
    runs: list[Run] = []
    for file, group in groups:
        if runs and runs[-1].file == file:
            runs[-1] = Run(file, runs[-1].first, group + 1)
        else:
            runs.append(Run(file, group, group + 1))
    return runs


def _nearest(sums: Sequence[int], numerator: int, denominator: int) -> int:
    """The place in `sums` whose value is nearest to numerator / denominator; in whole numbers,
    which are the same on every machine."""
    after = bisect_left(sums, numerator, key=lambda value: value * denominator)
    if after == 0:
        return 0
    far = sums[after] * denominator - numerator
    return after if far < numerator - sums[after - 1] * denominator else after - 1
