"""A log alone as a run: followed wherever its file goes, and judged by its lines."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from bitwatch import listing
from bitwatch.attach import foreign, keeping, log_alert, past
from bitwatch.attach.follow import Feed
from bitwatch.attach.log_watch import LogWatch
from bitwatch.attach.steps import Restart
from bitwatch.attach.watcher import Watcher
from bitwatch.record import events
from bitwatch.record.follow import Follower, lives
from bitwatch.record.rundir import Lock
from bitwatch.sense.training import Log
from bitwatch.supervise import notify
from tests.attach.watched import append, look, points, seen, steps, watching
from tests.conftest import until


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


def test_a_log_that_was_not_read_yet_has_no_place(home: Path, log: Path) -> None:
    """Whoever watches next would take it as a place up to which all is on record, and the
    beginning of the log as a training that began again."""
    run = foreign.of_log(home, log)
    lock = Lock(run)
    watcher = Watcher(run, lock)
    watcher.tick()
    assert not LogWatch(run, 0, 18).known_places
    watcher.read_logs()
    assert LogWatch(run, 0, 18).known_places == {str(log): watcher.logs.logs[str(log)].place}
    watcher.close()
    lock.release()
    unread = LogWatch(run, 0, 9)
    unread.add([Log(str(log), str(log), 0, "")], 1)
    unread.close()
    with watching(run):
        assert (seen(run).attempt, seen(run).step, points(seen(run))) == (1, 9, 10)


def test_a_loss_that_is_not_finite_is_an_alert_and_told_by_the_users_command(
    home: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    monkeypatch.setenv(notify.HANDED_DOWN, f"cat > {told}")
    run = foreign.of_log(home, log)
    with watching(run) as watcher:
        append(log, "step 10: loss nan\n")
        look(watcher)
        watcher.tick()
        (alert,) = [one for one in seen(run).alerts if one.id == "loss-not-finite"]
        assert alert.severity == "error" and "where it was started" in alert.next
        until(lambda: told.exists() and told.read_text(), "the command to be run")
    assert "the loss is not finite (nan): step 10" in told.read_text()


def test_a_training_that_begins_again_is_not_told_as_one_that_failed(
    home: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    monkeypatch.setenv(notify.HANDED_DOWN, f"cat >> {told}")
    run = foreign.of_log(home, log)
    with watching(run) as watcher:
        watcher._begin_attempt(Restart("its launcher starts its ranks again", ("failed", "first")))
        assert seen(run).attempt == 2 and not watcher._notifier.pids
        watcher._end("failed", "second")
        until(lambda: told.exists() and told.read_text(), "the command to be run")
    assert "attempt 2: the run failed: second" in told.read_text()


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


def test_a_log_in_the_time_of_another_zone_is_no_older_for_it(home: Path, log: Path) -> None:
    def stamped(numbers: range) -> str:
        then = datetime.fromtimestamp(time.time() - 7200)
        return "".join(f"{then:%Y-%m-%d %H:%M:%S} {line}\n" for line in steps(numbers).splitlines())

    log.write_text(stamped(range(10)))
    run = foreign.of_log(home, log)
    with watching(run) as watcher:
        append(log, stamped(range(10, 12)))
        look(watcher)
        assert (seen(run).state, seen(run).step) == ("running", 11)
        assert seen(run, 60.0).state == "stalled"


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


@pytest.mark.parametrize("how", ["deleted", "a pipe", "not readable as text"])
def test_a_log_that_cannot_be_followed_is_told_of_until_it_can_be_again(
    home: Path, log: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_alert, "LASTS_S", 0.1)
    run = foreign.of_log(home, log)

    def alerts(watcher: Watcher) -> list[events.Alert]:
        look(watcher)
        return [alert for alert in seen(run).alerts if alert.id == "log-unreadable"]

    with watching(run) as watcher:
        assert alerts(watcher) == []
        log.rename(log.with_suffix(".1"))
        if how == "a pipe":
            os.mkfifo(log)
        elif how != "deleted":
            log.write_bytes(b"\x7fELF\0\0\1\2" * 500)
        (alert,) = until(lambda: alerts(watcher), "an alert")
        says = {"deleted": "was deleted or moved", "a pipe": "is a pipe"}.get(how, "a binary file")
        assert alert.text.startswith(f"the log {log}: ") and says in alert.text and alert.next
    log.unlink(missing_ok=True)
    log.write_text(steps(range(10, 12)))
    with watching(run) as watcher:  # whoever watches next takes it back
        until(lambda: not alerts(watcher), "it to be well")
        assert seen(run).step == 11


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


@pytest.mark.parametrize("how", ["appended", "emptied", "replaced"])
def test_a_training_that_is_started_again_while_its_log_is_watched_is_another_attempt(
    home: Path, log: Path, how: str
) -> None:
    run = foreign.of_log(home, log)
    with watching(run) as watcher:
        append(log, steps(range(10, 45)))
        look(watcher)
        if how == "emptied":
            os.truncate(log, 0)
        elif how == "replaced":
            log.rename(log.with_suffix(".1"))
        append(log, steps(range(6)))
        look(watcher)
        assert (seen(run).attempt, seen(run).step) == (2, 5)


def fallen_back(told: list[object]) -> bool:
    return any(isinstance(one, Restart) for one in told)


def followed(home: Path, log: Path) -> LogWatch:
    """Of a training whose ranks are known to be the same as before."""
    logs = LogWatch(foreign.of_log(home, log), 1, 0)
    logs.ranks_known = True
    logs.add([Log(str(log), str(log), 0, "")], 1)
    return logs


def test_steps_that_were_there_before_may_be_of_an_earlier_training(home: Path, log: Path) -> None:
    logs = followed(home, log)
    assert not fallen_back(list(logs.new()))
    append(log, "another start\n")
    assert not fallen_back(list(logs.new()))
    append(log, steps(range(3)))
    told = list(logs.new())
    assert fallen_back(told)
    assert [one.step for one in told if isinstance(one, events.Step)] == [0, 1, 2]
    append(log, steps(range(3, 9)) + steps(range(4)))  # another epoch: its ranks are the same
    told = list(logs.new())
    assert not fallen_back(told)
    assert [one.step for one in told if isinstance(one, events.Step)][-4:] == [8, 9, 10, 11]
    logs.close()


@pytest.mark.parametrize("emptied", [False, True])
def test_other_ranks_or_an_emptied_log_may_begin_again(
    home: Path, log: Path, emptied: bool
) -> None:
    logs = followed(home, log)
    list(logs.new())
    append(log, steps(range(10, 15)))
    list(logs.new())
    if emptied:
        os.truncate(log, 0)
    else:
        logs.may_restart()
        append(log, steps(range(15, 17)))  # the last words of those before
        assert not fallen_back(list(logs.new()))
    append(log, steps(range(3)))
    assert fallen_back(list(logs.new()))
    logs.close()


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


# -- who watches ----------------------------------------------------------------------------


def test_of_two_viewers_one_has_the_watcher_and_the_other_takes_over(
    home: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "AGAIN_S", 0.3)
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
