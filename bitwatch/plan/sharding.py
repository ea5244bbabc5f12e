"""Which reader gets which shards and rows when `datasets` streams to many ranks, and how many
steps come of it.

Pure arithmetic that must agree with what `datasets` and torch's DataLoader really do; the
rules are theirs (datasets 5.2, `IterableDataset._prepare_ex_iterable_for_iteration` and
`_iter_pytorch`), and tests hold this file against both libraries. S shards, W ranks, K workers
of each rank (K = 0: the rank itself reads, as worker 0 of 1).

Who reads what:

- Over the ranks (`split_dataset_by_node`): "shards" gives shard i to rank i mod W; it is
  taken when S is a multiple of W. Otherwise "examples": every rank reads all shards and
  keeps every W-th row. Without a split, "none", every rank keeps everything. Rank r so has
  S_r shards: ceil((S - r) / W) in "shards", else S.
- Over a rank's workers: shard j of the rank's own goes to worker j mod K. min(K, S_r) of them
  are busy; one without a shard is idle.

What comes of it, with N_rk rows and T_rk bytes of text in the shards of worker k of rank r:

    rows kept      n_rk = N_rk; in "examples" max(0, ceil((N_rk - r) / W)): the rows are
                   counted anew in each worker
    batches of b   sum over k of ceil(n_rk / b), floor with drop_last: each worker fills its own
    copies         W in "none", else 1: how often a row is trained on in one pass
    amplification  1 in "shards", else W: how often a row is read and decoded
    sequences      q_r = sum over k of floor(t_rk / s) of s bytes, t_rk = T_rk; in "examples"
                   T_rk / W, as far as rows are alike: only reading could tell
    steps          of rank r: floor(q_r / (B / W)), B sequences a step over all ranks; of the
                   epoch: the least of them, where the ranks agree on its end
    hang risk      steps that differ: a loop without such an agreement waits for ever in a
                   collective that the first rank to run out never joins
    imbalance      100 (most - least) / most
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
    `rows` are those that it keeps; None when not known. Readers may share one list."""

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
    each = max(1, workers)
    readers = []
    if split == "shards":
        for rank in range(ranks):
            own, its_rows = range(rank, num_shards, ranks), known[rank::ranks]
            for worker in range(each):
                kept = total(its_rows[worker::each])
                shards: list[int | str] = [*own[worker::each]]
                readers.append(ReaderShare(rank=rank, worker=worker, shards=shards, rows=kept))
    else:  # all ranks are given the same
        given: list[list[int | str]] = [[*range(k, num_shards, each)] for k in range(each)]
        there = [total(known[k::each]) for k in range(each)]
        for rank in range(ranks):
            for worker in range(each):
                kept = there[worker]
                if split == "examples" and kept is not None:
                    kept = max(0, -(-(kept - rank) // ranks))
                shares = given[worker]
                readers.append(ReaderShare(rank=rank, worker=worker, shards=shares, rows=kept))
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
    ranks, each = assignment.ranks, max(1, assignment.workers)
    alike = assignment.split != "shards"  # then all ranks are given what rank 0 is
    totals = [0] * ranks
    for reader in assignment.readers[: each if alike else None]:
        size = total([text_bytes[int(shard)] for shard in reader.shards])
        if size is None:
            return None
        if assignment.split == "examples":
            size //= ranks
        totals[reader.rank] += size // sequence_bytes
    return [totals[0]] * ranks if alike else totals


def steps_per_rank(sequences: Sequence[int], batch: int) -> list[int]:
    """Optimiser steps that each rank's own sequences are enough for. `batch` counts sequences
    over all ranks, as `train.batch` does."""
    share = max(1, batch // len(sequences))
    return [own // share for own in sequences]


def hang_risk(steps: Sequence[int]) -> bool:
    """Whether a loop whose ranks do not agree on the end would hang: some rank has more."""
    return len(set(steps)) > 1


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
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
