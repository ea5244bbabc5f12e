"""Real processes in odd conditions, each ended by its own handle."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bitwatch.sense import processes
from bitwatch.sense.processes import Stat
from bitwatch.sense.stat import thread_states
from tests.conftest import until

# exit(2) of one thread, which no library offers: the kernel's number for it.
SYS_EXIT = {"x86_64": 60, "aarch64": 93}.get(platform.machine(), 93)
WITH_A_DEAD_LEADER = f"""
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
print(flush=True)
ctypes.CDLL(None).syscall({SYS_EXIT}, 0)
"""

# posix_spawn returns when its child has exec'd, and waits in the kernel until then: here for
# somebody who opens the other end of a pipe.
IN_THE_KERNEL = """
import os, sys, threading
def wait():
    opening = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[opening])
print(flush=True)
if sys.argv[2] == "all":
    wait()
threading.Thread(target=wait).start()
"""

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program that reads its stdin, or Python on a text that prints a line when it is
    ready. All, and all below them, are killed at the end."""
    children: list[subprocess.Popen[bytes]] = []

    def begin(*command: str, code: str = "", **keywords: Any) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", code, *command] if code else [*command]
        child = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords
        )
        children.append(child)
        if code and child.stdout:
            assert child.stdout.readline(), child.stderr and child.stderr.read()
        return child

    yield begin
    table = processes.scan()
    for child in children:
        for stat in processes.descendants(table, {child.pid}):
            processes.send_signal(*stat.key, signal.SIGKILL)
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe:
                pipe.close()


@pytest.fixture
def leaderless(start: Start) -> Stat:
    """A process whose first thread is dead and whose second lives."""
    child = start(code=WITH_A_DEAD_LEADER)
    return until(lambda: in_state(child.pid, "Z"), "the first thread's death")


@pytest.fixture
def in_the_kernel(start: Start, tmp_path: Path) -> Callable[[str], Stat]:
    """A process in state D: "all" of it, or "one" thread only."""

    def begin(which: str) -> Stat:
        pipe = tmp_path / which
        os.mkfifo(pipe)
        child = start(str(pipe), which, code=IN_THE_KERNEL)
        until(lambda: processes.descendants(processes.scan(), {child.pid}), "its child")
        until(lambda: "D" in thread_states(child.pid).values(), "a thread in state D")
        return stat_of(child.pid)

    return begin


def in_state(pid: int, letter: str) -> Stat | None:
    stat = processes.read_stat(pid)
    return stat if stat and stat.state == letter else None


def stat_of(pid: int) -> Stat:
    stat = processes.read_stat(pid)
    assert stat
    return stat


def program(pid: int, name: str) -> Stat:
    """The stat of `pid` once it has become the program `name`."""
    return until(
        lambda: stat if (stat := processes.read_stat(pid)) and stat.name == name else None,
        f"the exec of {name}",
    )


def in_a_fork(ask: Callable[[], Any]) -> Any:
    """What `ask` returns in a child that may become anybody; an OSError is a reason to skip."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = {"answer": ask()}
        except OSError as error:
            answer = {"refused": str(error)}
        except BaseException as error:
            answer = {"failed": repr(error)}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = json.loads(pipe.read() or b'{"failed": "the child died"}')
    os.waitpid(pid, 0)
    if "refused" in told:
        pytest.skip(f"not permitted here: {told['refused']}")
    assert "failed" not in told, told["failed"]
    return told["answer"]
