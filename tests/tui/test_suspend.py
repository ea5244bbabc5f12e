"""The screen is lent to the shell and comes back, on a real terminal with a real shell."""

from __future__ import annotations

import os
import shutil
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bitwatch.sense import processes
from tests.conftest import Shell, until
from tests.terminal import Terminal, children, is_there
from tests.tui import recorded

PROMPT = "shell-waits> "
MOUSE, NO_MOUSE, PASTES = b"\x1b[?1000h", b"\x1b[?1000l", b"\x1b[?2004h"


@pytest.fixture
def ended(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    recorded.make(shell.home, ended=True)
    return shell


@contextmanager
def below_a_shell(
    shell: Shell, ending: str = "", shown: str = "? help", first: str = "set -b"
) -> Iterator[tuple[Terminal, int]]:
    """A screen on a run that has ended, started by somebody at a shell; and its pid."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash")
    attach = f"{shell.command[0]} attach"
    shell.command = [bash, "--norc", "--noprofile", "-i"]
    with Terminal(shell, PS1=PROMPT, HISTFILE="", BASH_SILENCE_DEPRECATION_WARNING="1") as terminal:
        terminal.see(PROMPT)
        terminal.press(f"{first}; {attach}{ending}\r")
        terminal.see(shown)
        (pid,) = children(terminal.pid)
        yield terminal, pid
        terminal.press("q")
        until(lambda: terminal.hear() and not is_there(pid), "the viewer to leave")


def state(pid: int) -> str:
    stat = processes.read_stat(pid)
    return stat.state if stat else ""


def switches(pid: int) -> str:
    """How often it has stood still so far, for whatever reason."""
    status = Path(f"/proc/{pid}/status").read_text()
    return status.partition("\nvoluntary_ctxt_switches:")[2]


def stopped(terminal: Terminal, pid: int) -> None:
    terminal.see("Stopped", PROMPT)
    assert state(pid) == "T" and "3 Loss" not in terminal.text()
    assert terminal.raw.rindex(NO_MOUSE) > terminal.raw.rindex(MOUSE)
    assert termios.tcgetattr(terminal.child.child_fd)[3] & termios.ISIG
    terminal.press("echo and it ob''eys\r")
    terminal.see("and it obeys")


def back(terminal: Terminal) -> None:
    """Painted whole, and it takes keys and the mouse again."""
    before = len(terminal.raw)
    terminal.press("fg\r")
    terminal.see("DONE", "1 GPUs", "2 Readers", "3 Loss", "4 Processes", "? help")
    assert PROMPT not in terminal.text()
    assert MOUSE in terminal.raw[before:] and PASTES in terminal.raw[before:]
    terminal.press("y")
    terminal.see("log ─")
    terminal.press("y")
    terminal.until(lambda text: "log ─" not in text, "a linear scale")


def test_ctrl_z_and_a_signal_give_the_terminal_to_the_shell_and_fg_brings_all_back(
    ended: Shell,
) -> None:
    with below_a_shell(ended) as (terminal, pid):
        terminal.press("\x1a")
        stopped(terminal, pid)
        back(terminal)
        os.kill(pid, signal.SIGTSTP)
        stopped(terminal, pid)
        terminal.resize(80, 24)
        back(terminal)
        assert terminal.text().splitlines()[-1].strip(), "the footer, in the last of 24 lines"
        os.kill(pid, signal.SIGSTOP)  # of which nobody is told before it is continued
        terminal.see("Stopped", PROMPT)
        back(terminal)


def test_a_screen_in_the_background_waits_there_until_it_is_fetched(ended: Shell) -> None:
    with below_a_shell(ended, " &", "Stopped") as (terminal, pid):
        back(terminal)
        terminal.press("\x1a")
        stopped(terminal, pid)
        before = switches(pid)
        terminal.press("clear; bg\r")
        until(
            lambda: terminal.hear() and switches(pid) != before and state(pid) == "T",
            "it to have gone on, and to be stopped once more",
        )
        back(terminal)
        terminal.press("?", "\x1a")  # on a page too
        stopped(terminal, pid)
        terminal.press("fg\r")
        terminal.see("On the dashboard")
        assert os.tcgetpgrp(terminal.child.child_fd) == os.getpgid(pid)
        terminal.press("?")


def test_in_the_background_it_waits_also_where_it_was_told_not_to_mind(ended: Shell) -> None:
    """Whoever ignores the signal that stops there would ask for the terminal again and again."""
    first = "set -b; trap '' TTOU"
    with below_a_shell(ended, " &", "Stopped", first) as (terminal, pid):
        assert state(pid) == "T"
        back(terminal)


def test_without_a_shell_below_the_screen_stays_and_says_so(ended: Shell) -> None:
    with Terminal(ended, "attach") as terminal:
        terminal.see("DONE", "3 Loss")
        terminal.press("\x1a")
        terminal.see("no shell lies below", "q leaves")
        before = len(terminal.raw)
        os.kill(terminal.pid, signal.SIGTSTP)
        until(lambda: MOUSE in terminal.hear()[before:], "the mouse again")
        terminal.see("DONE", "3 Loss", "? help")
        assert state(terminal.pid) != "T"
        terminal.press("q")
        assert terminal.leave()[0] == 0
