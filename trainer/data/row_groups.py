"""Mode reshard: row groups of parquet files, dealt out to the readers by their size.

`datasets` can make shards of row groups too, but then opens the file and reads its footer anew
for each of them. A reader here has a contiguous run (`bitwatch.plan.row_groups`), one open file
at a time, and takes only the column of the text, in batches of bounded memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fsspec
import numpy as np
import pyarrow.parquet

from bitwatch.plan import row_groups
from bitwatch.plan.facts import Shard
from trainer.data import files, retry, sharing, source
from trainer.data.account import Shard as Name
from trainer.failures import Failed

BATCH_ROWS = 1024  # at most, as rows of Python
BATCH_BYTES = 4 << 20  # about, of their text
BUFFER_BYTES = 1 << 20  # read at a time: a column of a row group may be larger than memory
LOOKING_S = 8.0  # longest that a plan waits for the footers of a hub's files
FOOTERS_AT_ONCE = 8  # of a hub: each is a question or two over the network


class RowGroups:
    """A rank's share, as `PackedRows` reads it.

    seed: shuffles a reader's row groups, None to leave them in the order of the files. The
    order is a function of the seed, the epoch and the reader alone, and there is no buffer:
    with the same readers, a run that goes on finds the place where it was.
    """

    def __init__(
        self, shards: Sequence[Shard], column: str, rank: int, ranks: int, seed: int | None
    ) -> None:
        self._shards = shards
        self._column = column
        self._rank, self._ranks = rank, ranks
        self._seed = seed
        self._epoch = 0
        self._in: tuple[int, int] | None = None  # file, group

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def shards(self, worker: int, workers: int) -> list[int | str]:
        """What a reader is given, as plans and accounts call it: train-0.parquet[0:12]."""
        return [row_groups.name_of(self._shards, run) for run in self._runs(worker, workers)]

    def read(self, worker: int, workers: int, given: int) -> Iterator[dict[str, Any]]:
        """A reader's rows behind the first `given`. Whole row groups are passed over unread."""
        groups = [
            (run.file, group)
            for run in self._runs(worker, workers)
            for group in range(run.first, run.end)
        ]
        if self._seed is not None:
            reader = self._rank * max(1, workers) + worker
            order = np.random.default_rng([self._seed, self._epoch, reader])
            groups = [groups[i] for i in order.permutation(len(groups))]
        footers: dict[int, Any] = {}  # of this reader's files, each read once
        at, file = -1, None
        try:
            for place, group in groups:
                rows = (self._shards[place].group_rows or [])[group]
                if given >= rows:
                    given -= rows
                    continue
                self._in = place, group
                if file is None or place != at:
                    if file is not None:
                        file.close(force=True)
                    at, file = place, self._open(place, footers)
                for text in self._texts(file, place, group):
                    if given:
                        given -= 1
                        continue
                    yield {self._column: text}
        finally:
            if file is not None:
                file.close(force=True)

    def where(self) -> tuple[Name, object]:
        """The row group that it is in; every row of it is given as it comes."""
        if self._in is None:
            return None, None
        file, group = self._in
        return row_groups.name_of(self._shards, row_groups.Run(file, group, group + 1)), None

    def _runs(self, worker: int, workers: int) -> list[row_groups.Run]:
        dealt = row_groups.Dealt(self._shards, self._ranks, workers).runs()
        return dealt[self._rank * max(1, workers) + worker]

    def _open(self, place: int, footers: dict[int, Any]) -> pyarrow.parquet.ParquetFile:
        name = self._shards[place].name
        opened = pyarrow.parquet.ParquetFile(
            _open_remote(name) if "://" in name else name,
            metadata=footers.get(place),
            buffer_size=BUFFER_BYTES,
            pre_buffer=False,  # would hold a row group's whole column
        )
        footers[place] = opened.metadata
        return opened

    def _texts(self, file: pyarrow.parquet.ParquetFile, place: int, group: int) -> Iterator[Any]:
        shard = self._shards[place]
        rows = max(1, (shard.group_rows or [])[group])
        row_bytes = max(1, (shard.group_bytes or [])[group] // rows)
        for batch in file.iter_batches(
            batch_size=max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes)),
            row_groups=[group],
            columns=[self._column],
            use_threads=False,
        ):
            yield from batch.column(0).to_pylist()


def open_shards(text: source.Source, column: str) -> list[Shard]:
    """The footers of all files of a source, those without rows too. Raises Failed for a source
    that has no row groups, or cannot be read."""
    names: Sequence[str] | None = text.files if text.kind == "parquet" else None
    if text.hub is not None:
        names = sharing.parquet_files(source.open_stream(text))
    if names is None:
        raise Failed(
            'data.sharding: "reshard" deals out the row groups of parquet files, and '
            f'{text.hub or text.files[0]} has none; use "indexed", which reads any kind'
        )
    look = functools.partial(footer, key=text.key, column=column)
    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
        found = list(retry.exactly_once(lambda given: pool.map(look, names[given:]), print))
    if not any(shard.rows for shard in found):
        raise Failed(f"{text.key}: there is no row in {names[0]}, nor in another file")
    return found


def look(names: Sequence[str], key: str, column: str) -> list[Shard]:
    """The same for a plan: of all files, or none where that takes longer than LOOKING_S or a
    file does not answer."""
    pool = ThreadPoolExecutor(FOOTERS_AT_ONCE)
    try:
        asked = functools.partial(footer, key=key, column=column)
        return list(pool.map(asked, names, timeout=LOOKING_S))
    except Exception as error:
        if not retry.passing(error):
            raise
        return []
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def footer(name: str, key: str, column: str) -> Shard:
    """Of a file by its path, or on the hub (hf://...)."""
    with _open_remote(name) if "://" in name else open(name, "rb") as file:
        return files.footer(file, name, key, column)[0]


def _open_remote(url: str) -> Any:
    return fsspec.open(url, "rb").open()
