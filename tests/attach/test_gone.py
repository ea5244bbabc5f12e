"""A run whose folder is deleted or moved while somebody looks: what lives of it decides what is
shown, and nothing is promised that needs the folder."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bitwatch.attach import commands, gone, signals, stacks
from bitwatch.attach.follow import Reading
from bitwatch.attach.offer import offers
from bitwatch.attach.telling import Snapshot
from bitwatch.record import events, rundir
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.view import View
from bitwatch.sense.processes import Key
from bitwatch.supervise import stopping
from tests.attach.conftest import tags
from tests.conftest import alive
from tests.supervise.standins import WORKER, Standins, settled
from tests.tui import recorded


@pytest.fixture
def unheld(tmp_path: Path) -> RunDir:
    """All that it has on record is dead."""
    return recorded.make(tmp_path / "runs")


@pytest.fixture
def run(unheld: RunDir) -> Iterator[RunDir]:
    """The same, in the hands of this process as if of its supervisor."""
    lock = rundir.Lock(unheld)
    yield unheld
    lock.release()


@pytest.fixture
def standins() -> Iterator[Standins]:
    made = Standins()
    yield made
    made.end_all()


def told(run: RunDir, key: Key, role: str, **facts: int) -> None:
    start = events.ProcessStart(pid=key[0], starttime=key[1], role=role, attempt=1, **facts)
    sample = events.Process(pid=key[0], starttime=key[1], ppid=1, role=role, state="S", **facts)
    recorded.write(run.journal, [start])
    samples = events.Processes(attempt=1, processes=[sample], t=recorded.NOW, m=400.0)
    recorded.write(run.samples / "2023-11-14T22.jsonl", [samples])


def read(run: RunDir) -> Reading:
    """Up to its first picture."""
    reading = Reading(run)
    again(reading)
    return reading


def again(reading: Reading) -> Snapshot:
    reading.poll()
    while reading.behind:
        reading.fill(1.0)
    return reading.snapshot()


def saved(run: RunDir, step: int, created: float) -> Path:
    folder = run.checkpoints() / f"step-{step}"
    folder.mkdir(parents=True)
    rundir.write_whole(folder / "manifest.json", msgspec.json.encode({"created": created}))
    return folder


def test_a_run_that_its_supervisor_stops_for_the_deletion_ends_with_its_checkpoint(
    run: RunDir, standins: Standins
) -> None:
    supervisor = standins.start()
    told(run, supervisor, "supervisor")
    for rank in (0, 1):
        step = events.Step(rank=rank, step=401, step_s=0.98, t=time.time(), m=401.0)
        recorded.write(run.rank(1, rank), [step])
    reading = read(run)
    assert reading.snapshot().view.eta_s is not None
    shutil.rmtree(run.path)
    seen = again(reading)
    assert (seen.mode, seen.view.eta_s, seen.view.supervisor) == ("reconnecting", None, "alive")
    assert [row.pid for row in seen.view.processes] == [supervisor[0]]
    stopping.ask(run, 1, stopping.DELETION)
    assert (stopping_now := again(reading)).view.state == "stopping"
    assert "the run stops for that, with a checkpoint" in stopping_now.text
    stop = stopping.read(run, 1)
    assert stop is not None
    folder = saved(run, 497, stop.t + 0.1)
    saved(run, 300, stop.t - 1)
    lost = {"attempt": 1, "state": "lost", "cause": "no rank left a last word", "step": 460}
    rundir.write_whole(run.exit(1), msgspec.json.encode(lost))
    standins.end(supervisor)
    seen = again(reading)
    view = seen.view
    assert (seen.mode, view.state, view.step, view.eta_s) == ("ended", "stopped", 497, None)
    assert (view.processes, view.note, view.phase, view.cause) == ([], "", "", "")
    assert (
        seen.text
        == view.gone
        == (
            "its folder was deleted; the run stopped for that at step 497 with a checkpoint; "
            "its processes have ended"
        )
    )
    (alert,) = view.alerts
    assert f"the checkpoint: {folder}" in alert.evidence and str(folder) in alert.next
    assert view.checkpoints[-1].path == str(folder)
    assert offers(view) == []


@pytest.mark.parametrize(("state", "cause"), [("failed", "rank 1 was killed"), ("lost", "")])
def test_without_a_checkpoint_of_its_stop_the_last_file_says_how_it_ended(
    run: RunDir, state: str, cause: str
) -> None:
    reading = read(run)
    shutil.rmtree(run.path)
    if cause:
        stopping.ask(run, 1, "somebody")
        rundir.write_whole(run.exit(1), msgspec.json.encode({"state": state, "cause": cause}))
    seen = again(reading)
    expected = cause or "its folder is gone, and its processes have ended"
    assert (seen.mode, seen.view.state, seen.view.cause) == ("ended", state, expected)
    assert ("stopped without a checkpoint" in seen.text) == bool(cause)
    assert "its processes have ended" in seen.text


def test_a_folder_without_an_identity_is_a_deleted_one(run: RunDir) -> None:
    reading = read(run)
    assert not gone.is_gone(run)
    run.identity_file.unlink()
    assert gone.is_gone(run)
    assert again(reading).text.startswith("the folder of this run has been deleted or moved")


def test_of_what_cannot_be_read_the_dead_are_not_shown_as_running(run: RunDir) -> None:
    reading = read(run)
    run.identity_file.write_text("{")
    seen = again(reading)
    assert (seen.mode, seen.view.state, seen.view.gone) == ("ended", "lost", "")
    assert seen.view.cause == "its record cannot be read, and its processes have ended"
    assert "not a run of bitwatch" in seen.text


def test_the_processes_of_a_run_of_another_host_are_not_looked_for_here(run: RunDir) -> None:
    identity = run.identity()
    identity.host = "elsewhere"
    rundir.write_identity(run, identity)
    reading = read(run)
    before = reading.snapshot().view
    shutil.rmtree(run.path)
    seen = again(reading).view
    assert (seen.state, seen.note, seen.gone) == (before.state, before.note, "")


def test_ranks_without_folder_and_supervisor_are_one_thing_everywhere_and_one_key_ends_them(
    unheld: RunDir, standins: Standins, tmp_path: Path
) -> None:
    run = unheld
    worker = standins.start(looks=WORKER, env=tags(run))
    told(run, worker, "rank", rank=0)
    recorded.write(
        run.rank(1, 0),
        [events.ProcessStart(pid=worker[0], starttime=worker[1], role="rank", rank=0)],
    )
    reading = read(run)
    assert "supervisor-gone" in [alert.id for alert in reading.snapshot().view.alerts]
    run.path.rename(tmp_path / "away")
    settled(worker)
    again(reading)
    reading.look_around()
    seen = again(reading)
    of_the_run = [(other.pid, other.group) for other in seen.others if other.run == run.id]
    assert of_the_run == [(worker[0], "leftover")]
    assert [alert.id for alert in seen.view.alerts] == [
        *("record-unreadable", "idle-reader", "leftovers")
    ]
    assert "its supervisor is gone" in seen.text
    assert "the ranks go on" not in msgspec.json.encode(seen.view).decode()
    assert seen.view.alerts[-1].text == "1 process of attempt 1 is still there"
    assert not any(alert.next for alert in seen.view.alerts if alert.id == "idle-reader")
    for asked in (commands.stop, lambda *of: commands.relaunch(*of, "same")):
        with pytest.raises(RunDirError, match=r"has been deleted or moved; without it the run can"):
            asked(run, 1)
    said = commands.signal(run, [worker], "CONT")
    assert said.endswith(
        "not written into the record: the folder of this run has been deleted or moved"
    )
    assert not run.path.exists(), "what nobody would find is not written"
    asked_of = stacks.look(run, View(state="running", attempt=1, ranks=2))
    assert "its ranks cannot be asked: the folder of this run has been" in asked_of.text
    said = commands.clean(run)
    assert f"ended worker (pid {worker[0]})" in said
    assert not alive(worker)
    assert again(reading).mode == "ended"


def test_a_run_that_had_ended_stays_as_it_was_and_promises_nothing(tmp_path: Path) -> None:
    run = recorded.make(tmp_path / "runs", ended=True)
    reading = read(run)
    shutil.rmtree(run.path)
    seen = again(reading).view
    assert (seen.state, offers(seen)) == ("done", [])
    assert seen.gone == "the folder of this run has been deleted or moved; it has ended"
    assert signals.note(run, "pid 1", "", "") == gone.GONE
    assert os.listdir(tmp_path / "runs") == []
