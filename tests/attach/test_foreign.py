"""A training that bitwatch did not start, as a run: found again, watched, and left alone. The
watcher works in this process, on stand-ins and on logs that the tests write."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bitwatch import launching, listing
from bitwatch.attach import commands, foreign, past, target
from bitwatch.attach.follow import Feed
from bitwatch.attach.watcher import Watcher
from bitwatch.record import rundir
from bitwatch.record.follow import Follower, lives
from bitwatch.record.rundir import Lock, RunDir, RunDirError
from bitwatch.record.view import View, view
from bitwatch.sense.processes import Key, read_stat, send_signal
from bitwatch.sense.training import Member, Training
from bitwatch.stop import stop_run
from bitwatch.supervise import begin
from bitwatch.supervise.evidence import Machine
from bitwatch.supervise.known_runs import KnownRuns
from tests.attach.conftest import NOBODY_UID, Start, needs_root, recorded
from tests.conftest import until
from tests.supervise.standins import write

LINE = "iter {}: loss {:.4f}, time 130.11ms, mfu 1.20%\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("number of parameters: 123.59M\n" + steps(range(10)))
    return path


def steps(numbers: range) -> str:
    return "".join(LINE.format(n, 5 / (n + 1)) for n in numbers)


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


@contextmanager
def watching(run: RunDir) -> Iterator[Watcher]:
    lock = Lock(run)
    watcher = Watcher(run, lock)
    try:
        watcher.tick()
        watcher.read_logs()
        yield watcher
    finally:
        watcher.close()
        lock.release()


def look(watcher: Watcher) -> None:
    watcher.read_logs()
    watcher.tick()


def seen(run: RunDir, after_s: float = 0.0) -> View:
    follower = Follower(run)
    follower.poll()
    return view(follower.state, time.time() + after_s, follower.liveness())


def points(picture: View) -> int:
    return sum(sum(series.counts) for _, series in picture.loss)


def training_of(launcher: Key, rank: Key, logs: tuple = ()) -> Training:
    """As the finder tells it, of two stand-ins."""
    stats = [read_stat(launcher[0]), read_stat(rank[0])]
    assert stats[0] and stats[1]
    members = (
        Member(stats[0], "agent", "torchrun train_gpt.py"),
        Member(stats[1], "rank", "python train_gpt.py", rank=0, world_size=1),
    )
    return Training(launcher, "torchrun train_gpt.py", "/", time.time(), members, 1, logs)


@pytest.fixture
def watched(home: Path, start: Start) -> tuple[RunDir, Key, Key]:
    """A launcher and a rank, recorded by somebody who watched before."""
    launcher, rank = start(), start()
    run = foreign.of_training(home, training_of(launcher, rank))
    write(run, recorded(launcher, "agent"), recorded(rank, "rank", rank=0))
    return run, launcher, rank


# -- a run is made once ---------------------------------------------------------------------


def test_the_same_log_and_the_same_training_are_the_same_run(
    home: Path, log: Path, watched: tuple[RunDir, Key, Key]
) -> None:
    first = foreign.of_log(home, log)
    assert foreign.of_log(home, log).path == first.path
    run, launcher, rank = watched
    assert foreign.of_training(home, training_of(launcher, rank)).path == run.path
    assert foreign.of_training(home, training_of(rank, rank)).path == run.path  # by its rank
    assert run.id.split("-")[3] == "train_gpt"
    identity = run.identity()
    assert identity.foreign and identity.root == launcher
    assert len(rundir.list_runs(home)) == 2


def test_what_a_word_means(home: Path, log: Path, tmp_path: Path, start: Start) -> None:
    assert target.meant(home, str(log)) == log
    sleeper, _ = start()
    (tmp_path / "empty.log").touch()
    (tmp_path / "odd.log").write_bytes(b"\x7fELF\0\0\1\2" * 500)
    os.mkfifo(tmp_path / "pipe.log")
    run = rundir.create(home, "ours")
    inside = run.path / "rank0.log"
    inside.write_text("a line\n")
    ours = target.meant(home, str(inside))
    assert isinstance(ours, RunDir) and ours.path == run.path
    for word, why in (
        (str(sleeper), f"pid {sleeper} is sleep"),
        ("4194303", "no process 4194303"),
        ("99999999999999999999", "no process 99999999999999999999"),
        (str(tmp_path), "is a folder without a run"),
        (str(tmp_path / "empty.log"), "is empty"),
        (str(tmp_path / "odd.log"), "is a binary file"),
        (str(tmp_path / "pipe.log"), "is a pipe"),
        ("nothing", "no such run"),
    ):
        with pytest.raises(RunDirError, match=why):
            target.meant(home, word)


@needs_root("start a process of another user")
def test_a_process_of_another_user_is_refused(home: Path, start: Start) -> None:
    theirs, _ = start(user=NOBODY_UID)
    with pytest.raises(RunDirError, match="of another user"):
        target.meant(home, str(theirs))


# -- a log alone ----------------------------------------------------------------------------


def test_a_log_is_followed_and_who_watches_next_goes_on_where_it_was(home: Path, log: Path) -> None:
    run = foreign.of_log(home, log)
    with watching(run) as watcher:
        append(log, steps(range(10, 20)))
        look(watcher)
        now = seen(run)
        assert (now.state, now.step, now.built, points(now)) == ("running", 19, 123590000, 20)
        assert now.note == "" and now.foreign
        (link,) = run.logs(1).iterdir()
        assert link.name == "train.log" and link.resolve() == log
    assert seen(run).note == "nobody watches it now"
    append(log, steps(range(20, 30)))
    with watching(run):
        assert (seen(run).step, points(seen(run))) == (29, 30)


def test_a_log_that_stands_still_is_stalled_and_then_lost(home: Path, log: Path) -> None:
    run = foreign.of_log(home, log)
    with watching(run):
        assert seen(run, 29.0).state == "running"
        assert seen(run, 60.0).state == "stalled"
        later = seen(run, 1200.0)
        assert later.state == "lost"
        assert later.cause == "no process has it open; the last line is 20 minutes old"
    row = listing.row(run)
    assert row.note.startswith("watched, not started by bitwatch")


def test_an_old_log_is_as_old_as_its_file(home: Path, log: Path) -> None:
    os.utime(log, (0, time.time() - 7200))
    run = foreign.of_log(home, log)
    with watching(run):
        assert seen(run).state == "lost" and "120 minutes old" in seen(run).cause


def test_a_log_that_has_said_that_it_is_done_is_done(home: Path, log: Path) -> None:
    append(log, "{'train_runtime': 12.5, 'train_loss': 2.25, 'epoch': 1.0}\n")
    os.utime(log, (0, time.time() - 60))
    run = foreign.of_log(home, log)
    with watching(run) as watcher:
        look(watcher)
        assert seen(run).state == "done"
        append(log, steps(range(10, 12)))
        look(watcher)
        assert (seen(run).state, seen(run).attempt) == ("running", 2)


@pytest.mark.parametrize("how", ["rotated", "truncated", "deleted"])
def test_a_log_that_changes_under_who_watches_it(home: Path, log: Path, how: str) -> None:
    run = foreign.of_log(home, log)
    with watching(run) as watcher:
        writer = log.open("a")
        if how == "rotated":
            log.rename(log.with_suffix(".1"))
            writer.close()
            writer = log.open("a")
        elif how == "truncated":
            os.truncate(log, 0)
        else:
            log.unlink()
        look(watcher)
        writer.write(steps(range(10, 14)))
        writer.flush()
        look(watcher)
        look(watcher)
        assert (seen(run).attempt, seen(run).step, points(seen(run))) == (1, 13, 14)
        writer.close()


def test_a_log_that_begins_again_is_another_attempt(home: Path, log: Path) -> None:
    append(log, steps(range(5)))
    run = foreign.of_log(home, log)
    with watching(run):
        now = seen(run)
        assert (now.attempt, now.step) == (2, 4)
        follower = Follower(run)
        follower.poll()
        ended = follower.state.journal.attempts[1].ended
        assert ended and ended.state == "lost" and "fall back from 9 to 0" in ended.cause
        assert run.logs(2).joinpath("train.log").exists()


def test_of_a_long_log_the_newest_comes_first_and_the_rest_thinned_out(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "MOST_STEPS", 1000)
    log = tmp_path / "long.log"
    log.write_text("number of parameters: 0.12M\n" + steps(range(12_000)))
    run = foreign.of_log(home, log)
    with watching(run) as watcher:
        first = seen(run)
        assert first.step == 11_999 and first.built is None
        assert points(first) < 7_000

        def filled() -> bool:
            watcher.tick()
            return run.history(1).exists()

        until(filled, "the past to be read")
        filled_up = seen(run)
        assert filled_up.built == 120_000
        assert filled_up.loss[0][1].starts[0] < 20
        assert points(first) + 400 < points(filled_up) <= points(first) + 1000
        append(log, steps(range(12_000, 12_002)))
        look(watcher)
        assert seen(run).step == 12_001


# -- processes ------------------------------------------------------------------------------


def test_whose_processes_end_is_lost_with_the_last_line_of_its_log(
    watched: tuple[RunDir, Key, Key], log: Path
) -> None:
    run, launcher, rank = watched
    follow(run, log)
    with watching(run) as watcher:
        assert seen(run).state == "running" and seen(run).processes
        for key in (rank, launcher):
            send_signal(*key, signal.SIGKILL)
        ended(run, watcher)
    now = seen(run)
    assert now.state == "lost"
    assert now.cause.endswith("its log does not say how; last line: " + steps(range(9, 10)).strip())
    assert {exit.pid for exit in now.exits} == {rank[0]}
    assert run.exit(1).exists()
    assert KnownRuns(run.path.parent).facts()[0].live == 0


def test_a_training_that_ends_while_it_is_attached_to_is_on_record(
    home: Path, start: Start
) -> None:
    launcher, rank = start(), start()
    found = training_of(launcher, rank)
    for key in (rank, launcher):
        send_signal(*key, signal.SIGKILL)
    until(lambda: not lives(*rank) and not lives(*launcher), "their end")
    run = foreign.of_training(home, found)
    with watching(run) as watcher:
        ended(run, watcher)
    now = seen(run)
    assert now.state == "lost" and {exit.pid for exit in now.exits} == {rank[0]}
    assert now.cause == "its processes have ended, and no log of it is known"


def test_whose_log_tells_why_has_failed(watched: tuple[RunDir, Key, Key], log: Path) -> None:
    run, launcher, rank = watched
    follow(run, log)
    with watching(run) as watcher:
        append(log, 'Traceback (most recent call last):\n  File "train_gpt.py", line 3, in f\n')
        append(log, "    g()\nValueError: odd\n")
        for key in (rank, launcher):
            send_signal(*key, signal.SIGKILL)
        ended(run, watcher)
    assert seen(run).state == "failed" and "ValueError: odd" in seen(run).cause


def test_what_a_dead_launcher_leaves_needs_a_confirmation_and_before_it_nothing_is_touched(
    watched: tuple[RunDir, Key, Key],
) -> None:
    run, launcher, rank = watched
    machine = Machine(run.path.parent)

    def classes() -> dict[int, str]:
        return {verdict.seen.stat.pid: verdict.class_ for verdict in machine.verdicts()}

    with watching(run) as watcher:
        assert classes()[launcher[0]] == classes()[rank[0]] == "live"
        (facts,) = machine.runs
        assert facts.foreign and facts.live == 1 and not facts.orphaned
        send_signal(*launcher, signal.SIGKILL)
        ended(run, watcher)
        assert seen(run).state == "lost"
        assert seen(run).cause.startswith(f"its launcher (pid {launcher[0]}) is gone and 1 ")
        assert classes()[rank[0]] == "confirm"
        assert lives(*rank)
        look(watcher)  # goes on recording what is left
        assert any(row.pid == rank[0] for row in seen(run).processes)
        said = commands.end_left(run, [launcher, rank])
        assert f"rank 0 (pid {rank[0]})" in said and "1 process had ended already" in said
        assert not lives(*rank)


def test_it_is_never_stopped_relaunched_resumed_or_taken_over(
    watched: tuple[RunDir, Key, Key],
) -> None:
    run, launcher, rank = watched
    doings: list[Callable[[], object]] = [
        lambda: commands.stop(run, 1),
        lambda: commands.relaunch(run, 1, "same"),
        lambda: stop_run(run, now=True),
        lambda: launching.resumable(run),
    ]
    for doing in doings:
        with pytest.raises(RunDirError, match="bitwatch did not start it"):
            doing()
    assert begin.take_over(run, "a test", "clean") is None
    begin.close_if_dead(run, "a test")
    assert seen(run).state == "starting" and seen(run).note == "nobody watches it now"
    (facts,) = KnownRuns(run.path.parent).facts()
    assert facts.live == 1 and not facts.orphaned and not facts.unclosed
    for key in (rank, launcher):
        send_signal(*key, signal.SIGKILL)
    until(lambda: not lives(*rank) and not lives(*launcher), "their end")
    (facts,) = KnownRuns(run.path.parent).facts()
    assert not facts.unclosed and not facts.orphaned
    assert begin.close_record(run, "a test") is False


# -- who watches ----------------------------------------------------------------------------


def test_of_two_viewers_one_has_the_watcher_and_the_other_takes_over(home: Path, log: Path) -> None:
    run = foreign.of_log(home, log)
    feeds = [Feed(run), Feed(run)]
    try:
        for feed in feeds:
            feed.start()
            feed.go_on()
        until(run.lock_is_held, "a watcher")
        until(lambda: all(feed.latest and feed.latest.view.step == 9 for feed in feeds), "steps")
        one = [feed for feed in feeds if feed.watcher is not None]
        holder = run.holder()
        assert holder and holder.pid in {feed.watcher for feed in one}
        first = next(feed for feed in feeds if feed.watcher == holder.pid)
        second = next(feed for feed in feeds if feed is not first)
        assert first.latest and first.latest.mode == "live"
        first.close()
        until(lambda: not lives(holder.pid, holder.starttime), "the first watcher to leave")
        append(log, steps(range(10, 15)))
        until(lambda: second.latest and second.latest.view.step == 14, "the second one's watcher")
        assert second.watcher is not None
    finally:
        for feed in feeds:
            feed.close()
    until(lambda: not run.lock_is_held(), "nobody to watch")


def follow(run: RunDir, log: Path) -> None:
    """As if the log had been found with the training."""
    identity = run.identity()
    identity.logs = [str(log)]
    rundir.write_identity(run, identity)


def ended(run: RunDir, watcher: Watcher) -> None:
    def closed() -> bool:
        look(watcher)
        return run.exit(1).exists()

    until(closed, "the end to be on record")
