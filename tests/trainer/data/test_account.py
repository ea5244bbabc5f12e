"""What readers say of themselves while they read, wait, are held up and die."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bitwatch.record import events, rundir
from bitwatch.record.journal import JournalWriter, read_all
from tests.conftest import PATIENCE_S, until
from tests.trainer.data.test_account_shards import write_shards
from trainer.data import account, lost, sharing, source
from trainer.data.account import Desk
from trainer.data.feed import Feed
from trainer.data.stream import PackedRows

ROW_BYTES = 8


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "SELDOM_S", 0.05)


def told(run: rundir.RunDir, worker: int = 0) -> list[events.Reader]:
    records = read_all(run.reader(1, 0, "train", worker, "0"))[0]
    return [record for record in records if isinstance(record, events.Reader)]


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "account"]


class Lines:
    """The lines of a file, which may be a pipe: reading it blocks as long as nobody writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def set_epoch(self, epoch: int) -> None: ...

    def shards(self, worker: int, workers: int) -> list[int | str]:
        return [self.path.name]

    def where(self) -> tuple[str, object]:
        return self.path.name, None

    def read(self, worker: int, workers: int, given: int) -> Iterator[dict[str, Any]]:
        with open(self.path) as file:
            for line in file:
                yield {"text": line}


def test_a_reader_that_is_held_up_says_where_and_since_when(
    tmp_path: Path, run: rundir.RunDir
) -> None:
    """Blocked in a read, then with a block that nobody takes, then at its end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    stream = PackedRows(Lines(pipe), "text", ROW_BYTES, 2, Desk(run.path, 1, 0, "train"))
    taken: list[Any] = []
    take, gone = threading.Event(), threading.Event()

    def consume() -> None:
        for block in stream:
            taken.append(block)
            take.wait()
        gone.set()

    threading.Thread(target=consume, daemon=True).start()
    with open(pipe, "w") as writer:
        writer.write("aaaaaaa\n")
        writer.flush()
        until(lambda: told(run)[-1].rows == 1, "the first row in the account")
        blocked = told(run)[-1]
        assert (blocked.state, blocked.samples, blocked.shard) == ("reading", 0, "pipe")
        assert blocked.moved <= blocked.t
        writer.write("bbbbbbb\nccccccc\n")
        writer.flush()
        until(lambda: told(run)[-1].state == "waiting", "the account of a reader that waits")
        waiting = told(run)[-1]
        assert (waiting.rows, waiting.samples, waiting.bytes) == (2, 2, 16)
        assert waiting.moved > blocked.moved
        take.set()
        until(lambda: told(run)[-1].rows == 3, "the last row in the account")
        assert told(run)[-1].state == "reading"
    assert gone.wait(60)
    assert [len(block) for block in taken] == [2, 1]
    states = [record.state for record in told(run)]
    assert states[:2] == ["starting", "reading"] and states[-1] == "done"
    assert not watchers()


def test_nothing_new_is_written_while_nothing_moves(tmp_path: Path, run: rundir.RunDir) -> None:
    told_by = Desk(run.path, 1, 0, "train").open(0, 0, 0, [3])
    looks: list[int] = []

    def where() -> tuple[int, object]:
        looks.append(1)
        return 3, len(looks) // 3  # a buffer that fills

    told_by.begin(where)
    until(lambda: len(looks) > 4, "a few looks")
    told_by.close()
    states = [(record.state, record.shard) for record in told(run)]
    moves = 1 + len(looks) // 3
    assert states == [("starting", None), *[("reading", 3)] * moves] and moves < len(looks)
    assert told(run)[-1].moved > told(run)[1].moved
    assert not watchers()


def test_an_unfinished_reader_leaves_no_thread_that_a_fork_would_copy(
    tmp_path: Path, run: rundir.RunDir
) -> None:
    (tmp_path / "text").write_text("aaaaaaa\n" * 100)
    iterator = iter(
        PackedRows(Lines(tmp_path / "text"), "text", ROW_BYTES, 2, Desk(run.path, 1, 0, "train"))
    )
    next(iterator)
    assert len(watchers()) == 1
    del iterator
    assert not watchers()
    assert told(run)[-1].state == "done"


def test_an_account_that_cannot_tell_its_shard_goes_on(run: rundir.RunDir) -> None:
    told_by = Desk(run.path, 1, 0, "train").open(0, 0, 0, [3])

    def broken() -> tuple[int, object]:
        raise KeyError("shard_idx")

    told_by.begin(broken)
    told_by.say("done")
    told_by.close()
    assert [(record.state, record.shard) for record in told(run)][1:] == [
        ("reading", None),
        ("done", None),
    ]


def test_the_longest_finished_read_is_known_to_the_next_epoch(run: rundir.RunDir) -> None:
    desk = Desk(run.path, 1, 0, "train")
    told_by = desk.open(0, 0, 0, [3])
    looks: list[int] = []

    def where() -> tuple[int, object]:
        looks.append(1)
        return 3, None

    told_by.begin(where)
    assert told(run)[-1].longest_read_s is None
    until(lambda: len(looks) > 5, "looks at one read")
    told_by.record.rows += 1
    told_by.waits()
    until(lambda: told(run)[-1].state == "waiting", "the read to have ended")
    longest = told(run)[-1].longest_read_s
    assert longest is not None and longest >= 3 * account.SELDOM_S
    seen = len(looks)
    until(lambda: len(looks) > seen + 10, "looks at a reader that waits")
    told_by.say("done")
    told_by.close()
    assert told(run)[-1].longest_read_s == longest
    after = desk.open(0, 0, 1, [3])
    assert after.record.longest_read_s == longest
    after.close()


def test_a_pause_between_two_tries_is_no_read(run: rundir.RunDir) -> None:
    told_by = Desk(run.path, 1, 0, "train").open(0, 0, 0, [3])
    looks: list[int] = []
    told_by.begin(lambda: (3, looks.append(1)))
    told_by.say_again("away")
    before = len(looks)
    until(lambda: len(looks) > before + 5, "looks at a reader that tries again")
    paused = len(looks) - before
    told_by.record.rows += 1
    told_by.say("reading")
    told_by.waits()
    until(lambda: told(run)[-1].state == "waiting", "the account to say so")
    told_by.close()
    # A read is timed by looks, of which a busy machine may have some outside of the pause too.
    assert (told(run)[-1].longest_read_s or 0.0) <= (len(looks) - paused) * account.SELDOM_S


class Full(JournalWriter):
    """A disk that has no room while `full`."""

    full = False

    def write(self, record: events.Record, *, last_word: bool = False) -> bool:
        return not self.full and super().write(record, last_word=last_word)


def test_what_found_no_room_is_said_when_there_is(
    run: rundir.RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "LEAVE_S", PATIENCE_S)
    journal = Full(run.reader(1, 0, "train", 0, "0"))
    told_by = account.Account(journal, events.Reader(shards=[3]))
    told_by.begin(lambda: (3, None))
    journal.full = True
    told_by.say("waiting")
    assert told(run)[-1].state == "reading"
    journal.full = False
    until(lambda: told(run)[-1].state == "waiting", "the account, late")
    journal.full = True
    told_by.say("done")
    room = threading.Timer(0.3, setattr, (journal, "full", False))
    room.start()
    told_by.close()
    assert told(run)[-1].state == "done"


def test_a_disk_that_is_full_or_hangs_holds_up_no_end(
    run: rundir.RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "LEAVE_S", 0.2)
    journal = Full(run.reader(1, 0, "train", 0, "0"))
    told_by = account.Account(journal, events.Reader(shards=[3]))
    journal.full = True
    told_by.say("done")
    told_by.close()
    told_by = account.Account(Full(journal.path), events.Reader(shards=[3]))
    told_by._lock.acquire()  # as a write that never returns
    ends = threading.Thread(target=lambda: (told_by.say("done"), told_by.close()), daemon=True)
    ends.start()
    ends.join(PATIENCE_S)
    assert not ends.is_alive()


def test_a_text_is_read_where_no_thread_can_be_started(
    tmp_path: Path, run: rundir.RunDir, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    (tmp_path / "text").write_text("aaaaaaa\n" * 4)
    stream = PackedRows(
        Lines(tmp_path / "text"), "text", ROW_BYTES, 2, Desk(run.path, 1, 0, "train")
    )

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert [len(block) for block in stream] == [2, 2]
    assert "can't start new thread, so nothing says what it does" in capfd.readouterr().out
    reading = [one for one in told(run) if one.state == "reading"]
    assert reading[-1].moved == 0.0  # nobody knows: it is not called stuck
    assert told(run)[-1].state == "done"


# ---------------------------------------------------------------------------------------
# Lost workers


def test_a_worker_that_is_killed_is_named_with_what_it_read(
    tmp_path: Path, run: rundir.RunDir
) -> None:
    data = write_shards(tmp_path, [400, 400])
    data.workers = 2
    share = sharing.share(sharing.open_rows(source.training(data), "text"), 0, 1, 0, 1)
    stream = PackedRows(share, "text", ROW_BYTES, 4, Desk(run.path, 1, 0, "train"))
    feed = Feed(stream, data, 1, pin_memory=False)
    assert feed.take() is not None
    pid = until(lambda: told(run, 1) and told(run, 1)[-1].state != "starting", "its account")
    pid = told(run, 1)[-1].pid
    try:  # torch's signal handler raises wherever this process happens to be
        os.kill(pid, signal.SIGKILL)
        while feed.take() is not None:
            pass
        said = feed.trouble
    except RuntimeError as error:
        said = lost.worker(error, run, 1, 0)
    assert re.fullmatch(
        rf"worker 1 of rank 0 \(pid {pid}\), (reading shard 1|with shard 1 open), was killed by "
        r"SIGKILL at \d\d:\d\d:\d\d",
        said,
    ), said
    feed.close()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            "DataLoader worker (pid 7) exited unexpectedly with exit code 3. Details are lost",
            "a worker of rank 0 (pid 7), ended with exit code 3 at ",
        ),
        (
            "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that",
            "a worker of rank 0 (pid 7), was killed by SIGBUS (/dev/shm may be full) at ",
        ),
        (
            "DataLoader worker (pid(s) 7, 8) exited unexpectedly",
            "a worker of rank 0 (pid 7) and a worker of rank 0 (pid 8), ended before its time at ",
        ),
        ("something else", ""),
    ],
)
def test_what_pytorch_says_of_a_lost_worker_is_understood(
    run: rundir.RunDir, error: str, says: str
) -> None:
    assert lost.worker(RuntimeError(error), run, 1, 0)[: len(says) or 1] == says
