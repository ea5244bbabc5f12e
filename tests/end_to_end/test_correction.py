"""From a plan that leaves readers idle to one that does not, with one key, in a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch.record import events
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from tests.conftest import Shell, until
from tests.terminal import Terminal

pytestmark = pytest.mark.slow


def test_asked_before_the_launch_and_corrected_while_it_runs(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with Terminal(
        shell,
        *("run", str(shell.config), "--sharding", "ask", "--set", "train.steps=100000"),
    ) as screen:
        screen.see("as configured", "as-is", "indexed", "○ idle", "a as configured", "esc cancel")
        assert shell.ls() == []  # nothing begins before the answer
        screen.press("a")
        screen.see(
            "RUNNING", "2 of 4 readers idle", "[R] relaunch corrected", "attempt 1", "R relaunch"
        )
        shell.reach(120)
        run = RunDir(Path(shell.one()["dir"]))
        screen.press("R")
        screen.see("Relaunch attempt 1 of tiny", "indexed", "What happens", "new epoch")
        screen.press("\x1b")
        screen.until(lambda text: "Relaunch attempt 1" not in text, "no dialog")
        assert not run.relaunch(1).exists() and not run.stop(1).exists()
        screen.press("R")
        screen.see("Relaunch attempt 1 of tiny")
        screen.press("\r")
        screen.see("attempt 2", "RUNNING")
        screen.see("┊2", "┊ attempt")  # the curve goes on across the attempts
        screen.until(lambda text: "[R]" not in text and "idle" not in text, "nothing to correct")
        screen.press("q")
        assert screen.leave()[0] == 0
    saved = [r for r in read_all(run.rank(1, 0))[0] if isinstance(r, events.Checkpoint)][-1]
    steps = [r for r in read_all(run.rank(2, 0))[0] if isinstance(r, events.Step)]
    assert saved.step < steps[0].step <= saved.step + 20
    accounts = [
        record
        for path in (run.attempt(2) / "readers").glob("*-train-*.jsonl")
        for record in read_all(path)[0]
        if isinstance(record, events.Reader) and record.samples
    ]
    assert {(r.rank, r.worker) for r in accounts} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    (asked,) = [
        record
        for record in read_all(run.journal)[0]
        if isinstance(record, events.Action) and record.name == "relaunch"
    ]
    assert "the screen" in asked.by and "indexed instead of as-is" in asked.result
    shell.run("stop", run.id, "--now")
    until(lambda: not run.lock_is_held(), "the record to be closed")


def test_a_launch_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with Terminal(shell, "run", str(shell.config), "--sharding", "ask") as screen:
        screen.see("as configured", "enter launch corrected")
        screen.press("\x1b")
        code, lines = screen.leave()
    assert code == 130
    assert lines[-1] == "bitwatch: nothing was launched"
    assert shell.ls() == []


@pytest.mark.long
def test_without_a_terminal_nobody_is_asked(shell: Shell) -> None:
    out, err = shell.run(
        *("run", str(shell.config), "--sharding", "ask", "--set", "train.steps=10"),
    )
    assert 'data.sharding = "ask": indexed' in err
    assert "4 busy, 0 idle" in out
