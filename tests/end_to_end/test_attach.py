"""Which run `attach` opens, and all that it says instead of opening one."""

from __future__ import annotations

import os
import signal
import termios
from pathlib import Path

import pytest

from bitwatch import screen as opening
from bitwatch.attach import choose
from bitwatch.record import kernel, rundir
from tests.conftest import Shell, until, without_roots_rights
from tests.terminal import Terminal
from tests.tui import recorded


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def refused(shell: Shell, *arguments: str, code: int = 2) -> str:
    """The one sentence, in a terminal."""
    with Terminal(shell, "attach", *arguments, size=(400, 40)) as screen:
        found, lines = screen.leave()
    assert found == code, lines
    assert not any("Traceback" in line for line in lines)
    return " ".join(lines)


def test_no_runs_at_all(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of whoever runs the tests come and go; where there are some, they are offered."""
    said = shell.run("attach", code=2)[1]
    assert "no runs yet" in said or "found was pid" in said
    monkeypatch.setattr(choose, "trainings", list)
    with pytest.raises(rundir.RunDirError, match="no runs yet; `bitwatch run` starts the demo"):
        opening.attach(shell.home, None)


def test_a_pid_or_a_file_that_is_of_no_training_is_refused_with_what_it_is(shell: Shell) -> None:
    assert "a run of tests, which is no training" in refused(shell, str(os.getpid()))
    assert not shell.home.exists()
    (shell.folder / "odd.bin").write_bytes(b"\x7fELF\0\0\1\2" * 500)
    assert "odd.bin: is a binary file, not a log" in refused(shell, "odd.bin")


def test_a_log_is_opened_and_followed_and_its_run_comes_back(shell: Shell) -> None:
    log = shell.folder / "train.log"
    line = "iter {0}: loss {0}.5, time 130.11ms, mfu 1.20%\n"
    log.write_text("".join(line.format(n) for n in range(41)))
    assert "train.log can be watched in one" in shell.run("attach", "train.log", code=2)[1]
    assert not shell.home.exists()
    with Terminal(shell, "attach", "train.log") as screen:
        screen.see("RUNNING", "40")
        with log.open("a") as file:
            file.write(line.format(41) + line.format(42))
        screen.see("RUNNING", "42")
        screen.press("S")
        screen.see("bitwatch did not start it")
        screen.press("q")
        assert screen.leave()[0] == 0
    (row,) = shell.ls()
    assert row["step"] == 42 and row["note"].startswith("watched, not started by bitwatch")
    assert "iter 42: loss" in shell.run("logs", row["run"])[0]


def test_an_unknown_run_and_two_that_match(shell: Shell) -> None:
    for _ in range(2):
        recorded.make(shell.home, ended=True)
    assert "no such run" in refused(shell, "nothing")
    assert "2 runs match" in refused(shell, "demo")


def test_without_a_terminal_it_names_another_way(shell: Shell) -> None:
    run = recorded.make(shell.home, ended=True)
    out, err = shell.run("attach", run.id, code=2)
    assert out == ""
    assert err == (
        f"bitwatch: attach needs a terminal; `bitwatch logs {run.id} -f` follows a run "
        "without one\n"
    )


def test_the_only_live_run_is_opened(shell: Shell) -> None:
    for _ in range(2):
        recorded.make(shell.home, ended=True)
    live = recorded.make(shell.home)
    lock = rundir.Lock(live)
    with Terminal(shell, "attach") as screen:
        screen.see("400/800", "q detach")
        screen.press("q")
        code, lines = screen.leave()
    lock.release()
    assert code == 0
    assert lines[-1].startswith(f"{live.id} goes on; ")


def test_several_are_a_choice_with_live_ones_first(shell: Shell) -> None:
    ended = recorded.make(shell.home, ended=True)
    live = [recorded.make(shell.home, name=name) for name in ("one", "two")]
    locks = [rundir.Lock(run) for run in live]
    with Terminal(shell, "attach") as screen:
        text = screen.see("Which run?", *(run.id for run in (*live, ended)))
        ids = [run.id for run in (*live, ended)]  # a training of somebody else may stand there too
        rows = [line for line in text.splitlines() if any(each in line for each in ids)]
        assert "two" in rows[0] and "one" in rows[1]
        assert ended.id in rows[2] and "done" in rows[2]
        screen.press("\x1b[B", "\r")
        screen.see("400/800", "one")
        screen.press("q")
        assert screen.leave()[1][-1].startswith(f"{live[0].id} goes on")
    with Terminal(shell, "attach") as screen:
        screen.see("Which run?")
        screen.press("q")
        assert screen.leave() == (0, [])
    for lock in locks:
        lock.release()


def test_a_run_deleted_while_it_is_on_the_screen(shell: Shell) -> None:
    run = recorded.make(shell.home)
    lock = rundir.Lock(run)
    with Terminal(shell, "attach", run.id) as screen:
        screen.see("400/800", "STALLED")
        rundir.remove(run.path)
        screen.see("LOST", "has been deleted or moved, and its processes have ended")
        screen.press("q")
        code, lines = screen.leave()
    lock.release()
    assert code == 0
    said = "".join(lines)
    assert f"{run.id}: the folder of this run has been deleted" in said
    assert "bitwatch attach" not in said


def test_a_run_that_may_no_longer_be_read_while_it_is_on_the_screen(shell: Shell) -> None:
    run = recorded.make(shell.home)
    lock = rundir.Lock(run)
    with Terminal(shell, "attach", run.id, before=without_roots_rights) as screen:
        screen.see("400/800", "STALLED")
        run.path.chmod(0)
        try:
            screen.see("400/800", "cannot be read (Permission denied)")
        finally:
            run.path.chmod(0o700)
        screen.until(lambda text: "Permission denied" not in text, "the run to come back")
        screen.press("q")
        code, lines = screen.leave()
    lock.release()
    assert code == 0
    assert f"bitwatch attach {run.id}" in lines[-1]


def test_the_theme_of_the_users_file(shell: Shell) -> None:
    run = recorded.make(shell.home, ended=True)
    own = shell.folder / "config" / "bitwatch"
    (own / "themes").mkdir(parents=True)
    (own / "config.toml").write_text('theme = "missing"\n')
    assert 'there is no theme "missing"; take one of dark' in refused(shell, run.id)
    (own / "config.toml").write_text('theme = "light"\n')
    (own / "themes" / "mine.toml").write_text("name = ")
    with Terminal(shell, "attach", run.id) as screen:
        screen.see("DONE", "mine.toml")
        screen.press("q")
        assert screen.leave()[0] == 0
    assert b"250;251;252" in screen.raw  # the light ground


def test_a_crash_restores_the_terminal_and_leaves_a_file(shell: Shell) -> None:
    """A widget that fails, put in by a module that Python loads at its start."""
    run = recorded.make(shell.home, ended=True)
    (shell.folder / "sitecustomize.py").write_text(
        "import sys, threading, time\n"
        "def spoil():\n"
        "    while not hasattr(sys.modules.get('bitwatch.tui.widgets.loss'), 'LossPanel'):\n"
        "        time.sleep(0.005)\n"
        "    def lines(self, *_): raise RuntimeError('[bold]odd')\n"
        "    sys.modules['bitwatch.tui.widgets.loss'].LossPanel.lines = lines\n"
        "threading.Thread(target=spoil, daemon=True).start()\n"
    )
    with Terminal(shell, "attach", run.id, PYTHONPATH=str(shell.folder)) as screen:
        code, lines = screen.leave()
    text = " ".join(lines)
    assert code == 1, text
    assert "RuntimeError: [bold]odd" in text
    assert "Traceback" not in text
    (file,) = run.path.glob("screen-crash-*.txt")
    assert "RuntimeError" in file.read_text()
    assert file.name in text.replace(" ", "")
    assert screen.raw.rstrip().endswith(b".txt")
    assert b"\x1b[?1049l" in screen.raw and b"\x1b[?25h" in screen.raw
    until(lambda: not screen.child.isalive(), "the viewer to be gone")


def test_a_terminal_that_takes_nothing_holds_no_viewer_that_is_told_to_leave(shell: Shell) -> None:
    live = recorded.make(shell.home)
    lock = rundir.Lock(live)
    with Terminal(shell, "attach", live.id) as screen:
        screen.see("demo", "detach")
        terminal = os.open(f"/proc/{screen.pid}/fd/1", os.O_RDWR | os.O_NOCTTY)
        termios.tcflow(terminal, termios.TCOOFF)  # as ctrl+s does
        os.kill(screen.pid, signal.SIGTERM)
        until(lambda: kernel.starttime(screen.pid) is None, "the viewer to leave")
        os.close(terminal)
        screen.gone()
        assert screen.child.exitstatus == 0 and screen.child.signalstatus is None
    lock.release()
