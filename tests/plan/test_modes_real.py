"""The other two modes against what really reads: row groups of real files, and the permutation
of a real index, each through real workers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from bitwatch import config as configuration
from bitwatch.plan import reading, row_groups, sharding
from bitwatch.plan.facts import DataFacts, Shard
from bitwatch.record import rundir
from trainer import prepare
from trainer.data import files, source
from trainer.data.account import Desk
from trainer.data.feed import Feed
from trainer.data.index import Index
from trainer.data.indexed import IndexedBlocks
from trainer.data.row_groups import RowGroups

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

RULES = settings(deadline=None, suppress_health_check=list(HealthCheck))
WORKERS = st.sampled_from([0, 0, 0, 1, 2, 3])


def write_files(folder: Path, groups: list[list[int]]) -> list[Shard]:
    """A parquet file for each list of row group sizes; what their footers say."""
    for number, sizes in enumerate(groups):
        schema = pa.schema([("text", pa.string())])
        with pq.ParquetWriter(folder / f"{number:03}.parquet", schema) as writer:
            row = 0
            for size in sizes:
                text = [f"{number} {i}" for i in range(row, row + size)]
                writer.write_table(pa.table({"text": text}, schema=schema))
                row += size
    text = source.training(configuration.Data(source=str(folder)))
    return files.look(text, "text", empty_allowed=True)[0]


class Rows(IterableDataset[Any]):
    """A rank's share, each row with the worker that read it."""

    def __init__(self, share: RowGroups) -> None:
        super().__init__()
        self.share = share

    def __iter__(self) -> Iterator[tuple[int, str]]:
        here = get_worker_info()
        worker, workers = (here.id, here.num_workers) if here else (0, 0)
        for row in self.share.read(worker, workers, 0):
            yield worker, row["text"]


@settings(RULES, max_examples=60)
@given(
    groups=st.lists(st.lists(st.integers(1, 6), max_size=5), min_size=1, max_size=4),
    ranks=st.integers(1, 4),
    workers=WORKERS,
    batch=st.integers(1, 4),
    drop_last=st.booleans(),
)
@example(groups=[[1] * 9, [1] * 9], ranks=4, workers=2, batch=2, drop_last=False)  # 18 % 4 = 2
@example(groups=[[5]], ranks=3, workers=2, batch=2, drop_last=False)  # fewer than ranks
@example(groups=[[], [6, 1, 1], []], ranks=2, workers=1, batch=2, drop_last=True)  # no rows
def test_row_groups_are_read_by_the_readers_that_the_plan_says(
    groups: list[list[int]], ranks: int, workers: int, batch: int, drop_last: bool
) -> None:
    assume(any(groups))
    with tempfile.TemporaryDirectory() as folder:
        shards = write_files(Path(folder), groups)
        plan = row_groups.Dealt(shards, ranks, workers).assignment()
        read: dict[tuple[int, int], list[str]] = {}
        batches = [0] * ranks
        for rank in range(ranks):
            share = RowGroups(shards, "text", rank, ranks, None)
            loader: DataLoader[Any] = DataLoader(
                Rows(share),
                batch_size=batch,
                num_workers=workers,
                drop_last=drop_last,
                collate_fn=list,
                multiprocessing_context="fork" if workers else None,
            )
            for rows in loader:
                batches[rank] += 1
                for worker, text in rows:
                    read.setdefault((rank, worker), []).append(text)
            for worker in range(max(1, workers)):
                reader = plan.readers[rank * max(1, workers) + worker]
                assert share.shards(worker, workers) == reader.shards
    assert sharding.batches_per_rank(plan, batch, drop_last=drop_last) == batches
    line = [f"{n} {row}" for n, sizes in enumerate(groups) for row in range(sum(sizes))]
    at = 0
    for reader in plan.readers:
        assert reader.rows is not None
        said = line[at : at + reader.rows]
        at += reader.rows
        kept = len(said) // batch * batch if drop_last else len(said)
        assert read.get((reader.rank, reader.worker), []) == said[:kept]
    assert at == len(line)  # each row once: no copies, and nothing is read twice


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """2,000 bytes of text, every two of which are different."""
    folder = tmp_path_factory.mktemp("index")
    write_text = "".join(chr(33 + i // 90) + chr(33 + i % 90) for i in range(999)) + "x"
    pq.write_table(pa.table({"text": [write_text]}), folder / "a.parquet")
    config = configuration.load(configuration.bundled("configs/demo.toml"))
    config.data = configuration.Data(source=str(folder / "a.parquet"), cache=str(folder / "cache"))
    return prepare.prepare(config, lambda *_: None, lambda: None, 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> rundir.RunDir:
    made = rundir.create(tmp_path_factory.mktemp("runs"), "test")
    rundir.new_attempt(made)
    return made


@settings(RULES, max_examples=50)
@given(
    bytes_each=st.sampled_from([2, 4, 8, 50, 100]),
    ranks=st.integers(1, 4),
    workers=WORKERS,
    share=st.integers(1, 5),
    seed=st.integers(0, 3),
)
@example(bytes_each=100, ranks=2, workers=3, share=2, seed=1)  # 5 steps for 3 workers
@example(bytes_each=100, ranks=2, workers=3, share=5, seed=1)  # 2 steps for 3 workers
@example(bytes_each=8, ranks=3, workers=2, share=1, seed=1)  # 250 % 3 = 1
def test_an_index_gives_each_sequence_once_and_every_rank_the_same_number_of_steps(
    index: Index,
    run: rundir.RunDir,
    bytes_each: int,
    ranks: int,
    workers: int,
    share: int,
    seed: int,
) -> None:
    config = configuration.load(configuration.bundled("configs/demo.toml"))
    config.parallel.ranks, config.data.workers = ranks, workers
    config.train.batch = share * ranks
    config.model.context = 8 * bytes_each
    config.model.parity = False
    assert configuration.bytes_per_sequence(config.model) == bytes_each
    shards = [Shard(name="a.parquet", rows=1, text_bytes=index.about.bytes)]
    plan = reading.plan(config, DataFacts(num_shards=1, shards=shards), "indexed")
    given_out: list[bytes] = []
    steps, busy = [], 0
    for rank in range(ranks):
        desk = Desk(run.path, 1, rank, "train")
        stream = IndexedBlocks(index, bytes_each, share, rank, ranks, seed, desk, 0, 0, workers)
        busy += min(max(1, workers), -(-stream.steps // stream.block_steps))
        feed = Feed(stream, config.data, share, pin_memory=False)
        steps.append(0)
        while (taken := feed.take()) is not None:
            steps[-1] += 1
            given_out += [bytes(sequence.tolist()) for sequence in taken]
        assert feed.trouble == ""
        feed.close()
    assert plan.steps_per_rank == steps == [plan.steps_per_epoch] * ranks
    assert plan.sequences_per_rank == [share * steps[0]] * ranks
    assert (plan.readers_busy, plan.hang_risk, plan.copies) == (busy, False, 1)
    whole = index.sequences(bytes_each)
    assert len(set(given_out)) == len(given_out) == len(whole) // (share * ranks) * share * ranks
    assert set(given_out) <= {bytes(sequence.tolist()) for sequence in whole}
