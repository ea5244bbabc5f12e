"""What ended attempts have left alive: found by the record, ended through pidfds, said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch import config as configuration
from bitwatch.attach import commands
from bitwatch.record import events, kernel, rundir
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.supervise import leftovers
from bitwatch.supervise.clean import Cleaner
from bitwatch.supervise.supervisor import Supervisor
from tests.conftest import alive, until

Key = tuple[int, int]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = rundir.create(tmp_path, "demo")
    rundir.new_attempt(made)
    return made


@pytest.fixture
def sleeper() -> Iterator[Key]:
    yield from _process("import time; time.sleep(600)")


@pytest.fixture
def stubborn() -> Iterator[Key]:
    yield from _process(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True);"
        " time.sleep(600)"
    )


def _process(program: str) -> Iterator[Key]:
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    if "print" in program:
        assert process.stdout and process.stdout.readline()
    start = kernel.starttime(process.pid)
    assert start is not None
    yield process.pid, start
    process.kill()
    process.wait()


def start(key: Key, attempt: int = 1, role: str = "worker") -> events.ProcessStart:
    return events.ProcessStart(
        pid=key[0], starttime=key[1], role=role, rank=1, worker=0, attempt=attempt
    )


def journal(run: RunDir, *records: events.Record) -> None:
    writer = JournalWriter(run.journal)
    for record in records:
        writer.write(record)
    writer.close()


ATTEMPT = events.AttemptStarted(attempt=1, steps=10, ranks=2)
ENDED = events.AttemptEnded(attempt=1, state="failed")


def found(run: RunDir) -> list[Key]:
    follower = Follower(run)
    follower.poll()
    ended = leftovers.ended_attempts(follower.state)
    return [(p.pid, p.starttime) for p in leftovers.find(follower.state, ended)]


def test_a_recorded_worker_of_an_ended_attempt_is_ended_and_journaled(
    run: RunDir, sleeper: Key
) -> None:
    journal(run, ATTEMPT, start(sleeper), ENDED)
    assert found(run) == [sleeper]
    said = commands.clean(run)
    assert said == f"ended worker 0 of rank 1 (pid {sleeper[0]})"
    assert not alive(sleeper)
    (action,) = [r for r in read_all(run.journal)[0] if isinstance(r, events.Action)]
    assert (action.name, action.on, action.result) == ("clean", "attempt 1", said)
    assert not run.lock_is_held()
    assert commands.clean(run) == "nothing is left of ended attempts"


def test_what_ignores_sigterm_is_killed(run: RunDir, stubborn: Key) -> None:
    journal(run, ATTEMPT, start(stubborn), ENDED)
    cleaner = Cleaner(run.path.parent, run)
    assert [one.ended for one in cleaner.clean(cleaner.look(), (), "test", 0.2).killed] == [
        "SIGKILL"
    ]
    assert not alive(stubborn)


@pytest.mark.parametrize("role", ["other", "supervisor"])
def test_other_roles_are_not_touched(run: RunDir, sleeper: Key, role: str) -> None:
    journal(run, ATTEMPT, start(sleeper, role=role), ENDED)
    assert found(run) == []
    commands.clean(run)
    assert alive(sleeper)


def test_another_process_with_that_pid_is_not_touched(run: RunDir, sleeper: Key) -> None:
    journal(run, ATTEMPT, start((sleeper[0], sleeper[1] - 1)), ENDED)
    assert found(run) == []
    commands.clean(run)
    assert alive(sleeper)


def test_a_recorded_exit_is_believed(run: RunDir, sleeper: Key) -> None:
    gone = events.ProcessExit(pid=sleeper[0], starttime=sleeper[1], role="worker")
    journal(run, ATTEMPT, start(sleeper), gone, ENDED)
    assert found(run) == []


CLEANS_FROM_INSIDE = """
import os, sys
from pathlib import Path
from bitwatch.record.rundir import RunDir
from bitwatch.supervise.clean import Cleaner

run = RunDir(Path(sys.argv[1]))
cleaner = Cleaner(run.path.parent, run)
found = cleaner.look()
killed = cleaner.clean(found, (), "test", 0.0).killed
print([one.pid for one in found.own], [one.pid for one in found.confirm], len(killed))
"""


def test_neither_ourselves_nor_our_ancestors_nor_who_shares_our_session(run: RunDir) -> None:
    """A shell is recorded as a worker, and leads a session: in it are a bystander, and the
    cleanup itself."""
    cleans = (sys.executable, "-c", CLEANS_FROM_INSIDE, str(run.path))
    shell = subprocess.Popen(
        ["sh", "-c", 'sleep 600 & echo $!; read go; "$@"; kill $!', "sh", *cleans],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert shell.stdout
    bystander = int(shell.stdout.readline())
    journal(run, ATTEMPT, start((shell.pid, kernel.starttime(shell.pid) or 0)), ENDED)
    said, _ = shell.communicate("go\n")
    assert said == f"[] [{bystander}] 0\n"
    assert shell.returncode == 0


def test_an_attempt_that_may_live_is_not_touched(run: RunDir, sleeper: Key) -> None:
    """Its agent lives, so its record is not closed, and nothing of it is a leftover. Without
    its configuration nobody can supervise it either, and that is said."""
    agent = start((os.getpid(), kernel.own_starttime()), role="agent")
    journal(run, ATTEMPT, agent, start(sleeper))
    assert found(run) == []
    said = commands.clean(run)
    assert "attempt 1 has no supervisor, and can have none" in said
    assert str(run.config(1)) in said
    assert alive(sleeper)


def test_an_attempt_that_nobody_closed_is_closed_first(run: RunDir, sleeper: Key) -> None:
    journal(run, ATTEMPT, start(sleeper))
    commands.clean(run)
    assert not alive(sleeper)
    ends = [r for r in read_all(run.journal)[0] if isinstance(r, events.AttemptEnded)]
    assert [end.attempt for end in ends] == [1]


def test_a_live_supervisor_knows_what_earlier_attempts_have_left(
    run: RunDir, sleeper: Key, stubborn: Key
) -> None:
    config = configuration.load(configuration.bundled("configs/demo.toml"))
    run.config(rundir.new_attempt(run)).write_text(configuration.dump(config))
    second = events.AttemptStarted(attempt=2, steps=10, ranks=2)
    journal(run, ATTEMPT, start(sleeper), ENDED, second, start(stubborn, attempt=2))
    lock = rundir.Lock(run)
    supervisor = Supervisor(run, 2, lock)
    try:
        supervisor.follower.poll()
        seen = supervisor._view()
        assert [(left.pid, left.starttime) for left in seen.leftovers] == [sleeper]
        os.kill(sleeper[0], signal.SIGKILL)
        until(lambda: not alive(sleeper), "its end")
        assert supervisor._view().leftovers == []
    finally:
        supervisor.server.close()
        supervisor.close()
        lock.release()


def test_a_run_of_another_host_is_refused(run: RunDir, sleeper: Key) -> None:
    journal(run, ATTEMPT, start(sleeper), ENDED)
    identity = run.identity()
    identity.host = "elsewhere"
    rundir.write_identity(run, identity)
    with pytest.raises(RunDirError, match="another host"):
        commands.clean(run)
    with pytest.raises(RunDirError, match="another host"):
        commands.stop(run, 1)
    assert alive(sleeper)


def test_a_stop_of_an_ended_or_replaced_attempt_asks_nobody(run: RunDir) -> None:
    journal(run, ATTEMPT, ENDED)
    assert "has ended already" in commands.stop(run, 1)
    journal(run, events.AttemptStarted(attempt=2, steps=10, ranks=2))
    assert commands.stop(run, 1) == "attempt 1 is over; attempt 2 goes on"
    assert not run.stop(1).exists() and not run.stop(2).exists()


def test_a_stopped_process_is_ended_too(run: RunDir, sleeper: Key) -> None:
    os.kill(sleeper[0], signal.SIGSTOP)
    journal(run, ATTEMPT, start(sleeper), ENDED)
    commands.clean(run)
    assert not alive(sleeper)


@pytest.mark.parametrize(
    ("name", "foreign", "stays"),
    [
        ("psm_{:08x}", False, False),
        ("psm_{:08x}", True, True),
        ("train-{}.bin", False, True),
        ("train-{}.bin", True, True),
    ],
)
def test_of_shared_memory_only_what_our_own_processes_generated_is_unlinked(
    run: RunDir, name: str, foreign: bool, stays: bool
) -> None:
    """A training has also mapped its data, where somebody has put that there."""
    file = Path("/dev/shm", name.format(os.getpid()))
    file.touch()
    try:
        identity = run.identity()
        identity.foreign = foreign
        rundir.write_identity(run, identity)
        mapped = events.SharedMemory(pid=7, starttime=5, names=[file.name])
        journal(run, ATTEMPT, start((7, 5)), mapped, ENDED)
        said = commands.clean(run)
        assert file.exists() == stays
        assert ("unlinked 1 file of shared memory" in said) != stays
    finally:
        file.unlink(missing_ok=True)
