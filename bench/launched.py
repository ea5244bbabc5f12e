"""Starts what a bench measures: our trainer as a run does, and ranks of a script.

The trainer is launched with the command and in the environment that a supervisor launches it
with, but without one: nothing watches, and only the trainer is measured.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bitwatch import config as configuration
from bitwatch.record import events, rundir
from bitwatch.record.journal import JournalReader
from bitwatch.sense import processes
from bitwatch.supervise import launch

ATTEMPT = 1
GRACE_S = 10.0  # nobody stops these trainings gently


class Training:
    """Our trainer at work, and what it has recorded so far."""

    def __init__(self, run: rundir.RunDir, process: subprocess.Popen[bytes]) -> None:
        self._run, self._process = run, process
        self._records = JournalReader(run.rank(ATTEMPT, 0))
        self._pid = 0
        self._cause = ""
        self.steps: list[events.Step] = []
        self.cpu_s: list[float] = []  # of rank 0 since it began, as each step record was seen

    def finish(self, limit_s: float) -> None:
        """Waits for the end. Raises RuntimeError when it fails or takes longer."""
        deadline = time.monotonic() + limit_s
        while self._process.poll() is None:
            self._look(deadline)
        self._look(deadline)
        if self._process.returncode:
            raise RuntimeError(f"the trainer failed: {self._why()}")

    def reach(self, records: int, limit_s: float) -> None:
        """Waits for so many step records. Raises RuntimeError when they do not come."""
        deadline = time.monotonic() + limit_s
        while len(self.steps) < records:
            if self._process.poll() is not None:
                raise RuntimeError(f"the trainer ended too early: {self._why()}")
            self._look(deadline)

    def _look(self, deadline: float) -> None:
        """Takes in what rank 0 has recorded, after a moment."""
        if time.monotonic() > deadline:
            raise RuntimeError(f"the trainer took too long, at step record {len(self.steps)}")
        time.sleep(0.02)
        for record in self._records.read():
            if isinstance(record, events.ProcessStart):
                self._pid = record.pid
            elif isinstance(record, events.RankEnded):
                self._cause = record.cause
            elif isinstance(record, events.Step):
                stat = processes.read_stat(self._pid)
                self.steps.append(record)
                self.cpu_s.append(stat.cpu_ticks / processes.TICKS_PER_S if stat else math.nan)

    def _why(self) -> str:
        """How rank 0 says it ended, else the last lines of torchrun's log."""
        log = self._run.logs(ATTEMPT) / "agent.log"
        return self._cause or log.read_text(errors="replace")[-2000:]


@contextlib.contextmanager
def training(config: configuration.Config, *, on_cpu: bool, threads: int) -> Iterator[Training]:
    """Our trainer, launched; whatever of it still lives at the end is killed, and its files
    are deleted, an index of the text among them. threads: of a rank."""
    with tempfile.TemporaryDirectory() as home:
        config.data.cache = str(Path(home) / "text")
        run = rundir.create(Path(home), config.run.name)
        rundir.new_attempt(run)
        run.config(ATTEMPT).write_text(configuration.dump(config))
        environment = launch.agent_environment(run, ATTEMPT, config, on_cpu, GRACE_S)
        with open(run.logs(ATTEMPT) / "agent.log", "wb") as log:
            process = subprocess.Popen(
                launch.agent_command(config),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**environment, "OMP_NUM_THREADS": str(threads)},
            )
        try:
            yield Training(run, process)
        finally:
            process.kill()  # its ranks and their workers die with it
            process.wait()


def ranks(script: Path, words: Sequence[str], count: int, *, threads: int, limit_s: float) -> None:
    """Runs `script` as so many ranks on a CPU, to their end. Raises RuntimeError with what
    they printed when one fails, or they take longer than `limit_s`."""
    port = free_port()
    with tempfile.TemporaryFile() as log:
        processes = [
            subprocess.Popen(
                [sys.executable, str(script), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    **rank_environment(rank, count, port),
                    "OMP_NUM_THREADS": str(threads),
                },
            )
            for rank in range(count)
        ]
        deadline = time.monotonic() + limit_s
        try:
            while any(process.poll() is None for process in processes):
                if any(process.poll() for process in processes) or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
            failed = any(process.poll() != 0 for process in processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        if failed:
            log.seek(0)
            said = log.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{script.name} {' '.join(words[:1])} failed: {said}")


def rank_environment(rank: int, count: int, port: int) -> dict[str, str]:
    """What torchrun would tell a rank on this node."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
    }


def free_port() -> int:
    """One that nobody is given who asks for any: a rank listens on it only seconds later."""
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
