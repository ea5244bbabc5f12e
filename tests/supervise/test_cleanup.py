"""What is left behind is ended; what is not ours is not touched."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bitwatch.sense import processes
from bitwatch.sense.processes import Stat
from bitwatch.supervise import cleanup
from tests.conftest import PATIENCE_S, until

NOT_A_PID = 1 << 22

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
    other = (third[0], third[1] + 1)
    assert cleanup.end([second, other], PATIENCE_S, lambda: reaped.append(1)) == []
    assert reaped
    assert cleanup.end([first, other], 0.3, lambda: None) == []  # all of which it takes
    assert stubborn.wait() == -signal.SIGKILL
    assert stopped.wait() == -signal.SIGTERM  # TERM with CONT, so it could end by itself
    assert innocent.poll() is None
    innocent.kill()
    innocent.wait()


@contextlib.contextmanager
def room_for_files(count: int) -> Iterator[None]:
    """This process may open so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 64, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(held[0]))
        for _ in range(count):
            os.close(held.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in held:
            os.close(fd)


@pytest.mark.parametrize("room", [0, 1], ids=["for no pidfd", "for a pidfd, and not for its stat"])
def test_who_cannot_be_signalled_is_a_survivor_and_has_not_ended(room: int) -> None:
    child, key = start("print(flush=True); import signal; signal.pause()")
    for role in ("worker", cleanup.TRACKER):
        with room_for_files(room):
            ended, survivors = cleanup.clean(lambda r=role: [cleanup.Target(key, r)], 0.5)  # type: ignore[misc]
            assert cleanup.end([key], 0.5, lambda: None) == [key]
            assert not processes.send_signal(*key, signal.SIGKILL)
            with pytest.raises(OSError):
                processes.open_pidfd(*key)
        assert ended == [] and [one.key for one in survivors] == [key]
        assert survivors[0].how.startswith("cannot be signalled (")
    assert child.poll() is None
    child.kill()
    child.wait()
    with room_for_files(1):
        assert processes.open_pidfd(*key) is None


def test_the_number_of_a_thread_is_no_process() -> None:
    child, key = start(
        "import signal, threading; t = threading.Thread(target=signal.pause, daemon=True);"
        "t.start(); print(t.native_id, flush=True); signal.pause()"
    )
    (thread,) = {int(name) for name in os.listdir(f"/proc/{child.pid}/task")} - {child.pid}
    assert processes.open_pidfd(thread, key[1] - 1) is None
    child.kill()
    child.wait()


def test_who_is_still_found_has_not_ended() -> None:
    gone, key = start("print(flush=True)")
    gone.wait()
    ended, survivors = cleanup.clean(lambda: [cleanup.Target(key, "worker")], 0.0)
    assert ended == [] and [one.how for one in survivors] == ["comes again and again"]


def test_nothing_to_end_takes_no_time() -> None:
    gone, key = start("print(flush=True)")
    gone.wait()
    assert cleanup.end([key], 60.0, lambda: None) == []


def stat(number: int, session: int, state: str = "S") -> Stat:
    """Nobody has its pid: it is more than any kernel gives out."""
    return Stat(NOT_A_PID + number, "x", state, 1, session, 0, 0, 1, number * 10, 1.0)


def test_only_what_is_proven_is_taken() -> None:
    mine = os.getsid(0)
    table = {
        "supervisor": stat(1, mine),
        "sensor": stat(2, NOT_A_PID + 2),
        "agent": stat(3, NOT_A_PID + 3),
        "rank": stat(4, NOT_A_PID + 4),
        "worker": stat(5, NOT_A_PID + 4),
        "child of a worker": stat(6, NOT_A_PID + 4),
        "resource tracker": stat(7, NOT_A_PID + 4),
        "compile worker": stat(8, NOT_A_PID + 8),
        "daemon": stat(9, NOT_A_PID + 9),
        "unknown, in our own session": stat(10, mine),
        "dead rank": stat(11, NOT_A_PID + 11, "Z"),
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


RESPAWNING = """
import os, signal, sys
def again(*_):
    if os.fork():
        os._exit(0)
signal.signal(signal.SIGTERM, again)
print(flush=True)
while True:
    signal.pause()
"""


LEAVES = "import signal; signal.signal(signal.SIGTERM, lambda *_: exit(7)); print(flush=True); signal.pause()"


def living(*keys: cleanup.Key) -> list[cleanup.Key]:
    stats = [processes.read_stat(pid) for pid, _ in keys]
    return [stat.key for stat in stats if stat and stat.key in keys and stat.state not in "ZX"]


def test_all_that_were_there_at_first_are_told_to_leave_before_they_are_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also those for whom there was no room, which come to their turn after the others."""
    monkeypatch.setattr(cleanup, "_room_for", lambda wanted: 1)
    started = [start(LEAVES) for _ in range(3)]
    keys = [key for _, key in started]
    ended, survivors = cleanup.clean(
        lambda: [cleanup.Target(key, "worker") for key in living(*keys)], PATIENCE_S
    )
    assert survivors == [] and {one.how for one in ended} == {"SIGTERM"}
    assert [child.wait() for child, _ in started] == [7, 7, 7]


def test_who_turns_up_after_a_first_turn_of_trackers_is_told_to_leave_too() -> None:
    tracker, first = start("print(flush=True)")
    worker, second = start(LEAVES)
    found = [[cleanup.Target(second, "worker")], [cleanup.Target(first, cleanup.TRACKER)]]
    ended, survivors = cleanup.clean(lambda: found.pop() if found else [], PATIENCE_S)
    assert survivors == [] and worker.wait() == 7
    assert {one.key: one.how for one in ended} == {first: "by itself", second: "SIGTERM"}
    tracker.wait()


def test_what_starts_others_when_told_to_leave_is_ended_with_them() -> None:
    """Each that is told to leave leaves a child behind in its session, found by looking anew."""
    child = subprocess.Popen(
        [sys.executable, "-c", RESPAWNING], stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout and child.stdout.readline()
    first = processes.read_stat(child.pid)
    assert first

    def find() -> list[cleanup.Target]:
        return [
            cleanup.Target(stat.key, "worker")
            for stat in processes.scan().values()
            if stat.session == first.session and stat.state not in "ZX"
        ]

    try:
        ended, survivors = cleanup.clean(find, PATIENCE_S)
    finally:
        child.kill()
    assert survivors == []
    assert first.key in [one.key for one in ended]
    assert {one.how for one in ended} == {"SIGTERM", "SIGKILL"}
    assert find() == []
    assert child.wait() == 0


def test_trackers_leave_by_themselves_after_the_others() -> None:
    """A real spawn pool: its tracker ends when its last process has, and unlinks what it knows."""
    program = (
        "import multiprocessing as m, signal\n"
        "if __name__ == '__main__':\n"
        "    context = m.get_context('spawn')\n"
        "    lock = context.Lock()\n"
        "    child = context.Process(target=signal.pause)\n"
        "    child.start()\n"
        "    print(flush=True)\n"
        "    signal.pause()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout and parent.stdout.readline()
    commands = processes.CommandLines()

    def find() -> list[cleanup.Target]:
        return [
            cleanup.Target(
                stat.key, cleanup.TRACKER if "resource_tracker" in commands.get(stat) else "worker"
            )
            for stat in processes.scan().values()
            if stat.session == parent.pid and stat.state not in "ZX"
        ]

    try:
        until(lambda: len(find()) == 3, "the parent, its child and the tracker")
        tracker = next(target.key for target in find() if target.role == cleanup.TRACKER)
        ended, survivors = cleanup.clean(find, PATIENCE_S)
    finally:
        parent.kill()
    assert survivors == [] and find() == []
    how = {one.key: one.how for one in ended}
    assert how.get(tracker, "by itself") == "by itself"
    parent.wait()
