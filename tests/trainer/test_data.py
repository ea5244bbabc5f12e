"""Packing, who reads what, and the readers' own accounts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from bitwatch import config as configuration
from bitwatch.record import rundir
from tests.trainer.data.given import accounts, read_rows
from trainer.data import sharing, source
from trainer.data.account import Desk
from trainer.data.feed import Feed
from trainer.data.rowtext import text_bytes
from trainer.data.stream import PackedRows
from trainer.failures import Failed

ROW_BYTES = 8  # of a row with its newline: one row, one sequence


def write_shards(folder: Path, rows: Sequence[int]) -> configuration.Data:
    """One parquet file of rows[i] rows for each i; row j of file i is "iii-jjj"."""
    for shard, count in enumerate(rows):
        text = [f"{shard:03}-{row:03}" for row in range(count)]
        pq.write_table(pa.table({"text": text}), folder / f"part-{shard:03}.parquet")
    return configuration.Data(source=str(folder / "*.parquet"), workers=0)


def packed(
    data: configuration.Data, run: rundir.RunDir, rank: int = 0, ranks: int = 1, epoch: int = 0
) -> PackedRows:
    rows = sharing.open_rows(source.training(data), data.text_column)
    share = sharing.share(rows, rank, ranks, data.shuffle, seed=1)
    desk = Desk(run.path, 1, rank, "train")
    return PackedRows(share, data.text_column, ROW_BYTES, 4, desk, epoch)


# ---------------------------------------------------------------------------------------
# Packing


def test_rows_are_packed_with_newlines_and_a_carry(tmp_path: Path, run: rundir.RunDir) -> None:
    texts = ["abc", "defghijk\n", "", "é", "x" * 20]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    data = configuration.Data(source=str(tmp_path / "a.jsonl"), workers=0)
    whole = "".join(t if t.endswith("\n") else t + "\n" for t in texts).encode()
    blocks = list(packed(data, run))
    sequences = torch.cat([b for b in blocks if not isinstance(b, str)])
    kept = len(whole) // ROW_BYTES * ROW_BYTES
    assert bytes(sequences.flatten().tolist()) == whole[:kept]
    assert all(len(block) <= 4 for block in blocks)
    (account,) = accounts(run).values()
    assert (account.rows, account.bytes, account.samples) == (5, len(whole), kept // ROW_BYTES)


def test_a_missing_value_is_an_empty_row() -> None:
    assert text_bytes({"text": None}, "text") == b"\n"


@pytest.mark.parametrize(
    ("row", "says"), [({"body": "x"}, "no column 'text'"), ({"text": 5}, "holds int, not text")]
)
def test_a_row_without_text_is_named(row: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        text_bytes(row, "text")


def test_a_column_that_is_not_there_is_refused_before_reading(
    tmp_path: Path, run: rundir.RunDir
) -> None:
    text = source.training(write_shards(tmp_path, [1]))
    with pytest.raises(Failed, match="no column 'body'; there are text"):
        sharing.open_rows(text, "body")


def test_a_file_that_cannot_be_opened_is_a_sentence(tmp_path: Path) -> None:
    data = write_shards(tmp_path, [4])
    (tmp_path / "part-000.parquet").write_bytes(b"PAR1 not parquet")
    with pytest.raises(Failed, match=r"data.source: cannot be opened: ArrowInvalid: .*"):
        sharing.open_rows(source.training(data), "text")


def test_an_error_ends_the_stream_with_one_sentence(tmp_path: Path, run: rundir.RunDir) -> None:
    data = write_shards(tmp_path, [4, 4])
    (tmp_path / "part-001.parquet").write_bytes(b"PAR1 not parquet")
    *blocks, last = packed(data, run)
    assert isinstance(last, str)
    assert "\n" not in last
    assert [len(block) for block in blocks] == [4]
    (account,) = accounts(run).values()
    assert (account.state, account.error, account.rows) == ("failed", last, 4)


# ---------------------------------------------------------------------------------------
# Who reads what


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("shards", "ranks"), [(1, 2), (2, 2), (3, 2), (4, 2), (5, 3)])
@pytest.mark.parametrize("epoch", [0, 1])
def test_ranks_together_read_every_row_once(
    tmp_path: Path, run: rundir.RunDir, shards: int, ranks: int, workers: int, epoch: int
) -> None:
    data = write_shards(tmp_path, [5 + 2 * shard for shard in range(shards)])
    data.workers = workers
    read = Counter(
        row
        for rank in range(ranks)
        for row in read_rows(packed(data, run, rank, ranks, epoch), data)
    )
    wanted = {f"{s:03}-{row:03}" for s in range(shards) for row in range(5 + 2 * s)}
    assert read == Counter(wanted)


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize(("shards", "ranks", "workers"), [(6, 2, 2), (3, 2, 2), (1, 1, 2)])
def test_readers_report_the_shards_they_read(
    tmp_path: Path, run: rundir.RunDir, shards: int, ranks: int, workers: int, epoch: int
) -> None:
    data = write_shards(tmp_path, [6] * shards)
    data.workers = workers
    for rank in range(ranks):
        rows = read_rows(packed(data, run, rank, ranks, epoch), data)
        mine = [account for (r, _), account in accounts(run).items() if r == rank]
        assert len(mine) == workers
        assert {int(row[:3]) for row in rows} == {s for a in mine for s in a.shards}
        assert sum(account.samples for account in mine) == len(rows)
        for account in mine:
            assert account.state == ("done" if account.shards else "idle")
    if epoch == 0 and shards % ranks == 0:  # the rule that the planner counts by
        for (rank, worker), account in accounts(run).items():
            rule = [s for s in range(shards) if (s % ranks, s // ranks % workers) == (rank, worker)]
            assert account.shards == rule


def test_a_shuffle_is_the_same_on_all_ranks(tmp_path: Path, run: rundir.RunDir) -> None:
    data = write_shards(tmp_path, [20, 20, 20])
    data.shuffle = 16
    halves = [read_rows(packed(data, run, rank, 2), data) for rank in range(2)]
    assert sorted(halves[0] + halves[1]) == [f"{s:03}-{r:03}" for s in range(3) for r in range(20)]
    assert halves[0] != sorted(halves[0])


def test_a_feed_gives_whole_steps_only(tmp_path: Path, run: rundir.RunDir) -> None:
    data = write_shards(tmp_path, [11])
    feed = Feed(packed(data, run), data, 3, pin_memory=False)
    taken = []
    while (sequences := feed.take()) is not None:
        taken.append(len(sequences))
    assert taken == [3, 3, 3]
    assert feed.take() is None


def test_a_dead_worker_is_a_trouble_and_not_an_end(
    tmp_path: Path, run: rundir.RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_shards(tmp_path, [4])
    data.workers = 1
    monkeypatch.setenv("BITWATCH_PARENT", "1")  # not this process: the worker leaves at once
    feed = Feed(packed(data, run), data, 1, pin_memory=False)
    assert feed.take() is None
    assert "worker" in feed.trouble
    feed.close()


def test_there_are_no_sleeps_in_shuffled_streams() -> None:
    assert datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN == 0
