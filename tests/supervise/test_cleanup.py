"""What is left behind is ended; what is not ours is not touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from bitwatch.sense import processes
from bitwatch.sense.processes import Stat
from bitwatch.supervise import cleanup
from tests.conftest import until

STUBBORN = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print(flush=True); signal.pause()"
)


def start(program: str) -> tuple[subprocess.Popen[bytes], tuple[int, int]]:
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert child.stdout
    child.stdout.readline()
    stat = processes.read_stat(child.pid)
    assert stat
    return child, stat.key


def test_the_stubborn_and_the_stopped_are_ended_and_the_innocent_stays() -> None:
    stubborn, first = start(STUBBORN)
    stopped, second = start("import signal; print(flush=True); signal.pause()")
    innocent, third = start(STUBBORN)
    os.kill(stopped.pid, signal.SIGSTOP)
    until(lambda: processes.read_stat(stopped.pid).state == "T", "a stopped process")  # type: ignore[union-attr]
    reaped: list[int] = []
    survivors = cleanup.end(
        [first, second, (third[0], third[1] + 1)], 0.3, lambda: reaped.append(1)
    )
    assert survivors == []
    assert reaped
    assert stubborn.wait() == -signal.SIGKILL
    assert stopped.wait() == -signal.SIGTERM  # TERM with CONT, so it could end by itself
    assert innocent.poll() is None
    innocent.kill()
    innocent.wait()


def test_nothing_to_end_takes_no_time() -> None:
    gone, key = start("print(flush=True)")
    gone.wait()
    assert cleanup.end([key], 60.0, lambda: None) == []


def stat(pid: int, session: int, state: str = "S") -> Stat:
    return Stat(pid, "x", state, 1, session, 0, 0, 1, pid * 10, 1.0)


def test_only_what_is_proven_is_taken() -> None:
    mine = os.getsid(0)
    table = {
        "supervisor": stat(1, mine),
        "sensor": stat(2, 2),
        "agent": stat(3, 3),
        "rank": stat(4, 4),
        "worker": stat(5, 4),
        "child of a worker": stat(6, 4),
        "resource tracker": stat(7, 4),
        "compile worker": stat(8, 8),
        "daemon": stat(9, 9),
        "unknown, in our own session": stat(10, mine),
        "dead rank": stat(11, 11, "Z"),
    }
    roles = {
        s.key: (name.removeprefix("dead "), None, None)
        for name, s in table.items()
        if name.removeprefix("dead ")
        in {"supervisor", "sensor", "agent", "rank", "worker", "resource tracker", "compile worker"}
    }
    taken = set(cleanup.ours({s.key: s for s in table.values()}, roles))
    expected = {"agent", "rank", "worker", "child of a worker", "compile worker"}
    assert taken == {table[name].key for name in expected}
