"""Mode reshard with real files and real workers: who reads what is what the plan said."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from bitwatch.plan import reading
from bitwatch.plan.facts import DataFacts
from bitwatch.record import events, rundir
from tests.trainer.data.given import accounts, read_rows
from trainer.data import files as looking
from trainer.data import row_groups, source
from trainer.data.account import Desk
from trainer.data.feed import Feed
from trainer.data.stream import PackedRows
from trainer.failures import Failed

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

ROW_BYTES = 8  # of a row with its newline: one row, one sequence


def write_files(folder: Path, groups: Sequence[Sequence[int]]) -> configuration.Data:
    """A parquet file for each list of row group sizes; row j of file i is "iii-jjj"."""
    for number, sizes in enumerate(groups):
        name = folder / f"part-{number:03}.parquet"
        schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
        with pq.ParquetWriter(name, schema) as writer:
            row = 0
            for size in sizes:
                text = [f"{number:03}-{i:03}" for i in range(row, row + size)]
                writer.write_table(pa.table({"n": range(size), "text": text}, schema=schema))
                row += size
    return configuration.Data(source=str(folder / "*.parquet"), sharding="reshard", workers=0)


def settings(data: configuration.Data, ranks: int, context: int = 64) -> configuration.Config:
    demo = configuration.load(configuration.bundled("configs/demo.toml"))
    demo.data, demo.parallel.ranks, demo.model.context = data, ranks, context
    demo.train.batch = demo.train.micro_batch = ranks
    return demo


def plan_of(config: configuration.Config) -> reading.DataPlan:
    text = source.training(config.data)
    shards, _ = looking.look(text, "text", empty_allowed=True)
    facts = DataFacts(format=text.kind, num_shards=len(shards), shards=shards)
    return reading.plan(config, facts, "reshard")


def packed(
    data: configuration.Data, run: rundir.RunDir, rank: int, ranks: int, sequence_bytes: int
) -> PackedRows:
    shards = row_groups.open_shards(source.training(data), "text")
    share = row_groups.RowGroups(shards, "text", rank, ranks, 1 if data.shuffle else None)
    return PackedRows(share, "text", sequence_bytes, 4, Desk(run.path, 1, rank, "train"))


CASES: list[tuple[list[list[int]], int, int]] = [
    ([[3, 1, 4], [1, 5]], 2, 2),
    ([[2] * 9, [7], [1, 1, 30]], 2, 3),  # unequal files
    ([[60], [1, 1, 1]], 2, 2),  # one huge row group
    ([[4, 4]], 2, 3),  # fewer than readers
    ([[3, 3, 3], [], [5, 2]], 3, 0),  # a file without rows; the ranks read
    ([[1], [2], [3], [4]], 1, 2),
]


@pytest.mark.parametrize(("groups", "ranks", "workers"), CASES)
def test_readers_read_what_the_plan_says_and_every_row_once(
    tmp_path: Path, run: rundir.RunDir, groups: list[list[int]], ranks: int, workers: int
) -> None:
    data = write_files(tmp_path, groups)
    data.workers = workers
    wanted = [f"{n:03}-{i:03}" for n, sizes in enumerate(groups) for i in range(sum(sizes))]
    by_rank = [
        sorted(read_rows(packed(data, run, rank, ranks, ROW_BYTES), data)) for rank in range(ranks)
    ]
    # Sorted, a rank's rows are a run of all rows, and the runs follow each other.
    assert [row for rows in by_rank for row in rows] == wanted
    plan = plan_of(settings(data, ranks))
    assert plan.rows_per_rank == [len(rows) for rows in by_rank]
    told = accounts(run)
    assert plan.readers == len(told)
    assert plan.readers_idle == sum(account.state == "idle" for account in told.values())
    for reader in plan.assignment:
        account = told[reader.rank, reader.worker]
        assert (account.shards, account.rows) == (reader.shards, reader.rows)
        assert account.state == ("done" if reader.shards else "idle")


def test_a_readers_rows_follow_each_other(tmp_path: Path) -> None:
    data = write_files(tmp_path, [[2, 5, 1, 3], [4, 4]])
    shards = row_groups.open_shards(source.training(data), "text")
    read = [
        [row["text"] for row in row_groups.RowGroups(shards, "text", rank, 2, None).read(w, 2, 0)]
        for rank in range(2)
        for w in range(2)
    ]
    everything = [f"{n:03}-{i:03}" for n, size in enumerate((11, 8)) for i in range(size)]
    assert [row for rows in read for row in rows] == everything
    assert all(read)


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_shuffle_moves_whole_row_groups_the_same_way_each_time(
    tmp_path: Path, epoch: int
) -> None:
    data = write_files(tmp_path, [[3] * 12, [3] * 12])
    shards = row_groups.open_shards(source.training(data), "text")

    def read(seed: int | None, epoch: int) -> list[str]:
        share = row_groups.RowGroups(shards, "text", 0, 1, seed)
        share.set_epoch(epoch)
        return [row["text"] for worker in range(2) for row in share.read(worker, 2, 0)]

    plain, shuffled = read(None, epoch), read(7, epoch)
    assert Counter(shuffled) == Counter(plain) and shuffled != plain
    assert read(7, epoch) == shuffled != read(7, epoch + 1)
    assert read(8, epoch) != shuffled
    assert read(None, epoch + 1) == plain
    threes = {tuple(plain[i : i + 3]) for i in range(0, len(plain), 3)}
    assert {tuple(shuffled[i : i + 3]) for i in range(0, len(shuffled), 3)} == threes


@pytest.mark.parametrize("workers", [0, 2])
def test_the_plans_numbers_hold_for_the_bundled_text(run: rundir.RunDir, workers: int) -> None:
    data = configuration.Data(source=configuration.BUNDLED_TEXT, workers=workers)
    config = settings(data, ranks=3, context=16_384)
    plan = plan_of(config)
    sequence_bytes = configuration.bytes_per_sequence(config.model)
    taken = []
    for rank in range(3):
        feed = Feed(packed(data, run, rank, 3, sequence_bytes), data, 1, pin_memory=False)
        taken.append(sum(1 for _ in iter(feed.take, None)))
        feed.close()
    assert (plan.num_shards, plan.readers_idle, plan.mode) == (32, 0, "reshard")
    assert plan.steps_per_epoch == pytest.approx(min(taken), rel=0.02)
    measured = 100 * (max(taken) - min(taken)) / max(taken)
    assert plan.imbalance_percent == pytest.approx(measured, abs=0.7)
    rows = Counter[int]()
    for (rank, _), account in accounts(run).items():
        rows[rank] += account.rows
    assert [rows[rank] for rank in range(3)] == plan.rows_per_rank


def test_every_way_in_which_arrow_stores_text(tmp_path: Path) -> None:
    texts = pa.array(["a", None, "a"])
    ways = [texts, texts.cast(pa.large_string()), texts.dictionary_encode()]
    for i, column in enumerate(ways):
        pq.write_table(pa.table({"text": column}), tmp_path / f"{i}.parquet")
    text = source.training(configuration.Data(source=str(tmp_path)))
    shards = row_groups.open_shards(text, "text")
    read = [row["text"] for row in row_groups.RowGroups(shards, "text", 0, 1, None).read(0, 0, 0)]
    assert read == ["a", None, "a"] * 3


def test_one_file_is_open_and_little_of_it_in_memory(tmp_path: Path) -> None:
    """A row group of 64 MB of text costs a few, and a file is closed before the next."""
    lines = [np.random.default_rng(1).bytes(320).hex() for _ in range(100)]
    table = pa.table({"text": lines * 1000})
    for i in range(2):
        pq.write_table(table, tmp_path / f"{i}.parquet", use_dictionary=False, compression="none")
    text = source.training(configuration.Data(source=str(tmp_path)))
    share = row_groups.RowGroups(row_groups.open_shards(text, "text"), "text", 0, 1, None)

    def opened() -> int:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
        links = [f"/proc/self/fd/{n}" for n in numbers]
        there = [os.readlink(link) for link in links if os.path.lexists(link)]
        return sum(name.startswith(str(tmp_path)) for name in there)

    del table
    before, most = pa.total_allocated_bytes(), 0
    for row, _ in enumerate(share.read(0, 0, 0)):
        if row % 5000 == 0:
            most = max(most, pa.total_allocated_bytes() - before)
            assert opened() == 1
    assert row == 199_999
    assert most < 24 << 20
    assert opened() == 0


@pytest.mark.slow
def test_a_run_goes_on_at_the_same_place_of_a_shuffled_text(
    small: Callable[..., configuration.Config], launch: Callable[..., Any]
) -> None:
    """Two workers: what is planned, what is read, and a resume, in which
    the workers are spawned instead of forked."""
    config = small(
        data={"workers": 2, "sharding": "reshard", "shuffle": 1},
        train={"steps": 6},
        checkpoint={"every": 3},
    )
    whole = launch(config)
    assert whole.wait() == 0, whole.log()
    plan = plan_of(config)
    told = {key[:3]: account for key, account in whole.readers().items()}
    for reader in plan.assignment:
        assert told[reader.rank, "train", reader.worker].shards == reader.shards
    shutil.rmtree(whole.run.checkpoints() / "step-6")
    config.data.start_method = "spawn"
    rest = launch(config, run=whole.run)
    assert rest.wait() == 0, rest.log()
    assert "at the same place of the text" in rest.of(events.Note)[0].text
    before = {step.step: step.loss for step in whole.of(events.Step)}
    after = {step.step: step.loss for step in rest.of(events.Step)}
    assert after == {step: before[step] for step in (4, 5, 6)}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", '{"text": "x"}\n', 'a.jsonl has none; use "indexed"'),
        ("a.txt", "x\n", 'a.txt has none; use "indexed"'),
        ("a.parquet", "no", "a.parquet is not a whole parquet file"),
    ],
)
def test_what_has_no_row_groups_is_refused(
    tmp_path: Path, name: str, content: str, says: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Failed, match=says):
        row_groups.open_shards(source.training(configuration.Data(source=str(tmp_path))), "text")


def test_files_without_any_row_are_refused(tmp_path: Path) -> None:
    data = write_files(tmp_path, [[], []])
    with pytest.raises(Failed, match="there is no row in"):
        row_groups.open_shards(source.training(data), "text")
