"""Nothing outlives its parent: the agent, a rank and the supervisor are killed at every stage of a
run, with workers that are forked and workers that are spawned.

A few pairs by default; all of them with BITWATCH_DEATHS=all, as in `make chaos`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from bitwatch.attach import commands
from bitwatch.plan.facts import Facts
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower
from bitwatch.record.journal import read_all
from bitwatch.sense import processes
from bitwatch.sense.processes import Stat
from bitwatch.supervise import begin, stopping
from tests.conftest import alive, until
from tests.trainer.conftest import make_small

pytestmark = pytest.mark.slow

VICTIMS = ("agent", "rank", "supervisor")
STAGES = ("importing", "idle", "reading", "collective", "saving")
METHODS = ("fork", "spawn")
SOME = [
    ("agent", "importing", "spawn"),
    ("rank", "reading", "fork"),
    ("rank", "collective", "fork"),
]
EVERY = [(victim, stage, method) for victim in VICTIMS for stage in STAGES for method in METHODS]
SCENES = EVERY if os.environ.get("BITWATCH_DEATHS") == "all" else SOME

GONE_S = 30.0  # what is not ended lives on for ever; how long it took is printed
KILLED = "forcefully exiting"  # torchrun, of a rank that did not end at SIGTERM
ROWS = 200  # of a file that is read before the one that blocks: a step each
MANY_ROWS = 100_000
Key = tuple[int, int]


class Scene:
    """A run of two ranks with a worker each, and a supervisor that is a child of the test."""

    def __init__(self, folder: Path, stage: str, method: str) -> None:
        self.folder = folder
        self.stage = stage
        self.method = method
        rows = ROWS if stage == "reading" else MANY_ROWS
        for part in range(4):  # two for each reader
            text = [f"row {row:010}" for row in range(rows)]
            pq.write_table(pa.table({"text": text}), self.part(part))
        config = make_small(
            data={
                "source": f"{folder}/part-*.parquet",
                "workers": 1,
                "sharding": "reshard",
                "shuffle": 0,
                "start_method": method,
            },
            parallel={"ranks": 2, "start_timeout_s": 300, "step_timeout_s": 300},
            train={"steps": 10**6, "eval_every": 0},
            checkpoint={"every": 1 if stage == "saving" else 0},
        )
        self.run = begin.create(folder / "runs", config, Facts(), [])
        attempt = rundir.new_attempt(self.run)
        self.run.config(attempt).write_text(configuration.dump(config))
        self.run.plan(attempt).write_text(json.dumps({"device": "cpu", "resume": "exact"}))
        self.supervisor = begin.start_supervisor(self.run, attempt, "launch", "a test", "a test")
        self.known: dict[Key, str] = {}  # command lines of all that were seen below it

    def part(self, number: int) -> Path:
        return self.folder / f"part-{number}.parquet"

    # -- who is there ---------------------------------------------------------------------

    def below(self, pid: int) -> list[Stat]:
        return processes.descendants(processes.scan(), {pid})

    def roles(self, pid: int, role: str) -> list[Stat]:
        """By their command lines: nobody has recorded them yet. A fork has its parent's."""
        found = []
        for stat in self.below(pid):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{stat.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                self.known[stat.key] = words
                if processes.role_of_command(words, stat.name) == role:
                    found.append(stat)
        return found

    def agent(self) -> Stat:
        return self.roles(self.supervisor.pid, "agent")[0]

    def rank(self, rank: int) -> Stat | None:
        for record in self.told(rank):
            if isinstance(record, events.ProcessStart):
                return processes.read_stat(record.pid)
        return None

    def told(self, rank: int) -> list[events.Record]:
        return read_all(self.run.rank(1, rank))[0]

    def step(self) -> int:
        return max([r.step for r in self.told(0) if isinstance(r, events.Step)], default=0)

    def journal(self, kind: type) -> list[Any]:
        return [record for record in read_all(self.run.journal)[0] if isinstance(record, kind)]

    # -- stages ---------------------------------------------------------------------------

    def reach(self) -> None:
        getattr(self, self.stage)()

    def importing(self) -> None:
        """The ranks; or, where they are spawned, the workers."""
        until(lambda: self.rank(0) and self.rank(1), "both ranks to exist")
        if self.method == "spawn":
            until(self._workers_everywhere, "workers to be spawned")
        begun = list((self.run.attempt(1) / "readers").glob("*-train-*"))
        assert len(begun) < 2, "one of them at least is importing"

    def idle(self) -> None:
        until(lambda: self.step() > 5, "some steps")

    def reading(self) -> None:
        """The second file of each reader is a pipe, into which nobody writes."""
        until(lambda: self.step() > 0, "a first step")
        for part in (1, 2, 3):
            self.part(part).unlink()  # whoever has it open reads on
            os.mkfifo(self.part(part))
        until(self._all_are_in_pipes, "both readers to be in a read")

    def collective(self) -> None:
        until(lambda: self.step() > 5, "some steps")
        self.freeze_rank_1()
        until(self._waits, "rank 0 to wait for the other one")

    def saving(self) -> None:
        until(self._is_saving, "a save that is under way")

    def _workers_everywhere(self) -> bool:
        ranks = [self.rank(0), self.rank(1)]
        return all(rank and self.roles(rank.pid, "worker") for rank in ranks)

    def _all_are_in_pipes(self) -> bool:
        follower = Follower(self.run)
        follower.poll()
        readers = [r for r in follower.state.readers_of(1) if r.loader == "train"]
        pipes = [f"{self.part(part).name}[0:1]" for part in (1, 2, 3)]
        return [r.state for r in readers if r.shard in pipes] == ["reading", "reading"]

    def _waits(self) -> bool:
        before, step = self.rank(0), self.step()
        time.sleep(0.3)
        after = self.rank(0)
        assert before and after
        return before.cpu_ticks == after.cpu_ticks and step == self.step()

    def _is_saving(self) -> bool:
        """Without rank 1 no checkpoint becomes whole."""
        if not self._unfinished():
            return False
        self.freeze_rank_1()
        time.sleep(0.1)
        if self._unfinished():
            return True
        self.go_on()
        return False

    def _unfinished(self) -> bool:
        folders = self.run.checkpoints().glob("step-*")
        return any(not (folder / "manifest.json").exists() for folder in folders)

    def freeze_rank_1(self) -> None:
        self._to_rank_1(signal.SIGSTOP)

    def go_on(self) -> None:
        self._to_rank_1(signal.SIGCONT)

    def _to_rank_1(self, number: signal.Signals) -> None:
        rank = self.rank(1)
        if rank:
            processes.send_signal(*rank.key, number)

    # -- afterwards -----------------------------------------------------------------------

    def ended(self) -> events.AttemptEnded:
        return until(lambda: self.journal(events.AttemptEnded), "the end to be recorded")[0]

    def close(self) -> None:
        self.roles(self.supervisor.pid, "")
        for key in self.known:
            processes.send_signal(*key, signal.SIGKILL)
        self.supervisor.kill()
        self.supervisor.wait()


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[[str, str], Scene]]:
    scenes: list[Scene] = []

    def begin_scene(stage: str, method: str) -> Scene:
        scenes.append(Scene(tmp_path, stage, method))
        scenes[-1].reach()
        return scenes[-1]

    yield begin_scene
    for scene in scenes:
        scene.close()


def kill(stat: Stat) -> float:
    assert processes.send_signal(*stat.key, signal.SIGKILL)
    return time.monotonic()


def without_trackers(scene: Scene, stats: list[Stat]) -> list[Key]:
    trackers = {stat.key for stat in scene.roles(scene.supervisor.pid, "resource tracker")}
    return [stat.key for stat in stats if stat.key not in trackers]


def all_gone(keys: list[Key], what: str, since: float) -> None:
    until(lambda: not any(alive(key) for key in keys), f"{what} to be gone", GONE_S)
    print(f"{what}: {len(keys)} gone after {time.monotonic() - since:.2f} s")


@pytest.mark.parametrize(("victim", "stage", "method"), SCENES)
def test_nothing_outlives_its_parent(
    victim: str, stage: str, method: str, play: Callable[[str, str], Scene]
) -> None:
    scene = play(stage, method)
    {"agent": agent_dies, "rank": rank_dies, "supervisor": supervisor_dies}[victim](scene)
    until(lambda: not scene.run.lock_is_held(), "the supervisor to have closed the record")
    assert scene.run.exit(1).exists()


def agent_dies(scene: Scene) -> None:
    scene.supervisor.send_signal(signal.SIGSTOP)  # so that it is not who ends them
    agent = scene.agent()
    below = without_trackers(scene, scene.below(agent.pid))
    assert len(below) >= (2 if scene.stage == "importing" and scene.method == "fork" else 4)
    all_gone(below, "ranks and workers of a killed agent", kill(agent))
    scene.supervisor.send_signal(signal.SIGCONT)
    ended = scene.ended()
    assert ended.state == "failed"
    assert ended.cause.startswith("torchrun was killed by SIGKILL")
    told = {alert.id for alert in scene.journal(events.Alert)}
    assert not told & {"rank-died", "worker-died"}  # who dies with its agent is not the cause


def rank_dies(scene: Scene) -> None:
    everybody = without_trackers(scene, scene.below(scene.supervisor.pid))
    rank = scene.rank(1)
    assert rank is not None
    workers = without_trackers(scene, scene.below(rank.pid))
    assert workers or (scene.stage == "importing" and scene.method == "fork")
    since = kill(rank)
    all_gone(workers, "workers of a killed rank", since)
    ended = scene.ended()
    print(f"killed rank: the end recorded after {time.monotonic() - since:.2f} s")
    assert ended.state == "failed"
    assert ended.cause.startswith("rank 1 was killed by SIGKILL")
    assert KILLED not in (scene.run.logs(1) / "agent.log").read_text()
    told = [alert for alert in scene.journal(events.Alert) if alert.id == "rank-died"]
    assert told and told[-1].cleared  # and it stays in the history
    assert told[-2].text.startswith("rank 1 was killed by SIGKILL")
    all_gone(everybody, "all processes", since)


def supervisor_dies(scene: Scene) -> None:
    everybody = without_trackers(scene, scene.below(scene.supervisor.pid))
    sensors = {stat.key for stat in scene.roles(scene.supervisor.pid, "sensor")}
    since = kill_supervisor(scene)
    all_gone(list(sensors), "the sensor of a killed supervisor", since)
    if scene.stage == "reading":  # for ever: nobody could go on, or stop with a checkpoint
        assert all(alive(key) for key in everybody if key not in sensors)
        stopping.ask(scene.run, 1, "a test", now=True)
        begin.start_supervisor(scene.run, 1, "adopt", "a test", "a test")
    else:
        scene.go_on()
        step = scene.step()
        until(lambda: scene.step() >= step + 5, "the ranks to go on")
        assert not scene.run.lock_is_held()
        said = commands.stop(scene.run, 1)
        assert "its supervisor was gone and is back" in said
    assert scene.ended().state == "stopped"
    all_gone(everybody, "all processes", time.monotonic())
    whole = list(scene.run.checkpoints().glob("step-*/manifest.json"))
    assert whole or scene.stage == "reading"


def kill_supervisor(scene: Scene) -> float:
    scene.supervisor.kill()
    scene.supervisor.wait()
    return time.monotonic()
