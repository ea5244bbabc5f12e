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
from itertools import accumulate, chain, pairwise
from operator import add
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


class Dealt:
    """How the row groups of `files` are dealt out: first to rank 0's workers, then to rank 1's.

    A file without row groups has no run. With at least W*K row groups every reader gets one;
    with fewer, as many readers as possible, and a rank before a second worker of another.
    """

    def __init__(self, files: Sequence[Shard], ranks: int, workers: int) -> None:
        self.files, self.ranks, self.workers = files, ranks, workers
        rows = list(chain.from_iterable(file.group_rows or () for file in files))
        text = list(chain.from_iterable(file.group_bytes or () for file in files))
        # With a newline a row: never all 0 where there are rows.
        sizes = list(map(add, text, rows))
        # Entry i: of the first i row groups, or the first row group of file i.
        self._rows = list(accumulate(rows, initial=0))
        self._text = list(accumulate(text, initial=0))
        self._files = list(accumulate((len(file.group_rows or ()) for file in files), initial=0))
        self.groups = len(sizes)
        each = max(1, workers)
        self._parts = [  # of the line of row groups, one a reader
            (first + begin, first + stop)
            for first, end in cut(sizes, ranks, each)
            for begin, stop in cut(sizes[first:end], each)
        ]

    @property
    def busy(self) -> int:
        """Readers that have a row group."""
        return sum(begin < end for begin, end in self._parts)

    @property
    def most_runs(self) -> int:
        """Of all readers together, at most: each begins one, and so does each file."""
        return len(self._parts) + len(self.files)

    @property
    def rows_per_rank(self) -> list[int]:
        totals = [0] * self.ranks
        for place, (begin, end) in enumerate(self._parts):
            totals[place // max(1, self.workers)] += self._rows[end] - self._rows[begin]
        return totals

    def runs(self) -> list[list[Run]]:
        """Of every reader."""
        return [self._runs(begin, end) for begin, end in self._parts]

    def assignment(self) -> Assignment:
        """The same as `sharding.assign` says it: row groups are the shards, named by `name_of`."""
        readers = []
        for place, (begin, end) in enumerate(self._parts):
            rank, worker = divmod(place, max(1, self.workers))
            rows = self._rows[end] - self._rows[begin]
            names: list[int | str] = [name_of(self.files, run) for run in self._runs(begin, end)]
            readers.append(ReaderShare(rank=rank, worker=worker, shards=names, rows=rows))
        return Assignment(
            ranks=self.ranks,
            workers=self.workers,
            num_shards=self.groups,
            split="none",
            readers=readers,
            copies=1,
            read_amplification=1,
        )

    def sequences_per_rank(self, sequence_bytes: int) -> list[int]:
        """Packed sequences that each rank gets in one pass: an estimate, as the footers' sizes
        of the text are. Each reader packs its own text and drops what is left at its end."""
        totals = [0] * self.ranks
        for place, (begin, end) in enumerate(self._parts):
            size = self._text[end] - self._text[begin]
            totals[place // max(1, self.workers)] += size // sequence_bytes
        return totals

    def _runs(self, begin: int, end: int) -> list[Run]:
        """Row groups `begin` to `end` of the line, those of one file as one run."""
        runs: list[Run] = []
        file = bisect_right(self._files, begin) - 1
        while begin < end:
            first, stop = self._files[file], min(end, self._files[file + 1])
            if begin < stop:
                runs.append(Run(file, begin - first, stop - first))
            begin = max(begin, stop)
            file += 1
        return runs


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
        for _ in range(parts):  # the same without a call: a plan asks it a hundred thousand times
            if end + least > len(sizes):
                return False
            end = bisect_left(sums, sums[end] + floor, end + least)
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


def name_of(files: Sequence[Shard], run: Run) -> str:
    """train-0.parquet[0:12], as plans and readers' accounts call a run."""
    return f"{files[run.file].name.rsplit('/', 1)[-1]}[{run.first}:{run.end}]"


def _nearest(sums: Sequence[int], numerator: int, denominator: int) -> int:
    """The place in `sums` whose value is nearest to numerator / denominator; in whole numbers,
    which are the same on every machine."""
    after = bisect_left(sums, numerator, key=lambda value: value * denominator)
    if after == 0:
        return 0
    far = sums[after] * denominator - numerator
    return after if far < numerator - sums[after - 1] * denominator else after - 1
