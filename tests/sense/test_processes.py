"""Raw /proc: odd names, the vanished, the young, and signals that mean one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from bitwatch.sense import processes
from tests.conftest import until


def test_a_name_may_look_like_the_fields_behind_it() -> None:
    fields = " ".join(str(i) for i in range(1, 25))
    stat = processes.parse_stat(f"7 () R 1 1 (x) S {fields}".encode())
    assert stat
    assert (stat.pid, stat.name, stat.state, stat.ppid) == (7, ") R 1 1 (x", "S", 1)


@pytest.mark.parametrize("data", [b"", b"7 (x", b"7 (x) S 1 2", b"no stat at all"])
def test_what_is_no_stat_is_none(data: bytes) -> None:
    assert processes.parse_stat(data) is None


def test_a_process_with_an_odd_name_is_scanned_like_psutil_sees_it() -> None:
    code = "import ctypes,sys; ctypes.CDLL(None).prctl(15, b') R 1 1 (x'); print(flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout
        child.stdout.readline()
        stat = processes.scan()[child.pid]
        seen = psutil.Process(child.pid)
        assert stat.name == ") R 1 1 (x"
        assert stat.ppid == os.getpid() == seen.ppid()
        assert stat.session == os.getsid(child.pid)
        assert stat.threads == seen.num_threads()
        assert stat.rss_mib == pytest.approx(seen.memory_info().rss / 2**20, rel=0.2)
        assert 0 <= processes.age_s(stat) < 60
    finally:
        child.kill()
        child.communicate()


def test_every_visible_process_is_in_a_scan_and_the_vanished_is_not() -> None:
    child = subprocess.Popen(["sleep", "60"])
    assert child.pid in processes.scan()
    child.kill()
    child.wait()
    assert child.pid not in processes.scan()
    assert processes.read_stat(child.pid) is None


def test_descendants_are_found_through_generations() -> None:
    shell = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & wait"])
    try:
        below = until(
            lambda: (
                found
                if len(found := processes.descendants(processes.scan(), {shell.pid})) == 2
                else None
            ),
            "two children of the shell",
        )
        assert {stat.ppid for stat in below} == {shell.pid}
        mine = processes.descendants(processes.scan(), {os.getpid()})
        pids = [stat.pid for stat in mine]
        assert pids.index(shell.pid) < min(pids.index(stat.pid) for stat in below)
    finally:
        for stat in processes.descendants(processes.scan(), {shell.pid}):
            processes.send_signal(*stat.key, signal.SIGKILL)
        shell.kill()
        shell.wait()


def test_a_command_line_is_kept_only_once_it_is_the_processes_own() -> None:
    lines = processes.CommandLines()
    child = subprocess.Popen(["sleep", "61"])
    try:
        command = until(
            lambda: (
                text
                if (stat := processes.read_stat(child.pid))
                and (text := lines.get(stat)) == "sleep 61"
                else None
            ),
            "the command line after exec",
        )
        assert command == "sleep 61"
    finally:
        child.kill()
    stat = processes.read_stat(child.pid)
    child.wait()
    if stat and stat.state == "Z":
        assert lines.get(stat) in ("", "sleep 61")


def test_a_signal_reaches_only_the_process_that_was_meant() -> None:
    child = subprocess.Popen(["sleep", "60"])
    stat = processes.read_stat(child.pid)
    assert stat
    assert not processes.send_signal(child.pid, stat.starttime + 1, signal.SIGKILL)
    assert child.poll() is None
    assert processes.send_signal(child.pid, stat.starttime, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not processes.send_signal(child.pid, stat.starttime, signal.SIGKILL)
