"""A run outlives its terminal, its shell and its supervisor; it stops when it is asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes
from tests.conftest import Shell, alive, until
from tests.terminal import OWN, children, is_there

pytestmark = pytest.mark.slow
FOREVER = "train.steps=100000"
Key = tuple[int, int]


@pytest.fixture
def shell(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = Shell(tmp_path)
    yield made
    for row in made.ls():
        if row["state"] not in ("done", "failed", "stopped", "lost"):
            made.run("stop", row["run"], "--now", code=None)


def rundir(shell: Shell) -> RunDir:
    return RunDir(Path(shell.one()["dir"]))


def members(run: RunDir, role: str = "") -> list[Key]:
    """Recorded processes of the newest attempt that live now."""
    follower = Follower(run)
    follower.poll()
    state = follower.state
    newest = state.newest_attempt()
    keys = [
        key
        for key, start in state.journal.processes.items()
        if start.attempt == newest and role in ("", start.role)
    ]
    keys += [(r.pid, r.starttime) for r in state.ranks_of(newest).values() if role in ("", "rank")]
    return [key for key in dict.fromkeys(keys) if alive(key)]


def kill(key: Key, number: signal.Signals = signal.SIGKILL) -> None:
    assert processes.send_signal(*key, number)


def all_gone(run: RunDir) -> bool:
    return not members(run)


def whole_checkpoints(run: RunDir) -> list[int]:
    return sorted(
        int(path.parent.name.removeprefix("step-"))
        for path in run.checkpoints().glob("step-*/manifest.json")
    )


def ended_at(run: RunDir, attempt: int = 1) -> list[tuple[str, int]]:
    ends = []
    for rank in (0, 1):
        records = read_all(run.rank(attempt, rank))[0]
        ends += [(r.state, r.step) for r in records if isinstance(r, events.RankEnded)]
    return ends


def test_a_dead_supervisor_does_not_end_a_run_and_stop_and_resume_still_work(shell: Shell) -> None:
    name = shell.launch(FOREVER)
    row = shell.reach(20)
    assert (row["state"], row["supervisor"]) == ("running", "alive")
    run = rundir(shell)

    # A live run takes no second supervisor.
    _, err = shell.run("run", "--resume", name, code=4)
    assert "is live" in err
    second = [sys.executable, "-m", "bitwatch.supervise.supervisor", str(run.path), "1", "adopt"]
    done = subprocess.run([*second, "me", "test"], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "another process" in done.stderr

    (supervisor,) = members(run, "supervisor")
    kill(supervisor)
    until(lambda: shell.one()["supervisor"] == "gone", "the listing to say that it is gone")
    row = shell.reach(shell.one()["step"] + 60)
    assert row["state"] == "running"
    assert "supervisor gone" in row["note"]
    _, err = shell.run("run", "--resume", name, code=4)
    assert "its ranks go on" in err

    out, err = shell.run("stop", name)
    assert "taking over" in err
    row = shell.one()
    assert (row["state"], row["supervisor"]) == ("stopped", "ended")
    until(lambda: all_gone(run), "every process of the run to be gone")
    (first, step), other = ended_at(run)
    assert (first, step) == other
    assert first == "stopped"
    assert whole_checkpoints(run)[-1] == step == row["step"]
    assert f"step-{step}" in out
    assert f"bitwatch run --resume {name}" in out
    journal = [r for r in read_all(run.journal)[0] if isinstance(r, events.Action)]
    assert [action.name for action in journal][:2] == ["adopt", "stop"]
    assert not run.lock_is_held()

    before = [r for r in read_all(run.rank(1, 0))[0] if isinstance(r, events.Step)]
    shell.run("run", "--resume", name, "--set", f"train.steps={step + 40}")
    after = [r for r in read_all(run.rank(2, 0))[0] if isinstance(r, events.Step)]
    assert after[0].step > step
    assert after[0].tokens == after[0].step * 8 * 128  # counted on from the checkpoint
    assert after[0].loss == pytest.approx(before[-1].loss, rel=0.05)
    assert shell.one()["state"] == "done"


def test_the_screens_terminal_may_close_and_a_killed_agent_takes_all_with_it(shell: Shell) -> None:
    """Nobody reads what the screen paints: that must not hold up anything either."""
    run = the_terminal_closes(shell, "", sees="RUNNING")
    (agent,) = members(run, "agent")
    kill(agent)
    row = until(
        lambda: r if (r := shell.one())["state"] == "failed" else None, "the run to have failed"
    )
    assert "torchrun was killed by SIGKILL" in row["note"]
    until(lambda: all_gone(run), "every process of the run to be gone")
    until(lambda: not run.lock_is_held(), "the supervisor to have closed the record")
    assert json.loads(run.exit(1).read_bytes())["state"] == "failed"


@pytest.mark.long
def test_the_lines_terminal_may_close_and_the_run_be_stopped(shell: Shell) -> None:
    run = the_terminal_closes(shell, "--headless", sees="20/100,000")
    shell.run("stop", run.id)
    assert shell.one()["state"] == "stopped"
    until(lambda: all_gone(run), "every process of the run to be gone")


def the_terminal_closes(shell: Shell, face: str, sees: str) -> RunDir:
    """A run whose terminal was closed, and whose shell was killed, and that goes on."""
    surroundings = {k: v for k, v in shell.environment.items() if k not in OWN}
    surroundings["TERM"] = "xterm-256color"
    terminal = pexpect.spawn(
        "bash", ["--norc"], env=surroundings, cwd=str(shell.folder), encoding="utf-8"
    )
    terminal.sendline(f"{shell.command[0]} run {shell.config} --set {FOREVER} {face}")
    terminal.expect(sees, timeout=120)
    shell.reach(20)
    run = rundir(shell)
    viewer = children(terminal.pid)
    assert len(viewer) == 1
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.close(force=True)  # the pseudo-terminal is gone: SIGHUP to whoever is in it
    step = shell.one()["step"]
    row = shell.reach(step + 60)
    assert (row["state"], row["supervisor"]) == ("running", "alive")
    until(lambda: not is_there(viewer[0]), "the viewer to be gone")
    return run


def test_interrupting_the_foreground_stops_with_a_checkpoint(shell: Shell) -> None:
    process = shell.start("run", str(shell.config), "--set", FOREVER, start_new_session=True)
    shell.reach(10)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    assert "stopping with a checkpoint; again stops at once" in err
    assert "\nstopped  step" in out
    assert whole_checkpoints(rundir(shell))


@pytest.mark.long
def test_a_hangup_leaves_the_run_and_a_stop_now_ends_it(shell: Shell) -> None:
    process = shell.start("run", str(shell.config), "--set", FOREVER, start_new_session=True)
    shell.reach(10)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert shell.one()["state"] == "running"
    run = rundir(shell)
    shell.run("stop", run.id, "--now")
    row = shell.one()
    assert row["state"] == "stopped"
    assert "without a checkpoint" in row["note"]
    assert whole_checkpoints(run) == []
    until(lambda: all_gone(run), "every process of the run to be gone")


@pytest.mark.long
def test_two_interrupts_end_it_at_once(shell: Shell) -> None:
    process = shell.start("run", str(shell.config), "--set", FOREVER, start_new_session=True)
    shell.reach(10)
    run = rundir(shell)
    stop_rank(run)  # so that the gentle stop cannot be answered
    process.send_signal(signal.SIGINT)
    until(lambda: shell.one()["state"] == "stopping", "the run to be stopping")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, (out, err)
    assert "stopping at once" in err
    until(lambda: all_gone(run), "every process of the run to be gone")


@pytest.mark.long
def test_a_rank_that_does_not_answer_is_escalated(shell: Shell) -> None:
    name = shell.launch(FOREVER, "watch.grace_s=1")
    shell.reach(10)
    run = rundir(shell)
    stop_rank(run)
    _, _ = shell.run("stop", name, code=1)
    row = shell.one()
    assert row["state"] == "stopped"
    assert "did not answer within the grace" in row["note"]
    escalations = [
        r for r in read_all(run.journal)[0] if isinstance(r, events.Action) and r.name == "escalate"
    ]
    assert escalations
    until(lambda: all_gone(run), "every process of the run to be gone")


@pytest.mark.long
def test_a_killed_rank_ends_the_run_and_is_named(shell: Shell) -> None:
    process = shell.start("run", str(shell.config), "--set", FOREVER, start_new_session=True)
    shell.reach(10)
    run = rundir(shell)
    ranks = {
        start.rank: (start.pid, start.starttime)
        for start in read_all(run.rank(1, 1))[0]
        if isinstance(start, events.ProcessStart)
    }
    kill(ranks[1])
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1, (out, err)
    assert "rank 1 was killed by SIGKILL" in out
    assert f"bitwatch logs {run.id}" in out
    until(lambda: all_gone(run), "every process of the run to be gone")


@pytest.mark.long
def test_a_run_that_ended_unwatched_is_told_from_the_ranks_own_words(shell: Shell) -> None:
    name = shell.launch("train.steps=200")
    shell.reach(10)
    run = rundir(shell)
    (supervisor,) = members(run, "supervisor")
    kill(supervisor)
    row = until(
        lambda: r if (r := shell.one())["state"] == "done" else None, "the ranks to be done"
    )
    assert row["supervisor"] == "ended"
    assert row["note"] == "record not closed"
    shell.run("stop", name)
    row = shell.one()
    assert (row["state"], row["note"]) == ("done", "")
    assert json.loads(run.exit(1).read_bytes())["agent"] == "exit status unknown"


def stop_rank(run: RunDir) -> None:
    """Freezes rank 1: it cannot answer anything but SIGKILL."""
    for start in read_all(run.rank(1, 1))[0]:
        if isinstance(start, events.ProcessStart):
            kill((start.pid, start.starttime), signal.SIGSTOP)
