"""The feed of a screen: newest first, then history, then news; and all that can go wrong
with a run directory while somebody looks at it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bitwatch.attach.follow import Feed, Reading
from bitwatch.attach.others import Other
from bitwatch.attach.telling import Snapshot
from bitwatch.record import events, kernel, rundir
from bitwatch.record.follow import GLANCE_BYTES, Follower
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.sense.processes import Key
from tests.attach.conftest import Start
from tests.conftest import PATIENCE_S, until
from tests.tui import recorded


def look(reading: Reading) -> Snapshot:
    reading.poll()
    while reading.behind:
        reading.fill(1.0)
    return reading.snapshot()


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return recorded.make(tmp_path / "runs")


@pytest.fixture
def ended(tmp_path: Path) -> RunDir:
    return recorded.make(tmp_path / "runs", ended=True)


@pytest.fixture
def supervised(run: RunDir) -> Iterator[RunDir]:
    lock = rundir.Lock(run)
    yield run
    lock.release()


def steps(first: int, last: int) -> list[events.Record]:
    return [
        events.Step(step=step, loss=1 / step, t=recorded.BEGAN + step, m=float(step), tokens=step)
        for step in range(first, last + 1)
    ]


def test_a_long_history_is_the_same_whether_read_at_once_or_newest_first(ended: RunDir) -> None:
    path = ended.rank(1, 0)
    path.unlink()
    records = steps(1, 4000)
    records[2000:2000] = [
        events.Evaluation(step=2000, loss=0.5, t=recorded.BEGAN + 2000, m=0.0),
        events.Checkpoint(step=2000, path="x", t=recorded.BEGAN + 2000, m=0.0),
        events.Step(step=2000, loss=float("nan"), t=recorded.BEGAN + 2000, m=0.0),
    ]
    recorded.write(path, records)
    with open(path, "r+b") as file:  # a line in the middle that is no record
        file.seek(path.stat().st_size // 2)
        file.readline()
        file.write(b"x")
    assert path.stat().st_size > 3 * GLANCE_BYTES
    whole = Follower(ended)
    whole.poll()
    reading = Reading(ended)
    reading.poll()
    first = reading.snapshot()
    assert first.filled < 1
    assert first.view.step == 4000
    assert reading.behind
    last = look(reading)
    assert last.filled == 1
    expected, found = whole.state.ranks[1, 0], last.view
    assert found.loss[0][1] == expected.loss
    assert found.loss[0][1].nonfinite_count == 1
    assert found.evaluations == expected.evaluations
    assert found.checkpoints == expected.checkpoints
    assert found.recent == expected.recent


def test_news_arrive_after_the_history(supervised: RunDir) -> None:
    reading = Reading(supervised)
    assert look(reading).view.step == 400
    recorded.write(supervised.rank(1, 0), steps(401, 401))
    assert reading.poll()
    assert reading.snapshot().view.step == 401
    assert not reading.poll()


def test_a_picture_does_not_change_behind_the_screens_back(supervised: RunDir) -> None:
    reading = Reading(supervised)
    before = look(reading)
    held = msgspec.json.encode(before.view)
    recorded.write(supervised.rank(1, 0), steps(401, 450))
    look(reading)
    assert msgspec.json.encode(before.view) == held


def test_modes(run: RunDir, ended_home: Path) -> None:
    lock = rundir.Lock(run)
    assert look(Reading(run)).mode == "live"
    lock.release()
    other = recorded.make(ended_home, ended=True)
    assert look(Reading(other)).mode == "ended"


@pytest.fixture
def ended_home(tmp_path: Path) -> Path:
    return tmp_path / "ended"


def test_ranks_without_a_supervisor_are_reconnecting(run: RunDir) -> None:
    writer = JournalWriter(run.rank(1, 0))
    me = events.ProcessStart(pid=os.getpid(), starttime=kernel.own_starttime(), role="rank", rank=0)
    writer.write(me)
    writer.close()
    seen = look(Reading(run))
    assert seen.mode == "reconnecting"
    assert seen.view.supervisor == "gone"
    assert "supervisor gone" in seen.view.note


def test_a_deleted_run_keeps_its_picture_and_comes_back(supervised: RunDir) -> None:
    """This process stands in for its supervisor, which goes on."""
    me = events.ProcessStart(pid=os.getpid(), starttime=kernel.own_starttime(), role="supervisor")
    recorded.write(supervised.journal, [me])
    reading = Reading(supervised)
    before = look(reading).view.state
    away = supervised.path.with_name("away")
    supervised.path.rename(away)
    assert reading.poll()
    gone = reading.snapshot()
    assert gone.mode == "reconnecting"
    assert "has been deleted or moved" in gone.text
    assert gone.view.alerts[0].text == gone.text
    assert gone.view.alerts[0].evidence == [str(supervised.path)]
    assert (gone.view.step, gone.view.state) == (400, before)
    away.rename(supervised.path)
    recorded.write(supervised.rank(1, 0), steps(401, 401))
    back = look(reading)
    assert (back.mode, back.text, back.view.step) == ("live", "", 401)
    # Its samples are as old as the record; who holds it does not measure.
    assert [alert.id for alert in back.view.alerts] == ["idle-reader", "telemetry-stale"]
    assert sum(back.view.loss[0][1].counts) == 41


def test_a_deleted_ended_run_stays_ended(ended: RunDir) -> None:
    reading = Reading(ended)
    look(reading)
    shutil.rmtree(ended.path)
    seen = look(reading)
    assert seen.mode == "ended"
    assert "deleted" in seen.text
    assert seen.view.state == "done"


def test_an_unreadable_run_is_said(supervised: RunDir) -> None:
    """Root reads everything, so a file in the folder's place stands in for a lost permission."""
    reading = Reading(supervised)
    look(reading)
    shutil.rmtree(supervised.path)
    supervised.path.write_text("")
    seen = look(reading)
    assert "cannot be read (Not a directory)" in seen.text
    assert seen.view.step == 400


def test_a_broken_identity_is_said(supervised: RunDir) -> None:
    reading = Reading(supervised)
    look(reading)
    supervised.identity_file.write_text("{")
    assert "run.json: not a run of bitwatch" in look(reading).text


def test_another_host_is_said(run: RunDir) -> None:
    identity = run.identity()
    identity.host = "elsewhere"
    rundir.write_identity(run, identity)
    seen = look(Reading(run))
    assert seen.mode == "ended"
    assert "on another host (elsewhere)" in seen.view.note


def test_a_newer_version_is_said_and_shown(supervised: RunDir) -> None:
    identity = supervised.identity()
    identity.format = 2
    rundir.write_identity(supervised, identity)
    with open(supervised.journal, "ab") as journal:
        journal.write(b'{"kind":"from-the-future","t":1}\n')
    seen = look(Reading(supervised))
    assert "newer version" in seen.text
    assert seen.mode == "live"
    assert seen.view.step == 400


def test_leftovers_of_ended_attempts_are_seen(supervised: RunDir) -> None:
    """This process stands in for one: it is recorded in an attempt that has ended."""
    me = (os.getpid(), kernel.own_starttime())
    recorded.write(
        supervised.journal,
        [
            events.AttemptEnded(attempt=1, state="failed"),
            events.ProcessStart(pid=me[0], starttime=me[1], role="worker", rank=1, attempt=1),
            events.AttemptStarted(attempt=2, steps=10, ranks=2),
        ],
    )
    seen = look(Reading(supervised)).view
    assert [(p.pid, p.starttime) for p in seen.leftovers] == [me]
    (alert,) = [alert for alert in seen.alerts if alert.id == "leftovers"]
    assert "1 process of ended attempt 1" in alert.text


def test_the_history_waits_until_the_screen_is_there(supervised: RunDir) -> None:
    feed = Feed(supervised)
    pictures: list[Snapshot] = []
    feed.listen(pictures.append)
    feed.start()
    until(lambda: pictures, "the first picture")
    recorded.write(supervised.rank(1, 0), steps(401, 401))
    feed.go_on()
    until(lambda: pictures[-1].view.step == 401, "news")
    feed.close()
    feed._thread.join(PATIENCE_S)
    assert not feed._thread.is_alive()


def test_a_reading_that_fails_is_said_and_tried_again(
    supervised: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Reading.poll
    fails = iter([True])

    def poll(self: Reading) -> bool:
        if next(fails, False):
            raise ValueError("odd")
        return real(self)

    monkeypatch.setattr(Reading, "poll", poll)
    monkeypatch.setattr("bitwatch.attach.follow.FAILED_S", 0.01)
    feed = Feed(supervised)
    pictures: list[Snapshot] = []
    feed.listen(pictures.append)
    feed.go_on()
    feed.start()
    until(lambda: len(pictures) > 1, "a picture after the failure")
    feed.close()
    assert "ValueError: odd" in pictures[0].text
    assert pictures[-1].view.step == 400


def test_what_is_beside_the_live_attempt_comes_after_the_first_picture(
    supervised: RunDir, start: Start
) -> None:
    left, fresh = start(), start()
    records = [
        events.AttemptEnded(attempt=1, state="failed"),
        events.AttemptStarted(attempt=2, steps=10, ranks=2),
    ]
    recorded.write(supervised.journal, [*records, _left(left)])
    reading = Reading(supervised)
    reading.poll()
    reading.look_around()
    first = reading.snapshot()
    assert first.others == (), "the first picture waits for nothing"
    assert [p.pid for p in first.view.leftovers] == [left[0]]
    reading.look_around()
    assert reading.behind, "other runs' records come before a look"
    look(reading)
    reading.look_around()
    assert reading.poll(), "it is news"
    second = reading.snapshot()
    assert _leftovers(second) == {left} == {p.key for p in _rows(second, supervised)}
    # What comes meanwhile is told by both or by none, and does not wait for the next look.
    recorded.write(supervised.journal, [_left(fresh)])
    reading._leftovers_next = 0.0
    for _ in range(2):
        reading.poll()
        third = reading.snapshot()
        assert _leftovers(third) == {p.key for p in _rows(third, supervised)}
        reading.look_around()
    assert _leftovers(reading.snapshot()) == {left, fresh}


def _left(key: Key) -> events.ProcessStart:
    return events.ProcessStart(pid=key[0], starttime=key[1], role="worker", rank=1, attempt=1)


def _leftovers(snapshot: Snapshot) -> set[Key]:
    return {(p.pid, p.starttime) for p in snapshot.view.leftovers}


def _rows(snapshot: Snapshot, run: RunDir) -> list[Other]:
    return [o for o in snapshot.others if o.group == "leftover" and o.run == run.id]
