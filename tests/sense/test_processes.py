"""Raw /proc: odd names, the vanished, the young, and signals that mean one process."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from bitwatch.record import follow, kernel
from bitwatch.sense import processes
from bitwatch.sense.processes import Stat
from bitwatch.supervise import cleanup
from tests.conftest import until
from tests.sense.conftest import Start, in_state, stat_of


def test_a_name_may_look_like_the_fields_behind_it() -> None:
    fields = " ".join(str(i) for i in range(1, 25))
    stat = processes.parse_stat(f"7 () R 1 1 (x) S {fields}".encode())
    assert stat
    assert (stat.pid, stat.name, stat.state, stat.ppid) == (7, ") R 1 1 (x", "S", 1)


@pytest.mark.parametrize("data", [b"", b"7 (x", b"7 (x) S 1 2", b"no stat at all"])
def test_what_is_no_stat_is_none(data: bytes) -> None:
    assert processes.parse_stat(data) is None


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b") R 1 1 (x", ") R 1 1 (x"),
        (b"(((", "((("),
        (b"a\nb) S 2\n", "a\nb) S 2\n"),
        (b"\xff\xfe\x80", "\ufffd\ufffd\ufffd"),
        (b" ", " "),
    ],
)
def test_a_process_with_an_odd_name_is_scanned_like_psutil_sees_it(
    start: Start, name: bytes, shown: str
) -> None:
    code = f"import ctypes,sys; ctypes.CDLL(None).prctl(15, {name!r}); print(flush=True); sys.stdin.read()"
    child = start(code=code)
    stat = processes.scan()[child.pid]
    seen = psutil.Process(child.pid)
    assert stat.name == shown
    assert stat.ppid == os.getpid() == seen.ppid()
    assert stat.session == os.getsid(child.pid)
    assert stat.group == os.getpgid(child.pid)
    assert stat.threads == seen.num_threads()
    assert stat.rss_mib == pytest.approx(seen.memory_info().rss / 2**20, rel=0.2)
    assert stat.virtual_mib == pytest.approx(seen.memory_info().vms / 2**20, rel=0.2)
    environment = Path(f"/proc/{child.pid}/environ").read_bytes()
    assert stat.env_end - stat.env_start == len(environment)
    assert 0 <= processes.age_s(stat) < 60


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


def test_states_are_told_in_honest_words(start: Start, leaderless: Stat) -> None:
    assert processes.state_words(leaderless) == "leader dead, 1 thread live"
    sleeper = start("cat")
    until(lambda: in_state(sleeper.pid, "S"), "a sleeping process")
    assert processes.state_words(stat_of(sleeper.pid)) == "sleeping"
    sleeper.send_signal(signal.SIGSTOP)
    assert processes.state_words(until(lambda: in_state(sleeper.pid, "T"), "T")) == "stopped (T)"
    sleeper.kill()
    zombie = until(lambda: in_state(sleeper.pid, "Z"), "a zombie")
    assert processes.state_words(zombie) == "dead, waits for its parent"
    assert processes.is_dead(zombie) and not processes.is_dead(leaderless)
    assert processes.open_pidfd(*zombie.key) is None
    busy = start(code="print(flush=True)\nwhile True: pass")
    running = until(lambda: in_state(busy.pid, "R"), "a running process")
    assert processes.state_words(running) == "running"
    for letter, words in (("D", "waiting in the kernel (D)"), ("t", "traced (t)")):
        assert processes.state_words(running._replace(state=letter)) == words


def test_a_process_whose_first_thread_is_dead_lives_and_can_be_killed(leaderless: Stat) -> None:
    key = leaderless.key
    role: dict[processes.Key, tuple[str, int | None, int | None]] = {key: ("rank", 0, None)}
    assert kernel.starttime(leaderless.pid) == leaderless.starttime and follow.lives(*key)
    assert cleanup.ours({key: leaderless}, role) == [key]
    assert processes.send_signal(*key, signal.SIGKILL)
    until(lambda: processes.is_dead(leaderless), "its end")
    assert not processes.send_signal(*key, signal.SIGKILL)
    assert not follow.lives(*key) and cleanup.ours({key: leaderless}, role) == []
