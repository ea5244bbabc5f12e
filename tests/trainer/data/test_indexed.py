"""An epoch of an indexed text: every sequence once, in one order, whoever reads it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from bitwatch import config as configuration
from bitwatch.record import events, rundir
from bitwatch.record.journal import read_all
from tests.trainer.conftest import make_small
from tests.trainer.data.conftest import data_of, write_parquet
from trainer import prepare, telemetry
from trainer.data import indexed
from trainer.data.account import Desk
from trainer.data.feed import Feed
from trainer.data.index import Index, Where
from trainer.data.indexed import IndexedBlocks
from trainer.data.state import LoaderState
from trainer.data.text import Text
from trainer.failures import Failed

SEQUENCE_BYTES = 8  # of a row with its newline: one row, one sequence
COUNT = 1008
BATCH = 12  # over all ranks: an epoch is 84 steps
SEED = 5


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Row i is "000000i"."""
    folder = tmp_path_factory.mktemp("indexed")
    write_parquet(folder / "a.parquet", [f"{row:07}" for row in range(COUNT)])
    config = make_small()
    config.data = data_of(folder / "a.parquet", folder / "cache")
    return prepare.prepare(config, lambda *_: None, lambda: None, 1)


class Reading:
    """All ranks' feeds of one epoch, and what they give step by step."""

    def __init__(self, index: Index, run: rundir.RunDir) -> None:
        self.index, self.run = index, run

    def __call__(
        self,
        ranks: int,
        workers: int,
        batch: int = BATCH,
        epoch: int = 0,
        position: int = 0,
        steps: int | None = None,
        start_method: Any = "fork",
    ) -> list[list[int]]:
        """The rows of each step, of rank 0 first; one list a step."""
        data = configuration.Data(source="x", workers=workers, start_method=start_method)
        share = batch // ranks
        of_ranks = []
        for rank in range(ranks):
            desk = Desk(self.run.path, 1, rank, "train")
            stream = IndexedBlocks(
                self.index, SEQUENCE_BYTES, share, rank, ranks, SEED, desk, epoch, position, workers
            )
            feed = Feed(stream, data, share, pin_memory=False)
            taken = []
            while steps is None or len(taken) < steps:
                sequences = feed.take()
                if sequences is None:
                    break
                assert sequences.shape == (share, SEQUENCE_BYTES)
                assert sequences.dtype == torch.uint8
                taken.append([int(bytes(row.tolist())) for row in sequences])
            assert feed.trouble == ""
            feed.close()
            of_ranks.append(taken)
        assert len({len(taken) for taken in of_ranks}) == 1
        return [list(itertools.chain(*step)) for step in zip(*of_ranks, strict=True)]

    def accounts(self) -> list[events.Reader]:
        paths = sorted((self.run.attempt(1) / "readers").glob("*.jsonl"))
        records = [read_all(path)[0][-1] for path in paths]
        assert all(isinstance(record, events.Reader) for record in records)
        return records  # type: ignore[return-value]


@pytest.fixture
def reading(index: Index, run: rundir.RunDir) -> Reading:
    return Reading(index, run)


def order(epoch: int) -> list[int]:
    """The published rule: numpy's permutation for [seed, epoch]."""
    return np.random.default_rng([SEED, epoch]).permutation(COUNT).tolist()


# ---------------------------------------------------------------------------------------
# The order


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (2, 2), (1, 3), (4, 1)])
def test_an_epoch_is_every_sequence_once_in_the_same_order(
    reading: Reading, ranks: int, workers: int
) -> None:
    steps = reading(ranks, workers, epoch=1)
    assert len(steps) == COUNT // BATCH
    assert list(itertools.chain(*steps)) == order(1)
    accounts = reading.accounts()
    assert len(accounts) == ranks * max(1, workers)
    assert sum(account.samples for account in accounts) == COUNT
    assert sum(account.bytes for account in accounts) == COUNT * SEQUENCE_BYTES
    assert {(account.state, *account.shards) for account in accounts} == {("done", "index")}


def test_workers_that_are_spawned_open_the_text_again(reading: Reading) -> None:
    steps = reading(1, 1, position=5 * BATCH, start_method="spawn")
    assert list(itertools.chain(*steps)) == order(0)[5 * BATCH :]


def test_epochs_and_seeds_differ() -> None:
    assert order(0) != order(1)
    assert indexed.permutation(COUNT, SEED, 0).tolist() == order(0)
    assert indexed.permutation(COUNT, SEED + 1, 0).tolist() != order(0)


def test_other_ranks_workers_and_batches_go_on_at_the_same_place(reading: Reading) -> None:
    first = reading(2, 2, steps=20)
    second = reading(4, 1, batch=8, position=20 * BATCH, steps=30)
    position = 20 * BATCH + 30 * 8
    third = reading(1, 0, batch=16, position=position)
    seen = Counter(itertools.chain(*first, *second, *third))
    assert (COUNT - position) % 16 == 0  # nothing is dropped
    assert seen == Counter(range(COUNT))


def test_less_than_a_batch_is_dropped_at_the_end(reading: Reading) -> None:
    batch = 100
    for ranks in (1, 2):
        steps = reading(ranks, 1, batch=batch)
        assert list(itertools.chain(*steps)) == order(0)[: COUNT // batch * batch]
    assert reading(1, 0, batch=batch, position=950) == []
    assert reading(1, 0, batch=batch, position=5000) == []


def test_a_reader_without_a_block_says_that_it_is_idle(reading: Reading) -> None:
    assert len(reading(1, 3, batch=COUNT // 2)) == 2
    states = [(account.state, account.shards) for account in reading.accounts()]
    assert states == [("done", ["index"]), ("done", ["index"]), ("idle", [])]


def test_blocks_are_large_and_whole_steps(index: Index, run: rundir.RunDir) -> None:
    def blocks(share: int) -> IndexedBlocks:
        return IndexedBlocks(index, SEQUENCE_BYTES, share, 0, 1, SEED, Desk(run.path, 1, 0, "t"))

    assert blocks(12).block_steps == 84 // indexed.LEAST_BLOCKS
    assert blocks(500).block_steps == 1
    assert blocks(1).block_steps == COUNT // indexed.LEAST_BLOCKS
    index_of_many = Index(index.folder)
    index_of_many.about.bytes = SEQUENCE_BYTES * 10_000_000
    many = IndexedBlocks(index_of_many, SEQUENCE_BYTES, 100, 0, 1, SEED, Desk(run.path, 1, 0, "t"))
    assert many.block_steps * 100 * SEQUENCE_BYTES <= indexed.BLOCK_BYTES
    assert (many.block_steps + 1) * 100 * SEQUENCE_BYTES > indexed.BLOCK_BYTES


def test_an_error_ends_the_feed_with_its_sentence(
    index: Index, run: rundir.RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Index, "sequences", broken)
    for workers in (0, 1):
        desk = Desk(run.path, 1, 0, f"train{workers}")
        stream = IndexedBlocks(index, SEQUENCE_BYTES, BATCH, 0, 1, SEED, desk, workers=workers)
        feed = Feed(stream, configuration.Data(source="x", workers=workers), BATCH, False)
        assert feed.take() is None
        assert "Input/output error" in feed.trouble
        feed.close()


# ---------------------------------------------------------------------------------------
# As a rank opens it


@pytest.fixture
def text(
    index: Index, run: rundir.RunDir, small: Callable[..., configuration.Config]
) -> Callable[..., Text]:
    """The text of one rank of two, on a machine where torch.distributed is not started."""

    class Place:
        rank, ranks, device = 1, 2, torch.device("cpu")

    def open_text(data: configuration.Data | None = None, **sections: dict[str, Any]) -> Text:
        config = small(parallel={"ranks": 2}, **sections)
        config.data = data or data_of(index.folder / "any", workers=0)
        config.data.source = configuration.BUNDLED_TEXT
        log = telemetry.Telemetry(run, 1, 1)
        return Text(config, Place(), log, config.train.batch // 2)  # type: ignore[arg-type]

    where = Where(str(index.folder), index.about.key, COUNT, index.about.bytes)
    run.index(1).write_bytes(msgspec.json.encode(where))
    return open_text


def test_a_rank_takes_its_part_of_every_batch(text: Callable[..., Text]) -> None:
    opened = text(train={"batch": 4})
    feed = opened.feed(epoch=2, position=8)
    first = feed.take()
    assert first is not None
    rule = np.random.default_rng([1, 2]).permutation(COUNT)[8 + 2 : 8 + 4].tolist()
    assert [int(bytes(row.tolist())) for row in first] == rule
    told = opened.end_of_epoch(LoaderState(epoch=2, position=COUNT), 7, feed)
    feed.close()
    left = f"{COUNT % 4} sequences are left, less than a batch"
    assert told.text == f"epoch 2 ended at step 7 on all ranks: {left}"
    assert (told.rank, told.epoch, told.step, told.unread) == (1, 2, 7, None)


def test_the_order_is_said_by_key_seed_and_length_alone(
    text: Callable[..., Text], index: Index
) -> None:
    said = text().order
    assert said["text"] == index.about.key
    assert text(train={"batch": 8, "micro_batch": 4}).order == said
    assert text(run={"seed": 2}).order != said
    assert text(model={"context": 128}).order != said


def test_a_text_shorter_than_a_batch_is_refused_at_the_start(text: Callable[..., Text]) -> None:
    with pytest.raises(Failed, match=r"train.batch: the text has 8,064 bytes, less than one batch"):
        text(train={"batch": 1012})


def test_without_a_prepared_text_a_rank_says_what_comes_before(
    text: Callable[..., Text], run: rundir.RunDir
) -> None:
    run.index(1).unlink()
    with pytest.raises(Failed, match=r"index.json: does not say where the text is; prepare.py"):
        text()


def test_as_is_skips_to_a_position(text: Callable[..., Text]) -> None:
    data = configuration.Data(source="", workers=0, sharding="as-is")
    opened = text(data)
    whole = opened.feed(0)
    for _ in range(3):
        fourth = whole.take()
    later = opened.feed(0, position=2 * 4).take()
    assert fourth is not None and later is not None
    assert torch.equal(fourth, later)
