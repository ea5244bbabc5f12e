"""Looks again and again: what is ours is fresh, what is new is seen, nothing is mistaken."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bitwatch.sense import processes, scanner
from bitwatch.sense.processes import Scanner
from tests.conftest import until
from tests.sense.conftest import Start, in_a_fork, in_state, program, stat_of
from tests.sense.test_facts import _isolated

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
SOME_USER = 65534


@pytest.fixture
def never_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first look only what must be is read again."""
    monkeypatch.setattr(scanner, "EVERYTHING_S", math.inf)


def test_a_look_sees_what_a_scan_sees(start: Start) -> None:
    child = start("cat")
    seen = Scanner()
    before, table, after = processes.scan(), seen.look(), processes.scan()
    assert before.keys() & after.keys() <= table.keys()
    assert table[child.pid].key == after[child.pid].key
    assert table[os.getpid()].ppid == os.getppid()


@pytest.mark.usefixtures("never_all")
def test_ours_is_fresh_and_others_wait_until_all_are_read(start: Start) -> None:
    mine = program(start("sh", "-c", "cat; read x").pid, "sh")
    cat = until(lambda: processes.descendants(processes.scan(), {mine.pid}), "its child")[0]
    other = program(start("cat").pid, "cat")
    seen = Scanner()
    seen.look([mine.key])
    for stat in (cat, other):
        processes.send_signal(*stat.key, signal.SIGSTOP)
        until(lambda stat=stat: in_state(stat.pid, "T"), "a stopped process")
    table = seen.look([mine.key])
    assert list(seen.own) == [mine.key, cat.key], "parents before children"
    assert table[cat.pid].state == "T", "a child of ours is read at every look"
    assert table[other.pid].state != "T"
    assert seen.look([mine.key, other.key])[other.pid].state == "T", "what is asked for is fresh"
    processes.send_signal(*other.key, signal.SIGCONT)
    until(lambda: in_state(other.pid, "S"), "a process that goes on")
    assert seen.look([mine.key])[other.pid].state == "S", "so is what was asked for last"
    processes.send_signal(*other.key, signal.SIGSTOP)
    until(lambda: in_state(other.pid, "T"), "a stopped process")
    assert seen.look()[other.pid].state == "S"
    assert seen.own == {}
    assert seen.look(everything=True)[other.pid].state == "T"


def test_everything_is_read_again_after_a_while(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = program(start("cat").pid, "cat")
    monkeypatch.setattr(scanner, "EVERYTHING_S", 0.0)
    seen = Scanner()
    seen.look()
    processes.send_signal(*other.key, signal.SIGSTOP)
    until(lambda: in_state(other.pid, "T"), "a stopped process")
    assert seen.look()[other.pid].state == "T"


@pytest.mark.usefixtures("never_all")
def test_the_new_are_seen_at_once_and_the_vanished_are_not(start: Start) -> None:
    seen = Scanner()
    seen.look()
    child = start("cat")
    assert seen.look()[child.pid].ppid == os.getpid()
    child.kill()
    child.wait()
    assert child.pid not in seen.look()


@pytest.mark.usefixtures("never_all")
def test_an_orphan_that_comes_to_us_is_ours_at_once(start: Start) -> None:
    """A subreaper with a child that has a child, and then has not."""
    code = """
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)
middle = subprocess.Popen(["sh", "-c", "exec 3<&0; cat <&3 & exec cat"], stdin=int(sys.argv[1]))
print(middle.pid, flush=True)
sys.stdin.readline()
middle.kill()
middle.wait()
print(flush=True)
sys.stdin.read()
"""
    reading, writing = os.pipe()
    reaper = subprocess.Popen(
        [sys.executable, "-c", code, str(reading)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[reading],
    )
    os.close(reading)
    try:
        assert reaper.stdin and reaper.stdout
        middle = int(reaper.stdout.readline())
        key = stat_of(reaper.pid).key
        seen = Scanner()
        until(lambda: len(seen.look([key])[middle].key and seen.own) == 3, "child and grandchild")
        (orphan,) = [stat for stat in seen.own.values() if stat.ppid == middle]
        reaper.stdin.write(b"\n")
        reaper.stdin.flush()
        reaper.stdout.readline()
        table = seen.look([key])
        assert middle not in table
        assert table[orphan.pid].ppid == reaper.pid
        assert list(seen.own) == [key, orphan.key]
    finally:
        os.close(writing)  # both cats read its end
        reaper.communicate()


def test_processes_may_vanish_in_the_middle_of_any_look(start: Start) -> None:
    """Looks beside a shell that starts and ends hundreds of processes."""
    churn = start(
        "sh", "-c", "i=0; while [ $i -lt 400 ]; do true | true & i=$((i+1)); done; wait; read x"
    )
    key = stat_of(churn.pid).key
    seen = Scanner()
    most = 0
    while in_state(churn.pid, "S") is None or most == 0:
        table = seen.look([key])
        assert table[churn.pid].key == key
        assert all(pid == stat.pid for pid, stat in table.items())
        most = max(most, len(seen.own) - 1)
        for stat in seen.own.values():
            seen.command(stat), seen.tags(stat), seen.user(stat), seen.shared_mib(stat)
            seen.in_our_namespace(stat), seen.gpu_files(stat), processes.state_words(stat)
            if stat.pid % 50 == 0:
                processes.details(*stat.key)
    until(lambda: len(seen.look([key]) and seen.own) == 1, "the end of all others")
    assert most > 0


REUSED = """
import os, subprocess, sys
from pathlib import Path
from bitwatch.sense import processes, scanner
scanner.EVERYTHING_S = float("inf")
seen = processes.Scanner()
def name(pid):
    return (stat := seen.look().get(pid)) and stat.name
def spawn(program, after):
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(after))
    child = subprocess.Popen([program], stdin=subprocess.PIPE)
    while processes.read_stat(child.pid).name != program:
        pass
    return child
first, later = spawn("cat", 400), spawn("cat", 500)
assert name(first.pid) == "cat" and name(later.pid) == "cat"
for ended in (first, later):  # the first by a turn around the end, the later in passing
    ended.communicate()
    again = spawn("tee", ended.pid - 1)
    assert again.pid == ended.pid
    print(name(again.pid), flush=True)
"""


def test_a_pid_that_is_given_out_again_between_two_looks_is_read_again() -> None:
    words = _isolated("--pid", "--fork", "--mount-proc")
    done = subprocess.run(
        [*words, sys.executable, "-c", REUSED], capture_output=True, text=True, check=False
    )
    if "PermissionError" in done.stderr:
        pytest.skip("which pid comes next cannot be set here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["tee", "tee"]


@pytest.mark.usefixtures("never_all")
@pytest.mark.parametrize("mode", ["1", "2"])
@pytest.mark.skipif(os.getuid() != 0, reason="only root can hide processes")
def test_where_others_are_hidden_our_own_are_seen(mode: str) -> None:
    """1: others are listed but closed. 2: they are not even listed."""

    def look() -> list[object]:
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"hidepid={mode}".encode()
        if (
            libc.unshare(CLONE_NEWNS)
            or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
            or libc.mount(b"proc", b"/proc", b"proc", 0, options)
        ):
            raise OSError(ctypes.get_errno(), "a /proc of one's own")
        os.setgroups([])
        os.setresgid(SOME_USER, SOME_USER, SOME_USER)
        os.setresuid(SOME_USER, SOME_USER, SOME_USER)
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        seen = Scanner()
        hidden = [Path("/proc/1").exists(), 1 in seen.look(), 1 in seen._refused]
        me = processes.read_stat(os.getpid())
        assert me is not None
        until(lambda: len(seen.look([me.key], everything=True) and seen.own) == 2, "both")
        found = [key[0] == pid for key, pid in zip(seen.own, (me.pid, child.pid), strict=True)]
        seen.look()  # nothing is asked for any more
        for times in (scanner.TRIES - 1, scanner.TRIES):  # that the child was refused
            seen._drop(child.pid)
            seen._refused[child.pid] = times
            found.append(child.pid in seen.look())
        child.communicate()
        return [*hidden, *found, child.pid in seen.look([me.key])]

    *hidden, me, child, tried_again, given_up, gone = in_a_fork(look)
    assert (me, child, tried_again, given_up, gone) == (True, True, True, False, False)
    if hidden[1]:
        pytest.skip("this kernel does not hide processes for one mount")
    assert hidden == [mode == "1", False, mode == "1"]
