"""Runs with records, and real processes that are what a look at the machine may find."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bitwatch.attach import foreign
from bitwatch.attach.playing import Playing
from bitwatch.record import events, kernel
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes
from bitwatch.sense.processes import Key
from tests.attach import played
from tests.attach.watched import steps, training_of
from tests.supervise.standins import ended_run, write

NOBODY_UID = 65534
WORKER = "python -c from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=7)"
# Starts a process that looks like a worker, in a session whose leader then ends.
ABANDONS = f"""
import os
closed = [(os.POSIX_SPAWN_CLOSE, 1)]
print(os.posix_spawn("/bin/sleep", [{WORKER!r}, "600"], {{}}, file_actions=closed), flush=True)
"""

Start = Callable[..., Key]


def recorded(key: Key, role: str = "worker", attempt: int = 1, **facts: Any) -> events.ProcessStart:
    return events.ProcessStart(pid=key[0], starttime=key[1], role=role, attempt=attempt, **facts)


def tags(run: RunDir) -> dict[str, str]:
    return {"BITWATCH_RUN": run.id, "BITWATCH_ATTEMPT": "1", "BITWATCH_DIR": str(run.path)}


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return ended_run(tmp_path / "runs")


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a sleep, or Python on a text that prints a line when it is ready; its identity."""
    children: list[subprocess.Popen[bytes]] = []

    def begin(code: str = "", **keywords: Any) -> Key:
        words = [sys.executable, "-c", code] if code else ["sleep", "600"]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, **keywords)
        children.append(child)
        if code:
            assert child.stdout and child.stdout.readline()
        return child.pid, kernel.starttime(child.pid) or 0

    yield begin
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def abandoned() -> Iterator[Key]:
    """What looks like a worker that its training has left behind."""
    out = subprocess.run(
        [sys.executable, "-c", ABANDONS], stdout=subprocess.PIPE, start_new_session=True, check=True
    ).stdout
    key = int(out), kernel.starttime(int(out)) or 0
    yield key
    processes.send_signal(*key, signal.SIGKILL)


def needs_root(what: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(os.getuid() != 0, reason=f"only root can {what}")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("number of parameters: 123.59M\n" + steps(range(10)))
    return path


@pytest.fixture
def watched(home: Path, start: Start) -> tuple[RunDir, Key, Key]:
    """A launcher and a rank, recorded by somebody who watched before."""
    launcher, rank = start(), start()
    run = foreign.of_training(home, training_of(launcher, rank))
    write(run, recorded(launcher, "agent"), recorded(rank, "rank", rank=0))
    return run, launcher, rank


@pytest.fixture
def played_run(tmp_path: Path) -> RunDir:
    return played.make(tmp_path / "runs")


@pytest.fixture
def clock() -> played.Clock:
    return played.Clock()


@pytest.fixture
def playing(played_run: RunDir, clock: played.Clock) -> Playing:
    return Playing(played_run, 60.0, clock)
