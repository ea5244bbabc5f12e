"""A source that fails now and then gives every row once; one that is broken ends in a sentence."""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from bitwatch.record import events, rundir
from bitwatch.record.journal import read_all
from tests.conftest import until
from trainer.data import retry, row_groups, sharing, source
from trainer.data.account import Desk
from trainer.data.feed import Feed
from trainer.data.stream import PackedRows, Rows
from trainer.failures import Failed

ROW_BYTES = 8  # of a row with its newline: one row, one sequence


def write_files(folder: Path, files: int, rows: int, group: int = 4) -> configuration.Data:
    for file in range(files):
        table = pa.table({"text": [f"{file:03}-{row:03}" for row in range(rows)]})
        pq.write_table(table, folder / f"part-{file}.parquet", row_group_size=group)
    return configuration.Data(source=str(folder / "*.parquet"), workers=0)


def share_of(data: configuration.Data, mode: str, rank: int = 0, ranks: int = 1) -> Rows:
    text = source.training(data)
    if mode == "reshard":
        seed = 1 if data.shuffle else None
        shards = row_groups.open_shards(text, "text")
        return row_groups.RowGroups(shards, "text", rank, ranks, seed)
    return sharing.share(sharing.open_rows(text, "text"), rank, ranks, data.shuffle, seed=1)


def read(share: Rows, tell: Any = None) -> list[str]:
    rows = retry.exactly_once(lambda given: share.read(0, 0, given), tell or pytest.fail)
    return [row["text"] for row in rows]


def move(before: str, after: str, folder: Path) -> None:
    for file in folder.glob(f"{before}-*.parquet"):
        file.rename(folder / file.name.replace(before, after))


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize(
    ("mode", "files", "ranks", "shuffle"),
    [
        ("as-is", 4, 2, 0),  # shards are split over the ranks
        ("as-is", 3, 2, 0),  # every rank reads everything
        ("reshard", 3, 2, 0),
        ("reshard", 3, 2, 1),
    ],
)
def test_rows_come_once_from_files_that_are_away_for_a_while(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    files: int,
    ranks: int,
    shuffle: int,
    epoch: int,
) -> None:
    monkeypatch.setattr(retry, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(sharing, "NOTED_ROWS", 7)
    data = write_files(tmp_path, files, 25)
    data.shuffle = shuffle
    for rank in range(ranks):
        share = share_of(data, mode, rank, ranks)
        share.set_epoch(epoch)
        undisturbed = read(share)
        assert undisturbed
        said: list[str] = []

        def hear(error: str, said: list[str] = said) -> None:
            said.append(error)
            if error.count("try 2 of 2"):  # the last moment
                move("away", "part", tmp_path)

        rows: list[str] = []
        for row in retry.exactly_once(lambda given, share=share: share.read(0, 0, given), hear):
            rows.append(row["text"])
            if len(rows) % 12 == 0:  # whatever is opened from here on is not there
                move("part", "away", tmp_path)
        move("away", "part", tmp_path)
        assert rows == undisturbed
        assert len(said) >= 2
        assert "FileNotFoundError" in said[0] and "try 1 of 2 in 0 s" in said[0]


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize(
    ("mode", "shuffle"), [("as-is", 0), ("as-is", 16), ("reshard", 0), ("reshard", 1)]
)
def test_what_lies_behind_the_rows_given_is_always_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, shuffle: int, epoch: int
) -> None:
    monkeypatch.setattr(sharing, "NOTED_ROWS", 7)
    data = write_files(tmp_path, 3, 11)
    data.shuffle = shuffle
    share = share_of(data, mode)
    share.set_epoch(epoch)
    rows = list(share.read(0, 0, 0))
    assert sorted(row["text"] for row in rows) == sorted(
        f"{file:03}-{row:03}" for file in range(3) for row in range(11)
    )
    for given in (32, 1, 13, 28):
        broken_off = share.read(0, 0, 0)
        assert [next(broken_off) for _ in range(given)] == rows[:given]
        assert list(share.read(0, 0, given)) == rows[given:]


def test_a_reader_says_that_it_tries_again_until_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a real worker, which is told nothing of the tries: its account and log say them."""
    monkeypatch.setattr(retry, "PAUSES_S", (0.02,) * 5000)
    run = rundir.create(tmp_path / "runs", "test")
    rundir.new_attempt(run)
    data = write_files(tmp_path, 2, 12)
    data.workers = 1
    stream = PackedRows(
        share_of(data, "reshard"), "text", ROW_BYTES, 4, Desk(run.path, 1, 0, "train")
    )
    (tmp_path / "part-1.parquet").rename(tmp_path / "away")

    def accounts() -> list[events.Reader]:
        files = (run.attempt(1) / "readers").glob("*.jsonl")
        records = [record for path in files for record in read_all(path)[0]]
        return [record for record in records if isinstance(record, events.Reader)]

    def put_back() -> None:
        until(lambda: any(account.error for account in accounts()), "an account of the error")
        (tmp_path / "away").rename(tmp_path / "part-1.parquet")

    feed = Feed(stream, data, 1, pin_memory=False)
    helper = threading.Thread(target=put_back)
    helper.start()
    rows = []
    while (sequence := feed.take()) is not None:
        rows.append(bytes(sequence[0].tolist()).decode().strip())
    helper.join()
    feed.close()
    assert feed.trouble == ""
    assert rows == [f"{file:03}-{row:03}" for file in range(2) for row in range(12)]
    told = next(account for account in accounts() if account.error)
    assert (told.state, told.rows) == ("reading", 12)
    assert "part-1.parquet" in told.error and "try 1 of 5000" in told.error
    last = accounts()[-1]
    assert (last.state, last.error, last.rows) == ("done", "", 24)
    assert "rank 0, train reader 0: FileNotFoundError" in capfd.readouterr().out


@pytest.mark.parametrize("mode", ["as-is", "reshard"])
def test_what_stays_away_ends_the_stream_with_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(retry, "PAUSES_S", (0.0, 0.0))
    share = share_of(write_files(tmp_path, 2, 4), mode)
    (tmp_path / "part-1.parquet").unlink()
    said: list[str] = []
    with pytest.raises(Failed, match=r"FileNotFoundError: .*part-1.parquet.*again in 2 more tries"):
        read(share, said.append)
    assert [line.partition("; try ")[2] for line in said] == ["1 of 2 in 0 s", "2 of 2 in 0 s"]


@pytest.mark.parametrize("mode", ["as-is", "reshard"])
def test_a_damaged_file_is_not_tried_again(tmp_path: Path, mode: str) -> None:
    data = write_files(tmp_path, 2, 400, group=400)
    share = share_of(data, mode)
    content = bytearray((tmp_path / "part-1.parquet").read_bytes())
    start = 4 + 40  # behind the magic word and a page's head: the page itself
    content[start : start + 60] = bytes(60)
    (tmp_path / "part-1.parquet").write_bytes(content)
    with pytest.raises(Exception) as caught:
        read(share)  # `tell` fails the test
    assert not isinstance(caught.value, Failed)


def raised(action: Any) -> BaseException:
    with pytest.raises(BaseException) as caught:
        action()
    return caught.value


def test_which_errors_may_pass(tmp_path: Path) -> None:
    import huggingface_hub.errors
    from huggingface_hub.utils import httpx

    def hub_says(status: int) -> Exception:
        answer = httpx.Response(status, request=httpx.Request("GET", "http://hub"))
        return huggingface_hub.errors.HfHubHTTPError("no", response=answer)

    (tmp_path / "x.gz").write_bytes(b"no gzip")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no parquet PAR1")
    may = [
        OSError(errno.EIO, "Input/output error"),
        OSError(errno.ESTALE, "Stale file handle"),
        ConnectionResetError(),
        TimeoutError(),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("closed"),
        hub_says(503),
        hub_says(429),
        raised(lambda: pq.read_table(tmp_path / "gone.parquet")),
    ]
    may_not = [
        ValueError("a row has no column 'text'"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        hub_says(401),
        hub_says(404),
        raised((gzip.GzipFile(tmp_path / "x.gz")).read),
        raised(lambda: pq.read_table(tmp_path / "x.parquet")),
    ]
    assert [error for error in may if not retry.passing(error)] == []
    assert [error for error in may_not if retry.passing(error)] == []


def test_the_pauses_grow_and_end_within_two_minutes() -> None:
    assert list(retry.PAUSES_S) == sorted(retry.PAUSES_S)
    assert sum(retry.PAUSES_S) < 120


@pytest.fixture(scope="module")
def from_hub(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, Any]]:
    """The rows of a hub's files, larger than what is read of them at once; and what came."""
    folder = tmp_path_factory.mktemp("hub")
    (folder / "files").mkdir()
    random = np.random.default_rng(1)
    wanted = []
    for file in range(2):
        rows = [f"{file}-{row}" for row in range(1000)]
        padding = [random.bytes(4000).hex() for _ in rows]  # a hub's file is read by 5 MB
        text = [f"{row} {more}" for row, more in zip(rows, padding, strict=True)]
        pq.write_table(
            pa.table({"text": text}), folder / f"files/train-{file}.parquet", row_group_size=100
        )
        wanted += rows
    environment = {**os.environ, "no_proxy": "127.0.0.1"}
    environment.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.trainer.data.read_hub", str(folder)],
        env=environment,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        check=True,
        timeout=120,
    )
    return wanted, json.loads(done.stdout)


@pytest.mark.parametrize("mode", ["as-is", "reshard"])
def test_a_hub_that_fails_again_and_again_gives_every_row_once(
    from_hub: tuple[list[str], dict[str, Any]], mode: str
) -> None:
    wanted, came = from_hub
    assert came[mode]["rows"] == wanted
    assert came[mode]["failed"] == len(came[mode]["said"]) > 1
    assert "520" in came[mode]["said"][0]
