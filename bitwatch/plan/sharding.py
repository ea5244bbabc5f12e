"""Which reader gets which shards and rows when `datasets` streams to many ranks.

Pure arithmetic that must agree with what `datasets` and torch's DataLoader really do; the
rules are theirs (datasets 5.2, `IterableDataset._prepare_ex_iterable_for_iteration` and
`_iter_pytorch`), and tests hold this file against both libraries:

- Over the ranks (`split_dataset_by_node`): "shards" gives shard i to rank i mod W; it is
  taken when S is a multiple of W. Otherwise "examples": every rank reads all shards and
  keeps every W-th row. Without a split, every rank keeps everything.
- Over a rank's workers: shard j of the rank's own goes to worker j mod K. A worker without
  a shard is idle. In "examples" the rows are counted anew in each worker: of its N rows,
  rank r keeps ceil((N - r) / W).

S shards, W ranks, K workers of each rank (K = 0: the rank itself reads).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Mode = Literal["as-is", "reshard", "indexed"]
Split = Literal["none", "shards", "examples"]
Strategy = Literal["none", "auto", "shards", "examples"]


class ReaderShare(msgspec.Struct, kw_only=True):
    """What one reader is given: places in the list of shards, or names of runs of row groups.
    `rows` are those that it keeps; None when not known."""

    rank: int
    worker: int
    shards: list[int | str]
    rows: int | None = None


class Assignment(msgspec.Struct, kw_only=True):
    """How the shards are dealt out.

    `copies`: how often each row is trained on in one pass over the data.
    `read_amplification`: how often each row is read and decoded.
    """

    ranks: int
    workers: int
    num_shards: int
    split: Split
    readers: list[ReaderShare]
    copies: int
    read_amplification: int

    @property
    def busy(self) -> int:
        return sum(bool(reader.shards) for reader in self.readers)

    @property
    def idle(self) -> int:
        return len(self.readers) - self.busy

    @property
    def rows_per_rank(self) -> list[int] | None:
        """Rows that each rank trains on, or None where a file's rows are not known."""
        totals = [0] * self.ranks
        for reader in self.readers:
            if reader.rows is None:
                return None
            totals[reader.rank] += reader.rows
        return totals


def split_taken(num_shards: int, ranks: int, strategy: Strategy = "auto") -> Split:
    """What `split_dataset_by_node` does. Raises ValueError where it does: "shards" asked
    for with fewer shards than ranks."""
    if strategy == "none":
        return "none"
    if strategy == "shards" and num_shards < ranks:
        raise ValueError(f"{num_shards} shards leave some of {ranks} ranks without one")
    if strategy == "shards" or (strategy == "auto" and num_shards % ranks == 0):
        return "shards"
    return "examples"


def assign(
    num_shards: int,
    ranks: int,
    workers: int,
    rows: Sequence[int | None] | None = None,
    strategy: Strategy = "auto",
) -> Assignment:
    """Deals `num_shards` shards out. `rows` has one entry a shard, None where unknown."""
    known = list(rows) if rows is not None else [None] * num_shards
    if len(known) != num_shards:
        raise ValueError(f"{len(known)} row counts for {num_shards} shards")
    split = split_taken(num_shards, ranks, strategy)
    readers = []
    for rank in range(ranks):
        own = range(rank, num_shards, ranks) if split == "shards" else range(num_shards)
        for worker in range(max(1, workers)):
            shards = own[worker :: max(1, workers)]
            kept = total([known[shard] for shard in shards])
            if split == "examples" and kept is not None:
                kept = max(0, -(-(kept - rank) // ranks))
            readers.append(ReaderShare(rank=rank, worker=worker, shards=[*shards], rows=kept))
    return Assignment(
        ranks=ranks,
        workers=workers,
        num_shards=num_shards,
        split=split,
        readers=readers,
        copies=ranks if split == "none" else 1,
        read_amplification=1 if split == "shards" else ranks,
    )


def batches_per_rank(
    assignment: Assignment, batch: int, *, drop_last: bool = False
) -> list[int] | None:
    """Batches of `batch` rows that each rank's DataLoader gives in one pass. Each worker
    fills its own batches, so each may end with a short one. None when rows are not known."""
    totals = [0] * assignment.ranks
    for reader in assignment.readers:
        if reader.rows is None:
            return None
        whole, rest = divmod(reader.rows, batch)
        totals[reader.rank] += whole + (rest > 0 and not drop_last)
    return totals


def sequences_per_rank(
    assignment: Assignment, text_bytes: Sequence[int | None], sequence_bytes: int
) -> list[int] | None:
    """Packed sequences of `sequence_bytes` that each rank gets in one pass: an estimate.

    `text_bytes` has one entry a shard. Each reader packs its own text and drops what is
    left at its end; in "examples" it keeps one W-th of the bytes, as far as rows are alike.
    None when the bytes are not known.
    """
    totals = [0] * assignment.ranks
    for reader in assignment.readers:
        size = total([text_bytes[int(shard)] for shard in reader.shards])
        if size is None:
            return None
        if assignment.split == "examples":
            size //= assignment.ranks
        totals[reader.rank] += size // sequence_bytes
    return totals


def steps(sequences: Sequence[int], batch: int) -> int:
    """Optimiser steps in one pass, when all ranks stop together as the first one runs out.
    `batch` counts sequences over all ranks, as `train.batch` does."""
    return min(sequences) * len(sequences) // batch


def imbalance_percent(amounts: Sequence[int]) -> float:
    """How far the smallest lies below the largest, in percent of the largest."""
    largest = max(amounts)
    return 100.0 * (largest - min(amounts)) / largest if largest else 0.0


def workers_without_idle(num_shards: int, ranks: int, workers: int) -> int:
    """The most workers of each rank, up to `workers`, that leave no reader idle when
    `datasets` splits by itself: as many as a rank has shards. At least 1."""
    split = split_taken(num_shards, ranks)
    per_rank = num_shards // ranks if split == "shards" else num_shards
    return max(1, min(workers, per_rank))


def total(amounts: Sequence[int | None]) -> int | None:
    """The sum, or None when any part is not known."""
    sum_ = 0
    for amount in amounts:
        if amount is None:
            return None
        sum_ += amount
    return sum_
