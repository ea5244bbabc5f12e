"""Cheap real processes that stand in for those of a run, and the record that names them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bitwatch.record import events, kernel, rundir
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes
from bitwatch.supervise import holding
from tests.conftest import TINY, until

Key = tuple[int, int]
WORKER = "python -c from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=7)"
ATTEMPT = events.AttemptStarted(attempt=1, steps=10, ranks=2)
ENDED = events.AttemptEnded(attempt=1, state="failed")


class Standins:
    """Processes of a test, ended at its end."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, program: str = "", *, looks: str = "", **keywords: Any) -> Key:
        """Runs a Python `program` until it has printed a line, or else waits; `looks` is the
        command line that it shows."""
        if looks:
            words, executable = [looks, "600"], "/bin/sleep"
        else:
            words = [
                sys.executable,
                "-c",
                program or "print(flush=True); import time; time.sleep(600)",
            ]
            executable = sys.executable
        keywords.setdefault("start_new_session", True)
        child = subprocess.Popen(words, executable=executable, stdout=subprocess.PIPE, **keywords)
        self.started.append(child)
        if not looks:
            assert child.stdout and child.stdout.readline()
        start = kernel.starttime(child.pid)
        assert start is not None
        return child.pid, start

    def end(self, key: Key) -> None:
        """Kills it, and takes its status: nothing is left of it."""
        child = next(child for child in self.started if child.pid == key[0])
        child.kill()
        child.wait()

    def end_all(self) -> None:
        for child in self.started:
            child.kill()
            child.wait()


def settled(*keys: Key) -> None:
    """Waits until they are so old that their environment is their own."""
    stats = [stat for pid, _ in keys if (stat := processes.read_stat(pid))]
    until(lambda: all(processes.age_s(stat) > 1.2 for stat in stats), "them to be old enough")


def made(folder: Any, attempts: int = 1, age_s: float = 3600.0) -> RunDir:
    """A run with its configuration, as if it had been made a while ago."""
    run = rundir.create(folder, "demo")
    for _ in range(attempts):
        run.config(rundir.new_attempt(run)).write_text(TINY)
    identity = run.identity()
    identity.created = time.time() - age_s
    rundir.write_identity(run, identity)
    return run


HOLDS = """
import sys; from pathlib import Path; from bitwatch.record.rundir import Lock, RunDir
lock = Lock(RunDir(Path(sys.argv[2]))); print(flush=True); sys.stdin.read()
"""


@contextlib.contextmanager
def supervised(run: RunDir) -> Iterator[None]:
    """Held by what looks like its supervisor, and answers nobody."""
    words = [sys.executable, "-c", HOLDS, holding.SUPERVISOR, str(run.path), "1", "adopt"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        yield


def write(run: RunDir, *records: events.Record) -> None:
    writer = JournalWriter(run.journal)
    for record in records:
        writer.write(record)
    writer.close()


def ended_run(home: Path) -> RunDir:
    """Of one attempt, which has failed."""
    run = rundir.create(home, "demo")
    rundir.new_attempt(run)
    write(run, events.AttemptStarted(attempt=1, steps=10, ranks=2))
    write(run, events.AttemptEnded(attempt=1, state="failed"))
    return run


def start(key: Key, role: str = "worker", attempt: int = 1) -> events.ProcessStart:
    return events.ProcessStart(
        pid=key[0], starttime=key[1], role=role, rank=1, worker=0, attempt=attempt
    )


def rank_says(run: RunDir, rank: int, *records: events.Record, attempt: int = 1) -> None:
    writer = JournalWriter(run.rank(attempt, rank))
    for record in records:
        writer.write(record)
    writer.close()


def tags(run: RunDir, attempt: int = 1) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "BITWATCH_RUN": run.id,
        "BITWATCH_ATTEMPT": str(attempt),
        "BITWATCH_DIR": str(run.path),
    }


def of(records: Sequence[Any], kind: type) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]
