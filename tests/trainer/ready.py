"""Trainings without the wait for libraries: ranks that are forked from a process which has
loaded them once, by an agent that does what torchrun does.

A rank then runs its script from its first line, in a process and an environment of its own. What
it cannot show is a launch: tests of that have torchrun start their ranks.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import runpy
import socket
import subprocess
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

import pytest

from trainer import lifeline

LOADED = [
    "datasets",
    "pyarrow.parquet",
    "torch._dynamo",  # which FSDP2 and the optimiser load at their first step
    "trainer.collector",
    "trainer.data.text",
    "trainer.evaluate",
    "trainer.health",
    "trainer.leaving",
    "trainer.saving",
]


def free_port() -> int:
    """One that nobody is given who asks for any: a rank listens on it only seconds later."""
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Forked:
    """A process with everything loaded that calls `target`, with what the tests use of a Popen."""

    def __init__(self, target: Callable[..., object], *words: Any) -> None:
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(LOADED)
        self._process = forks.Process(target=target, args=words)
        with pytest.MonkeyPatch.context() as patch:  # torch reads it as it is loaded
            patch.setenv("OMP_NUM_THREADS", "1")
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, limit_s: float | None = None) -> int:
        self._process.join(limit_s)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a fork", limit_s or 0.0)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


def run_ranks(script: str, ranks: int, environment: dict[str, str], log: str) -> None:
    """An agent: starts the ranks, and ends all when one has failed."""
    lifeline.die_with(None)
    os.setsid()
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(written, standard)
    os.environ.clear()
    os.environ.update(environment)
    os.environ["BITWATCH_AGENT"] = str(os.getpid())
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(free_port())
    os.environ["WORLD_SIZE"] = str(ranks)
    forks = multiprocessing.get_context("fork")
    running = [forks.Process(target=run_rank, args=(script, rank)) for rank in range(ranks)]
    for process in running:
        process.start()
    while running:
        connection.wait([process.sentinel for process in running])
        running = [process for process in running if process.exitcode != 0]
        if any(process.exitcode for process in running):
            for process in running:
                process.terminate()
            for process in running:
                process.join()
            os._exit(1)


def run_rank(script: str, rank: int) -> None:
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
    runpy.run_path(script, run_name="__main__")
