"""From a source to the rows that each reader reads: among the ranks, and among a rank's
dataloader workers.

Everything that depends on how Hugging Face datasets is organised inside is in this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import datasets
import pyarrow as pa
from datasets.distributed import split_dataset_by_node
from datasets.packaged_modules.parquet.parquet import Parquet

from trainer.data import source
from trainer.data.account import Shard
from trainer.failures import Failed, sentence

# Here as well, for a worker under spawn: it unpickles a stream that it never opened. A pass
# over shuffled parquet would sleep 5 s at its end (datasets 5.2).
datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN = 0

NOTED_ROWS = 1000  # between two places from which a broken stream can go on


def open_rows(text: source.Source, column: str) -> datasets.IterableDataset:
    """All rows of a source, unsplit. Raises Failed when it cannot be opened, or is known to
    have no such column; some formats only tell while they are read, and the reader then does.
    """
    try:
        rows = source.open_stream(text)
    except Failed:
        raise
    except Exception as error:  # any of datasets, fsspec, pyarrow
        raise Failed(f"{text.key}: cannot be opened: {sentence(error)}") from error
    known = rows.column_names
    if known is not None and column not in known:
        raise Failed(f"data.text_column: no column {column!r}; there are {', '.join(known)}")
    return rows


class Streamed:
    """A rank's share of rows as `datasets` streams them: as-is."""

    def __init__(self, rows: datasets.IterableDataset, *, buffered: bool) -> None:
        self._rows = rows
        self._buffered = buffered
        self._noted: tuple[int, dict[str, Any] | None] = (0, None)
        self._given: list[int] = []  # shards of this reader, in the order in which it reads them
        self._at = 0  # rows that have come, those that were passed over included
        self._live = True  # whether the state that `datasets` shows is the one it reads by

    def set_epoch(self, epoch: int) -> None:
        self._rows.set_epoch(epoch)

    def shards(self, worker: int, workers: int) -> list[int | str]:
        """Which shards of the dataset a reader is given, as positions in its list of shards.

        workers: of the rank's DataLoader; 0 when the rank itself reads. The answer is taken
        from what `datasets` will iterate over, in the current epoch (a later one deals them
        out anew), not from a rule: an idle reader is seen here even when no library warns.
        """
        part = self._rows._prepare_ex_iterable_for_iteration()
        if workers:
            if not part.split_shard_indices_by_worker(workers, worker, contiguous=False):
                return []
            part = part.shard_data_sources(num_shards=workers, index=worker, contiguous=False)
        everything = _shards(self._rows._ex_iterable)
        self._given = [everything.index(shard) for shard in _shards(part)]
        return [*sorted(self._given)]

    def read(self, worker: int, workers: int, given: int) -> Iterator[dict[str, Any]]:
        """A reader's rows behind the first `given`; in a DataLoader's worker `datasets` finds
        out by itself which reader this is.

        It goes on from the newest place that was noted in an earlier call for the same rows,
        and passes over the rest. What a shuffle buffer holds is in no place that could be
        noted: the rows of a buffer are read again from the first.
        """
        if not given:
            self._noted = (0, None)
        at, place = self._noted
        self._rows.load_state_dict(place)
        self._live = place is None
        _one_try_each()
        for row in self._rows:
            at += 1
            self._at = at
            if not self._buffered and at % NOTED_ROWS == 0:
                self._noted = (at, self._rows.state_dict())
            if at > given:
                yield row

    def where(self) -> tuple[Shard, object]:
        """From the state of the iterable, as it reads. A shuffle takes rows of all its shards
        in turns, and after a place was loaded the outer state no longer shows the inner one."""
        state = self._rows._state_dict["examples_iterable"]
        while "examples_iterable" in state:
            state = state["examples_iterable"]
        order, shard = self._given, None
        if len(order) == 1:
            shard = order[0]
        elif self._live and state.get("shard_idx", len(order)) < len(order):
            shard = order[state["shard_idx"]]
        return shard, (self._at, str(state) if self._buffered else "")


def share(
    rows: datasets.IterableDataset, rank: int, ranks: int, shuffle: int, seed: int
) -> Streamed:
    """This rank's part. With shards that do not divide by the ranks, every rank reads
    everything and keeps every ranks-th row: what `datasets` does, and as-is means.

    shuffle: rows in the buffer, 0 for none. The seed is the same on all ranks, or they
    would lose and repeat rows between them.
    """
    if shuffle:
        rows = rows.shuffle(seed=seed, buffer_size=shuffle)
    return Streamed(split_dataset_by_node(rows, rank=rank, world_size=ranks), buffered=shuffle > 0)


def parquet_files(rows: datasets.IterableDataset) -> list[str] | None:
    """The files behind a stream, in the order of its shards; None when they are not parquet."""
    iterable = _innermost(rows._ex_iterable)
    builder = getattr(getattr(iterable, "generate_tables_fn", None), "__self__", None)
    names = getattr(iterable, "kwargs", {}).get("files")
    return list(names) if isinstance(builder, Parquet) and names else None


def _one_try_each() -> None:
    """Of its own, `datasets` tries to reach a hub 20 times, for minutes and untold: here whoever
    reads tries again (`retry`), and says so."""
    for name in ("STREAMING_READ", "STREAMING_OPEN"):
        setattr(datasets.config, f"{name}_MAX_RETRIES", 1)
        setattr(datasets.config, f"{name}_RETRY_INTERVAL", 0)
    datasets.config.STREAMING_READ_SERVER_UNAVAILABLE_RETRY_INTERVAL = 0
    datasets.config.STREAMING_READ_RATE_LIMIT_RETRY_INTERVAL = 0


def rows_of_shard(rows: datasets.IterableDataset, shard: int) -> Iterator[dict[str, Any]]:
    """The rows of one shard, as a stream of all of them gives them."""
    yield from rows.shard(rows.num_shards, shard)


def tables_of_shard(rows: datasets.IterableDataset, shard: int) -> Iterator[pa.Table] | None:
    """The rows of one shard as Arrow tables, or None where they do not come as tables.

    The tables are as large as what reads the files makes them. `IterableDataset.iter` would
    collect a number of rows, whatever their size.
    """
    part = rows.shard(rows.num_shards, shard).with_format("arrow")
    typed = part._prepare_ex_iterable_for_iteration()  # casts what `collected` gives
    collected = typed.ex_iterable
    if not collected.ex_iterable.iter_arrow:
        return None
    typed.ex_iterable = collected.ex_iterable
    return (table for _, table in typed.iter_arrow())


def _shards(iterable: object) -> list[tuple[object, ...]]:
    """What `datasets` counts as shards, below an iterable of examples: (file, ...) of each."""
    kwargs = getattr(_innermost(iterable), "kwargs", {})
    lists = [value for value in kwargs.values() if isinstance(value, list)]
    return list(zip(*lists, strict=True)) if lists else [()]


def _innermost(iterable: object) -> object:
    while hasattr(iterable, "ex_iterable"):
        iterable = iterable.ex_iterable
    return iterable
