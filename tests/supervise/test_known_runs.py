"""The records of a home are read once, and whatever changes in them is seen all the same."""

from __future__ import annotations

import os
from pathlib import Path

from bitwatch.record import events, kernel, rundir
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.supervise.known_runs import KnownRuns

STARTED = events.AttemptStarted(attempt=1, steps=10, ranks=2)
ENDED = events.AttemptEnded(attempt=1, state="failed")


def journal(run: RunDir, *records: events.Record) -> None:
    writer = JournalWriter(run.journal)
    for record in records:
        writer.write(record)
    writer.close()


def made(home: Path, *records: events.Record) -> RunDir:
    run = rundir.create(home, "demo")
    rundir.new_attempt(run)
    journal(run, *records)
    return run


def start(pid: int, role: str = "rank", attempt: int = 1) -> events.ProcessStart:
    return events.ProcessStart(pid=pid, starttime=5, role=role, attempt=attempt)


def test_what_is_written_later_is_read_and_nothing_else_again(tmp_path: Path) -> None:
    run = made(tmp_path, STARTED, start(7), ENDED)
    known = KnownRuns(tmp_path)
    (first,) = known.facts()
    assert (first.id, first.live, set(first.recorded)) == (run.id, 0, {(7, 5)})
    (again,) = known.facts()
    assert again is first, "of a run that nobody writes nothing is made anew"
    journal(run, start(8))
    (later,) = known.facts()
    assert set(later.recorded) == {(7, 5), (8, 5)}
    run.path.rename(tmp_path.parent / f"{tmp_path.name}-away")
    assert known.facts() == []


def test_who_holds_the_lock_or_lives_makes_an_attempt_live(tmp_path: Path) -> None:
    run = made(tmp_path, STARTED)
    known = KnownRuns(tmp_path)
    assert [facts.live for facts in known.facts()] == [0]
    lock = rundir.Lock(run)
    assert [(facts.live, facts.supervised) for facts in known.facts()] == [(1, True)]
    lock.release()
    assert [(facts.live, facts.supervised) for facts in known.facts()] == [(0, False)]
    me = events.ProcessStart(
        pid=os.getpid(), starttime=kernel.own_starttime(), role="agent", attempt=1
    )
    journal(run, me)
    assert [facts.live for facts in known.facts()] == [1]
    journal(run, ENDED)
    assert [facts.live for facts in known.facts()] == [0]
    # An attempt that the journal does not name (a full disk) but that has spoken is the newest.
    rundir.new_attempt(run)
    lock = rundir.Lock(run)
    assert [facts.live for facts in known.facts()] == [0]
    run.rank(2, 0).touch()
    assert [facts.live for facts in known.facts()] == [2]
    lock.release()


def test_what_cannot_be_on_this_machine_proves_nothing_until_it_can(tmp_path: Path) -> None:
    run = made(tmp_path, STARTED, start(7))
    (tmp_path / "no run").mkdir()
    (tmp_path / "a file").write_text("")
    known = KnownRuns(tmp_path)
    here = run.identity()
    elsewhere = run.identity()
    elsewhere.boot_id = "before the reboot"
    rundir.write_identity(run, elsewhere)
    assert known.facts() == []
    rundir.write_identity(run, here)
    assert [set(facts.recorded) for facts in known.facts()] == [{(7, 5)}]
    run.identity_file.unlink()
    assert known.facts() == []


def test_a_folder_that_is_made_anew_is_another_run(tmp_path: Path) -> None:
    run = made(tmp_path, STARTED, start(7))
    known = KnownRuns(tmp_path)
    assert [set(facts.recorded) for facts in known.facts()] == [{(7, 5)}]
    run.journal.rename(tmp_path / "kept")  # so that its inode is not given out again
    journal(run, STARTED, start(9))
    assert [set(facts.recorded) for facts in known.facts()] == [{(9, 5)}]


def test_old_runs_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    for _ in range(3):
        made(tmp_path, STARTED, start(7))
    known = KnownRuns(tmp_path)
    assert not known.read(0.0)
    assert known.read(60.0)
    assert known.read(0.0), "nothing is left to be read"
    assert len(known.facts()) == 3
