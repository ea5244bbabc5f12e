"""The shard that a reader says it is in is the one that its row came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from bitwatch import config as configuration
from trainer.data import row_groups, sharing, source
from trainer.data.row_groups import RowGroups
from trainer.data.stream import Rows


def write_shards(folder: Path, rows: Sequence[int], kind: str = "parquet") -> configuration.Data:
    """One file of rows[i] rows for each i; row j of file i is "iii-jjj"."""
    for shard, count in enumerate(rows):
        text = [f"{shard:03}-{row:03}" for row in range(count)]
        if kind == "parquet":
            path = folder / f"part-{shard:03}.parquet"
            pq.write_table(pa.table({"text": text}), path, row_group_size=3)
        else:
            lines = "".join(f'{{"text": "{line}"}}\n' for line in text)
            (folder / f"part-{shard:03}.jsonl").write_text(lines)
    return configuration.Data(source=str(folder / f"*.{kind}"), workers=0)


class Watched(IterableDataset[Any]):
    """Each row with the shard that the reader says it is in."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        here = get_worker_info()
        worker, workers = (here.id, here.num_workers) if here is not None else (0, 0)
        if self.rows.shards(worker, workers):
            for row in self.rows.read(worker, workers, 0):
                yield row["text"], self.rows.where()[0]


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize(
    ("kind", "ranks", "workers"), [("parquet", 2, 2), ("parquet", 1, 0), ("jsonl", 4, 0)]
)
def test_the_shard_that_a_stream_is_in_is_the_one_that_its_row_came_from(
    tmp_path: Path, kind: str, ranks: int, workers: int, epoch: int
) -> None:
    data = write_shards(tmp_path, [5, 7, 3, 6, 9, 4], kind)
    seen = set()
    for rank in range(ranks):
        rows = sharing.open_rows(source.training(data), "text")
        share = sharing.share(rows, rank, ranks, 0, seed=1)
        share.set_epoch(epoch)
        loader = DataLoader(Watched(share), batch_size=None, num_workers=workers)
        for row, shard in loader:
            assert shard == int(row[:3]), row
            seen.add(row)
    assert len(seen) == 34


def test_a_shuffle_is_in_all_its_shards_at_once_and_moves_while_its_buffer_fills(
    tmp_path: Path,
) -> None:
    data = write_shards(tmp_path, [400, 400])
    rows = sharing.open_rows(source.training(data), "text")
    share = sharing.share(rows, 0, 1, 600, seed=1)
    assert share.shards(0, 0) == [0, 1]
    places = [share.where()]
    for number, _ in enumerate(share.read(0, 0, 0)):
        places.append(share.where())
        if number == 2:
            break
    assert {shard for shard, _ in places} == {None}
    assert len({place for _, place in places}) == 4
    alone = sharing.share(rows, 0, 2, 600, seed=1)
    assert alone.shards(0, 0) == [0]
    assert alone.where()[0] == 0


def test_in_mode_reshard_the_row_group_is_known(tmp_path: Path) -> None:
    data = write_shards(tmp_path, [5, 7])
    shards = row_groups.open_shards(source.training(data), "text")
    share = RowGroups(shards, "text", 0, 1, seed=1)
    assert share.where()[0] is None
    for row, shard in Watched(share):
        file, number = int(row[:3]), int(row[4:])
        assert shard == f"part-{file:03}.parquet[{number // 3}:{number // 3 + 1}]"
