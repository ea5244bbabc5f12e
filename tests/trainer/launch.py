"""Launches the trainer as bitwatch does, without bitwatch, and reads what it recorded."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bitwatch import config as configuration
from bitwatch.record import events, rundir
from bitwatch.record.journal import read_all

TRAINER = Path(__file__).resolve().parents[2] / "trainer" / "train.py"
PATIENCE_S = 120.0  # only a hang takes longer, on the slowest machine


def small(**sections: dict[str, Any]) -> configuration.Config:
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
    """One attempt; `records` are those of all ranks and readers."""

    run: rundir.RunDir
    attempt: int
    process: subprocess.Popen[bytes]

    def rank(self, rank: int) -> list[Any]:
        return read_all(self.run.rank(self.attempt, rank))[0]

    def of(self, kind: type, rank: int = 0) -> list[Any]:
        return [record for record in self.rank(rank) if isinstance(record, kind)]

    def readers(self) -> dict[tuple[int, str, int, str], list[Any]]:
        """Records of each reader, by (rank, loader, worker, incarnation)."""
        found = {}
        for path in sorted((self.run.attempt(self.attempt) / "readers").glob("*.jsonl")):
            rank, loader, worker, incarnation = path.stem.split("-")
            records = [r for r in read_all(path)[0] if isinstance(r, events.Reader)]
            found[int(rank), loader, int(worker), incarnation] = records
        return found

    def log(self, rank: int = 0) -> str:
        return (self.run.logs(self.attempt) / f"rank{rank}.log").read_text()

    def last(self, rank: int = 0) -> events.RankEnded:
        """A rank's last record, which says how it ended."""
        record = self.rank(rank)[-1]
        assert isinstance(record, events.RankEnded), record
        return record

    def wait(self) -> int:
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()

    def await_that(self, condition: Callable[[], bool]) -> None:
        """Until `condition`, or the end of the launch, which is an error then."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, (self.agent_log(), self.log())
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.02)

    def agent_log(self) -> str:
        return (self.run.logs(self.attempt) / "agent.log").read_text()


def launch(
    home: Path,
    config: configuration.Config,
    run: rundir.RunDir | None = None,
    script: Path = TRAINER,
    **environment: str,
) -> Launched:
    """Starts an attempt of a new run, or of `run`, and does not wait for it."""
    run = run or rundir.create(home, config.run.name)
    attempt = rundir.new_attempt(run)
    run.config(attempt).write_text(configuration.dump(config))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--local-addr", "127.0.0.1", "--max-restarts", "0"]
    command += ["--nproc-per-node", str(config.parallel.ranks), str(script)]
    # The shell's pid becomes the agent's, so it can be handed down before it is known.
    shell = ["/bin/sh", "-c", 'BITWATCH_AGENT=$$ exec "$@"', "sh", *command]
    with open(run.logs(attempt) / "agent.log", "wb") as log:
        process = subprocess.Popen(
            shell,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={
                **os.environ,
                "BITWATCH_DIR": str(run.path),
                "BITWATCH_RUN": run.id,
                "BITWATCH_ATTEMPT": str(attempt),
                "GLOO_SOCKET_IFNAME": "lo",
                "OMP_NUM_THREADS": "1",
                "PYTHONSAFEPATH": "1",
                **environment,
            },
        )
    return Launched(run, attempt, process)
