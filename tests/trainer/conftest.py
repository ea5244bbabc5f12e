"""Launches the trainer as bitwatch does, without bitwatch, and reads what it recorded."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bitwatch import config as configuration
from bitwatch.record import events, rundir
from bitwatch.record.journal import read_all
from tests.trainer.ready import Forked, free_port, run_ranks
from trainer import parallel

TRAINER = Path(__file__).resolve().parents[2] / "trainer" / "train.py"
PATIENCE_S = 120.0  # only a hang takes longer, on the slowest machine


def make_small(**sections: dict[str, Any]) -> configuration.Config:
    """A configuration that trains in seconds; `sections` change single keys of it."""
    table: dict[str, dict[str, Any]] = {
        "run": {"name": "test"},
        "model": {"d_model": 16, "heads": 2, "layers": 2, "feedforward": 32, "context": 64},
        "data": {"source": configuration.BUNDLED_TEXT, "workers": 0},
        "parallel": {"ranks": 1, "precision": "fp32", "device": "cpu", "start_timeout_s": 60},
        "train": {
            "steps": 4,
            "batch": 4,
            "micro_batch": 2,
            "learning_rate": 1e-2,
            "log_every": 1,
            "eval_steps": 2,
        },
    }
    for section, keys in sections.items():
        table.setdefault(section, {}).update(keys)
    return configuration.parse(table, "test")


@dataclasses.dataclass
class Launched:
    """One attempt, and what is on the disk of it."""

    run: rundir.RunDir
    attempt: int
    process: subprocess.Popen[bytes] | Forked

    def rank(self, rank: int = 0) -> list[Any]:
        return read_all(self.run.rank(self.attempt, rank))[0]

    def of(self, kind: type, rank: int = 0) -> list[Any]:
        return [record for record in self.rank(rank) if isinstance(record, kind)]

    def last(self, rank: int = 0) -> events.RankEnded:
        """A rank's last record, which says how it ended."""
        record = self.rank(rank)[-1]
        assert isinstance(record, events.RankEnded), (record, self.log(rank))
        return record

    def reader_files(self) -> dict[tuple[int, str, int, str], list[Any]]:
        """All records by (rank, loader, worker, incarnation)."""
        found = {}
        for path in sorted((self.run.attempt(self.attempt) / "readers").glob("*.jsonl")):
            rank, loader, worker, incarnation = path.stem.split("-")
            found[int(rank), loader, int(worker), incarnation] = read_all(path)[0]
        return found

    def readers(self) -> dict[tuple[int, str, int, str], events.Reader]:
        """Each reader's last account."""
        return {key: records[-1] for key, records in self.reader_files().items()}

    def log(self, rank: int = 0) -> str:
        return (self.run.logs(self.attempt) / f"rank{rank}.log").read_text()

    def wait(self) -> int:
        """The exit status of the agent."""
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()

    def await_that(self, condition: Callable[[], Any], *, running: bool = True) -> None:
        """Returns when `condition` holds; a launch that ends before has failed."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert not running or self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.02)


@pytest.fixture
def run(tmp_path: Path) -> rundir.RunDir:
    made = rundir.create(tmp_path / "runs", "test")
    rundir.new_attempt(made)
    return made


@pytest.fixture(scope="session")
def small() -> Callable[..., configuration.Config]:
    return make_small


@pytest.fixture(scope="module")
def place() -> Iterator[parallel.Place]:
    """A group of one rank, in this process."""
    variables = {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield parallel.start(configuration.Parallel(ranks=1, device="cpu"))
    parallel.end()


@pytest.fixture(scope="session")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Launched]]:
    """Starts an attempt and does not wait for it. Nothing of it outlives the tests."""
    home = tmp_path_factory.mktemp("runs")
    started: list[Launched] = []

    def start(
        config: configuration.Config,
        run: rundir.RunDir | None = None,
        script: Path = TRAINER,
        resume: str = "exact",
        plan: dict[str, Any] | None = None,
        torchrun: bool = False,
        **environment: str,
    ) -> Launched:
        """`torchrun` where the test is about its ranks: their launch, their exits, their death
        with it. Else they are forked, with their libraries loaded."""
        run = run or rundir.create(home, config.run.name)
        attempt = rundir.new_attempt(run)
        run.config(attempt).write_text(configuration.dump(config))
        run.plan(attempt).write_text(json.dumps({"resume": resume, "data": plan or {}}))
        surroundings = {
            **os.environ,
            "BITWATCH_DIR": str(run.path),
            "BITWATCH_RUN": run.id,
            "BITWATCH_ATTEMPT": str(attempt),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
            "PYTHONSAFEPATH": "1",
            **environment,
        }
        if config.data.sharding == "indexed":
            prepare = [sys.executable, str(TRAINER.with_name("prepare.py"))]
            subprocess.run(prepare, env=surroundings, check=True, timeout=PATIENCE_S)
        log = run.logs(attempt) / "agent.log"
        ranks = config.parallel.ranks
        process: Any = (
            by_torchrun(script, ranks, surroundings, log)
            if torchrun
            else Forked(run_ranks, str(script), ranks, surroundings, str(log))
        )
        started.append(Launched(run, attempt, process))
        return started[-1]

    yield start
    for launched in started:
        launched.process.kill()  # ranks and workers die with their agent
        launched.process.wait()


def by_torchrun(
    script: Path, ranks: int, environment: dict[str, str], log: Path
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--local-addr", "127.0.0.1", "--max-restarts", "0"]
    command += ["--nproc-per-node", str(ranks), str(script)]
    # The shell's pid becomes the agent's, so it can be handed down before it is known.
    shell = ["/bin/sh", "-c", 'BITWATCH_AGENT=$$ exec "$@"', "sh", *command]
    with open(log, "wb") as written:
        return subprocess.Popen(
            shell,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            start_new_session=True,
            env=environment,
        )
