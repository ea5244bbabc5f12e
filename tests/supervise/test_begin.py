"""Closing and moving what an earlier supervisor, or an earlier boot, has left open."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.rundir import LockHeld, RunDir, RunDirError
from bitwatch.sense import processes
from bitwatch.supervise import begin, leftovers


@pytest.fixture
def bystander() -> Iterator[processes.Stat]:
    """A process that is recorded, and so would be taken for the run's own."""
    child = subprocess.Popen(["sleep", "600"])
    stat = processes.read_stat(child.pid)
    assert stat
    yield stat
    child.kill()
    child.wait()


@pytest.fixture
def run(tmp_path: Path, bystander: processes.Stat) -> RunDir:
    made = rundir.create(tmp_path, "demo")
    rundir.new_attempt(made)
    journal = JournalWriter(made.journal)
    journal.write(events.RunStarted(run=made.id, name="demo"))
    journal.write(events.AttemptStarted(attempt=1, steps=10, ranks=1))
    journal.write(
        events.ProcessStart(
            pid=bystander.pid, starttime=bystander.starttime, role="worker", rank=0, attempt=1
        )
    )
    journal.close()
    return made


def state(run: RunDir) -> Follower:
    follower = Follower(run)
    follower.poll()
    return follower


def test_after_a_reboot_an_old_record_proves_nothing(run: RunDir) -> None:
    assert begin.close_record(run, "test")
    assert leftovers.find(state(run).state, {1})
    begin.move_here(run)  # the same boot: nothing changes
    assert leftovers.find(state(run).state, {1})
    identity = run.identity()
    identity.boot_id = "an earlier boot"
    rundir.write_identity(run, identity)
    begin.move_here(run)
    assert rundir.is_here(run.identity()) == ""
    assert leftovers.find(state(run).state, {1}) == []


def test_after_a_reboot_no_exit_is_at_a_time_of_this_boot(
    run: RunDir, bystander: processes.Stat
) -> None:
    """Else whoever has the number of an old session now would be taken for a child of its leader."""
    journal = JournalWriter(run.journal)
    journal.write(events.ProcessStart(pid=2, starttime=1, role="rank", rank=1, attempt=1))
    ended = events.ProcessExit(pid=2, starttime=1, role="rank", rank=1, signal=9, t=5.0)
    journal.write(ended)
    journal.close()
    identity = run.identity()
    identity.boot_id = "an earlier boot"
    rundir.write_identity(run, identity)
    begin.move_here(run)
    exits = state(run).state.journal.exits
    assert exits.keys() == {(2, 1), bystander.key}
    assert {exit.m for exit in exits.values()} == {0.0}
    assert exits[2, 1].signal == 9 and exits[2, 1].t == 5.0


def test_an_unclosed_record_is_closed_once(run: RunDir) -> None:
    assert begin.close_record(run, "test")
    assert not begin.close_record(run, "test")
    ended = state(run).state.journal.attempts[1].ended
    assert ended
    assert ended.state == "lost"
    assert run.exit(1).exists()


def test_what_another_closed_meanwhile_is_not_closed_again(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the record and the lock."""

    def after_another(of: RunDir) -> rundir.Lock:
        monkeypatch.undo()
        assert begin.close_record(of, "another")
        return rundir.Lock(of)

    monkeypatch.setattr(begin.rundir, "Lock", after_another)
    assert not begin.close_record(run, "test")
    ends = [r for r in read_all(run.journal)[0] if isinstance(r, events.AttemptEnded)]
    assert len(ends) == 1


def test_what_goes_on_is_not_closed(run: RunDir, bystander: processes.Stat) -> None:
    rank = JournalWriter(run.rank(1, 0))
    rank.write(
        events.ProcessStart(
            pid=bystander.pid, starttime=bystander.starttime, role="rank", rank=0, attempt=1
        )
    )
    rank.close()
    with pytest.raises(RunDirError, match="its ranks go on"):
        begin.close_record(run, "test")
    assert not run.lock_is_held() and state(run).state.journal.attempts[1].ended is None


def test_what_a_supervisor_holds_is_not_closed(run: RunDir) -> None:
    lock = rundir.Lock(run)
    with pytest.raises(LockHeld):
        begin.close_record(run, "test")
    assert begin.still_lives(run)
    lock.release()
    assert not begin.still_lives(run)
