"""The screen in a real terminal, on a real run: see, kill the viewer, attach, stop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bitwatch.record import events, kernel, rundir
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes
from bitwatch.supervise import control
from bitwatch.tui import kept
from tests.conftest import Shell, alive, until
from tests.terminal import Terminal, children

pytestmark = pytest.mark.slow
FOREVER = "train.steps=100000"
Ended = tuple[Shell, int, list[str]]


def viewers(shell: Shell) -> list[int]:
    """Processes that show a screen of this test's runs."""
    home = f"BITWATCH_HOME={shell.home}\0"
    return [
        stat.pid
        for stat in processes.scan().values()
        if stat.state not in "ZX"
        and "bitwatch\0attach" in _text(stat.pid, "cmdline")
        and home in _text(stat.pid, "environ")
    ]


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""


@pytest.fixture(scope="module")
def run(shell: Shell) -> Iterator[RunDir]:
    """A run that was launched on the screen, and is killed off there: the tests go on with it."""
    with Terminal(shell, "run", str(shell.config), "--set", FOREVER) as screen:
        screen.see("RUNNING", "2 of 4 readers idle", "[w] why", "[R] relaunch corrected")
        text = screen.see(
            *("1 GPUs", "2 Readers", "○ idle", "3 Loss", "4 Processes", "rank 1"),
            "worker 0 · shard",
        )
        assert "q detach" in text and "S stop" in text
        (row,) = shell.ls()
        os.kill(screen.pid, signal.SIGKILL)
        screen.child.wait()
    yield RunDir(Path(row["dir"]))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run that has ended on its screen: the exit code, and what it left on the shell."""
    other = Shell(tmp_path_factory.mktemp("ended"))
    with Terminal(other, "run", str(other.config), "--set", "train.steps=10") as screen:
        screen.see("DONE", "10/10", "validation")
        screen.press("q")
        code, lines = screen.leave()
    (run,) = rundir.list_runs(other.home)
    until(lambda: not run.lock_is_held(), "the record to be closed")
    return other, code, lines


def steps(run: RunDir) -> list[int]:
    return [r.step for r in read_all(run.rank(1, 0))[0] if isinstance(r, events.Step)]


def test_a_killed_viewer_takes_nothing_with_it(shell: Shell, run: RunDir) -> None:
    row = shell.one()
    assert row["supervisor"] == "alive"
    shell.reach(row["step"] + 10)


@pytest.mark.parametrize("times", [3, pytest.param(20, marks=pytest.mark.long)])
def test_detaching_leaves_every_step_and_no_viewer(shell: Shell, run: RunDir, times: int) -> None:
    for turn in range(times):
        with Terminal(shell, "attach") as screen:
            screen.see("RUNNING", "3 Loss", "? help")
            screen.press("q")
            code, lines = screen.leave()
            assert code == 0, turn
            assert lines[-1] == f"{run.id} goes on; bitwatch attach {run.id} brings it back"
    assert viewers(shell) == []
    reached = shell.one()["step"]
    shell.reach(reached + 10)
    every = [step for step in steps(run) if step > 1]
    assert every == list(range(10, every[-1] + 1, 10))


def test_two_viewers_at_once_and_a_closed_terminal(shell: Shell, run: RunDir) -> None:
    with Terminal(shell, "attach", run.id[:-1]) as first:
        first.see("RUNNING")
        with Terminal(shell, "attach", run.id, size=(80, 24)) as second:
            second.see("RUNNING", "2 Readers", "4 Processes")
            first.see("RUNNING")
            second.hang_up()
        now = shell.one()["step"]
        first.until(lambda text: _step_on(text) > now, "a later step")
        first.press("\x03")
        first.see("q detaches")
        first.press("q")
        assert first.leave()[0] == 0
    shell.reach(now + 10)


def _step_on(text: str) -> int:
    words = text.replace(",", "").split()
    return int(words[words.index("step") + 1].split("/")[0]) if "step" in words else 0


def test_a_colourless_and_a_small_terminal(shell: Shell, run: RunDir) -> None:
    with Terminal(shell, "attach", run.id, NO_COLOR="1", COLORTERM="") as screen:
        screen.see("RUNNING", "○ idle")
        screen.press("q")
        screen.leave()
    assert b"38;2;" not in _colours(screen.raw)
    with Terminal(shell, "attach", run.id, TERM="screen", COLORTERM="") as screen:
        screen.see("RUNNING", "○ idle")
        screen.press("q")
        screen.leave()
    assert b"38;2;" not in screen.raw and b"38;5;" not in screen.raw
    with Terminal(shell, "attach", run.id, size=(20, 5)) as screen:
        screen.see("too small")
        screen.press("q")
        assert screen.leave()[0] == 0


def _colours(raw: bytes) -> bytes:
    """Sequences of grey are how a screen without colour is drawn."""
    greys = re.compile(rb"[34]8;2;(\d+);\1;\1\b")
    return greys.sub(b"", raw)


def test_a_stop_from_the_screen_writes_a_checkpoint(shell: Shell, run: RunDir) -> None:
    with Terminal(shell, "attach", run.id) as screen:
        screen.see("RUNNING")
        screen.press("S")
        screen.see("Stop the run", "Cancel")
        screen.press("\r")  # Cancel has the focus
        screen.until(lambda text: "Stop the run" not in text, "no dialog")
        assert shell.one()["state"] == "running"
        screen.press("S")
        screen.see("Stop the run")
        screen.press("\t", "\r")
        screen.see("STOPPED")
        until(lambda: not run.lock_is_held(), "the record to be closed")
        screen.press("q")
        code, lines = screen.leave()
    assert code == 0
    assert lines[-1] == f"{run.id} has ended (stopped); bitwatch attach {run.id} shows it again"
    row = shell.one()
    assert (row["state"], row["note"]) == ("stopped", "")
    assert list(run.checkpoints().glob("step-*/manifest.json"))
    stops = [r for r in read_all(run.journal)[0] if isinstance(r, events.Action)]
    assert any(r.name == "stop" and "the screen" in r.by for r in stops)


@pytest.mark.parametrize(
    ("which", "panel"), [("gpus", "1 GPUs"), ("readers", "2 Readers"), ("loss", "3 Loss")]
)
def test_an_ended_run_looks_the_same_after_every_attach(
    shell: Shell, run: RunDir, which: str, panel: str
) -> None:
    """Each of its panels alone: the fourth is of the whole machine, on which others come and go."""
    (shell.home / kept.NAME).write_bytes(msgspec.json.encode(kept.Kept(maximised=which)))
    pictures = []
    for _ in range(3):
        with Terminal(shell, "attach", run.id) as screen:
            screen.see("STOPPED", "? help")
            screen.until(lambda text: panel in text and "4 Processes" not in text, panel)
            screen.press("q")
            screen.leave()
            pictures.append(screen.last)
    assert "STOPPED" in pictures[0]
    print(*pictures, sep="\n=====\n")
    assert pictures[0] == pictures[1] == pictures[2]


def test_how_an_ended_runs_screen_was_left_is_how_the_next_one_begins(
    shell: Shell, run: RunDir
) -> None:
    (shell.home / kept.NAME).unlink(missing_ok=True)
    for before, after in (("y", ""), ("", "y")):
        with Terminal(shell, "attach", run.id) as screen:
            screen.see("STOPPED", "3 Loss")
            screen.press(*before)
            screen.see("log ─")
            screen.press(*after, "q")
            screen.leave()
        left = kept.read(shell.home / kept.NAME).panels["loss"]
        assert left["log_scale"] is bool(before)


@pytest.mark.long
def test_a_stop_without_a_supervisor_starts_one(shell: Shell, run: RunDir, tmp_path: Path) -> None:
    other = Shell(tmp_path)
    name = other.launch(FOREVER)
    other.reach(10)
    gone = RunDir(other.home / name)
    first = gone.holder()
    assert first is not None
    assert processes.send_signal(first.pid, first.starttime, signal.SIGKILL)
    with Terminal(other, "attach") as screen:
        screen.see("RUNNING")
        until(gone.lock_is_held, "attach to have started one")
        until(lambda: gone.holder() != first, "it to say who it is")
        holder = gone.holder()
        assert holder is not None
        assert processes.send_signal(holder.pid, holder.starttime, signal.SIGKILL)
        screen.see("reconnecting", "supervisor gone")
        screen.press("S")
        screen.see("Stop the run")
        screen.press("\t", "\r")
        screen.see("STOPPED")
        until(lambda: not children(screen.pid), "the screen to take the status of whom it started")
        screen.press("q")
        screen.leave()
    assert other.one()["state"] == "stopped"
    key = (holder.pid, holder.starttime)
    assert not alive(key)


@pytest.mark.long
def test_the_supervisor_cleans_what_an_earlier_attempt_left(ended: Ended) -> None:
    """A process recorded in attempt 1 lives on under attempt 2; a stop meant for attempt 1
    does not reach attempt 2."""
    other, *_ = ended
    run = RunDir(Path(other.one()["dir"]))
    stray = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    key = (stray.pid, kernel.starttime(stray.pid) or 0)
    writer = JournalWriter(run.journal)
    writer.write(
        events.ProcessStart(
            pid=key[0], starttime=key[1], role="worker", rank=0, worker=1, attempt=1
        )
    )
    writer.close()
    other.run("run", "--resume", run.id, "--set", FOREVER, "--detach")
    socket = Path(run.identity().socket)
    try:
        with Terminal(other, "attach") as screen:
            screen.see("RUNNING", "attempt 2", "1 process of ended attempt 1", "[c] clean up")
            screen.press("c")
            screen.see(f"ended worker 1 of rank 0 (pid {key[0]})")
            assert not alive(key)
            screen.until(lambda text: "of ended attempt" not in text, "no leftovers")
            refused = control.ask(socket, control.Request("stop", "test", attempt=1))
            assert not refused.ok and "attempt 1 is over" in refused.text
            assert not run.stop(2).exists()
            screen.press("q")
            screen.leave()
    finally:
        stray.kill()
        stray.wait()
        other.run("stop", run.id, "--now")


@pytest.mark.long
def test_a_run_that_ends_on_the_screen_stays_there_until_q(ended: Ended) -> None:
    other, code, lines = ended
    assert code == 0
    row = other.one()
    assert any(line.startswith("done  step 10 of 10") for line in lines)
    assert (
        lines[-1] == f"{row['run']} has ended (done); bitwatch attach {row['run']} shows it again"
    )


@pytest.mark.long
def test_a_run_that_fails_on_the_screen_has_the_exit_code_of_a_failure(tmp_path: Path) -> None:
    other = Shell(tmp_path)
    with Terminal(other, "run", str(other.config), "--set", FOREVER) as screen:
        screen.see("RUNNING")
        run = RunDir(Path(other.one()["dir"]))
        rank = next(r for r in read_all(run.rank(1, 1))[0] if isinstance(r, events.ProcessStart))
        assert processes.send_signal(rank.pid, rank.starttime, signal.SIGKILL)
        screen.see("FAILED", "rank 1 was killed by SIGKILL")
        screen.press("q")
        code, lines = screen.leave()
    assert code == 1
    assert any("rank 1 was killed by SIGKILL" in line for line in lines)


def test_a_finished_run_is_played_again_and_nothing_of_it_is_touched(ended: Ended) -> None:
    other, *_ = ended
    run = RunDir(Path(other.one()["dir"]))
    before = sorted((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in run.path.rglob("*"))
    last = read_all(run.journal)[0][-1].t
    with Terminal(other, "attach", "--replay", run.id[:-1], "--speed", "0.5") as screen:
        screen.see("▶ REPLAY 0.5x", "0 %", "p pause", "> faster", "3 Loss")
        screen.press("p")
        screen.see("‖ REPLAY paused")
        screen.press("S")
        screen.see("this is a replay of what is over")
        screen.press("\x1b[F")
        day = time.strftime("%A %-d %B %Y, %H:%M:%S", time.localtime(last))
        screen.see("DONE", "10/10", "■ REPLAY", "100 %", "it is over; home plays it again", day)
        screen.press("[")
        screen.until(lambda text: "it is over" not in text, "a tenth back")
        screen.press("\x1b[H")
        screen.until(lambda text: re.search(r"REPLAY.* [0-4] %", text), "the beginning")
        screen.press("q")
        code, lines = screen.leave()
    assert code == 0
    assert lines[-1].startswith(f"{run.id} was played, and is as it was")
    after = sorted((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in run.path.rglob("*"))
    assert after == before
