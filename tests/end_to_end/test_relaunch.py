"""A run that is relaunched: by two at once, without a supervisor, back from what fails, and not
at all when a stop is asked for. One run, attempt after attempt."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.attach import commands
from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View, view
from bitwatch.sense import processes
from tests.conftest import PATIENCE_S, Shell, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(shell: Shell) -> Iterator[RunDir]:
    """Under way in the foreground, its text to be indexed in a folder where that is impossible."""
    settings = ("train.steps=100000", f'data.cache="{shell.folder}/no/yet"')
    words = [word for change in settings for word in ("--set", change)]
    face = shell.start("run", str(shell.config), "--headless", *words)
    shell.reach(10)
    made = RunDir(Path(shell.one()["dir"]))
    (shell.folder / "no").write_text("a file where a folder is wanted")
    with_two_at_once(made)
    out, _ = face.communicate(timeout=PATIENCE_S)
    assert face.returncode == 1
    assert "launched  relaunch of attempt 1: data.sharding = indexed instead of as-is" in out
    yield made


def with_two_at_once(run: RunDir) -> None:
    said: list[str] = []
    asking = [
        threading.Thread(target=lambda: said.append(commands.relaunch(run, 1, "indexed")))
        for _ in range(2)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    already, done = sorted(said, key=lambda words: "then attempt 2" in words)
    assert "attempt 1 is being relaunched already" in already
    assert "attempt 1 stops with a checkpoint; then attempt 2" in done


def seen(run: RunDir) -> View:
    follower = Follower(run)
    follower.poll()
    return view(follower.state, time.time(), follower.liveness())


def actions(run: RunDir, name: str) -> list[events.Action]:
    records = read_all(run.journal)[0]
    return [r for r in records if isinstance(r, events.Action) and r.name == name]


def notes(run: RunDir, attempt: int) -> list[str]:
    return [r.text for r in read_all(run.rank(attempt, 0))[0] if isinstance(r, events.Note)]


def first_step(run: RunDir, attempt: int) -> events.Step:
    def found() -> events.Step | None:
        records = read_all(run.rank(attempt, 0))[0] if run.rank(attempt, 0).exists() else []
        return next((r for r in records if isinstance(r, events.Step)), None)

    return until(found, f"a step of attempt {attempt}")


def saved(run: RunDir, attempt: int) -> events.Checkpoint:
    records = read_all(run.rank(attempt, 0))[0]
    return [r for r in records if isinstance(r, events.Checkpoint)][-1]


def test_two_viewers_make_one_relaunch_and_one_that_fails_loses_nothing(run: RunDir) -> None:
    assert run.attempts() == [1, 2]
    assert len(actions(run, "relaunch")) == 1
    now = seen(run)
    assert (now.state, now.relaunch_of, now.correction) == ("failed", 1, "indexed")
    (alert,) = [alert for alert in now.alerts if alert.id == "relaunch-failed"]
    assert "attempt 2 did not get as far as a step" in alert.text
    assert "R goes back to the settings of attempt 1" in alert.next
    step = saved(run, 1).step
    assert list(run.checkpoints().glob(f"step-{step}/manifest.json"))
    assert any(f"step {step}" in line for line in alert.evidence)


def test_one_key_goes_back_to_what_worked(run: RunDir) -> None:
    assert "back to the settings of attempt 1" in commands.relaunch(run, 2, "back")
    step = saved(run, 1).step
    assert first_step(run, 3).step > step
    assert notes(run, 3) == [f"resumed after step {step}, at the same place of the text"]
    assert 'sharding = "as-is"' in run.config(3).read_text()


def test_a_relaunch_without_a_supervisor_starts_one(shell: Shell, run: RunDir) -> None:
    (shell.folder / "no").unlink()
    holder = run.holder()
    assert holder and processes.send_signal(holder.pid, holder.starttime, signal.SIGKILL)
    until(lambda: not run.lock_is_held(), "the supervisor to be gone")
    assert commands.relaunch(run, 2, "indexed") == "attempt 2 is over; attempt 3 came next"
    assert "attempt 4 follows" in commands.relaunch(run, 3, "indexed")
    first = first_step(run, 4)
    step = saved(run, 3).step
    assert first.step > step
    (note,) = notes(run, 4)
    assert f"resumed after step {step}: the data starts a new epoch" in note

    def train() -> list[events.Reader]:
        return [reader for reader in seen(run).readers if reader.loader == "train"]

    until(lambda: len(train()) == 4, "every reader to have said a word")
    assert not any(r.state in ("idle", "failed") for r in train())
    now = seen(run)
    assert [(number, bool(series.starts)) for number, series in now.loss] == [
        (1, True),
        (3, True),
        (4, True),
    ]


def test_a_stop_takes_a_wish_away(run: RunDir) -> None:
    halted = next(r for r in read_all(run.rank(4, 1))[0] if isinstance(r, events.ProcessStart))
    assert processes.send_signal(halted.pid, halted.starttime, signal.SIGSTOP)  # until both stand
    assert "then attempt 5" in commands.relaunch(run, 4, "same")
    assert "stops, with a checkpoint" in commands.stop(run, 4)
    assert processes.send_signal(halted.pid, halted.starttime, signal.SIGCONT)
    until(lambda: not run.lock_is_held(), "the record to be closed")
    assert seen(run).state == "stopped"
    assert run.attempts() == [1, 2, 3, 4]
    (cancelled,) = actions(run, "relaunch-cancelled")
    assert "stopped instead" in cancelled.result
