"""Random kills of everything that bitwatch starts, beside jobs that are none of its business.

BITWATCH_CHAOS is how many kills there are: a few by default, 100 and more in `make chaos`.
BITWATCH_CHAOS_SEED makes them the same ones again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.attach import commands
from bitwatch.record import events, kernel
from bitwatch.record.follow import Follower
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.view import END_STATES, View, view
from bitwatch.sense import processes
from tests.conftest import Shell, alive, until
from tests.terminal import Terminal

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("BITWATCH_CHAOS", "5"))
SEED = int(os.environ.get("BITWATCH_CHAOS_SEED", str(random.randrange(1 << 30))))
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSTOP)
TARGETS = ("supervisor", "agent", "rank", "rank", "worker", "worker", "viewer")
FOREVER = ("--set", "train.steps=1000000")
SPAWN = (
    "import multiprocessing as m, time\n"
    "def work():\n"
    "    time.sleep(3600)\n"
    "if __name__ == '__main__':\n"
    "    children = [m.get_context('spawn').Process(target=work, daemon=True) for _ in range(2)]\n"
    "    [child.start() for child in children]\n"
    "    print(flush=True)\n"
    "    time.sleep(3600)\n"
)
Key = tuple[int, int]


class Innocents:
    """A torchrun job, a spawn job and a daemon with the tags of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "innocent.py"
        program.write_text("import time\nprint(flush=True)\ntime.sleep(3600)\n")
        spawn = folder / "spawn.py"
        spawn.write_text(SPAWN)
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
        self.started = [self.start(*torchrun, str(program)), self.start(str(spawn))]
        for process in self.started:
            assert process.stdout and process.stdout.readline()

    def start(self, *words: str, **tags: str) -> subprocess.Popen[bytes]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BITWATCH_")}
        return subprocess.Popen(
            [sys.executable, *words],
            env={**environment, **tags},
            stdout=subprocess.PIPE,
            cwd=self.folder,
            start_new_session=True,
        )

    def add_daemon(self, run: RunDir) -> None:
        tags = {
            "BITWATCH_RUN": run.id,
            "BITWATCH_ATTEMPT": "1",
            "BITWATCH_DIR": str(run.path),
        }
        daemon = self.start("-c", "import time; print(flush=True); time.sleep(3600)", **tags)
        assert daemon.stdout and daemon.stdout.readline()
        self.started.append(daemon)

    def keys(self) -> list[Key]:
        table = processes.scan()
        roots = {process.pid for process in self.started}
        below = processes.descendants(table, roots)
        return [table[pid].key for pid in roots if pid in table] + [stat.key for stat in below]

    def end(self) -> None:
        for key in self.keys():
            processes.send_signal(*key, signal.SIGKILL)
        for process in self.started:
            process.wait()


@pytest.fixture
def innocents(tmp_path: Path) -> Iterator[Innocents]:
    made = Innocents(tmp_path)
    yield made
    made.end()


def seen(run: RunDir) -> View:
    follower = Follower(run)
    follower.poll()
    return view(follower.state, time.time(), follower.liveness())


def is_over(run: RunDir) -> bool:
    return seen(run).state in END_STATES and not run.lock_is_held()


def reach(run: RunDir, step: int) -> None:
    until(lambda: seen(run).step >= step or is_over(run), f"step {step}")


def live_ones(run: RunDir, role: str) -> list[Key]:
    """By what the journal says, that still live."""
    if role == "supervisor":
        holder = run.holder()
        return [(holder.pid, holder.starttime)] if holder and run.lock_is_held() else []
    follower = Follower(run)
    follower.poll()
    found = follower.state.journal.processes.items()
    return [key for key, start in found if start.role == role and alive(key)]


def kill(run: RunDir, role: str, number: signal.Signals, chance: random.Random) -> bool:
    """Whether there was one to be signalled. Who was stopped stays so, or goes on after a while:
    it is then that everybody has to cope with what has happened meanwhile."""
    keys = live_ones(run, role)
    if not keys:
        return False
    key = chance.choice(keys)
    if not processes.send_signal(*key, number):
        return False
    if number == signal.SIGSTOP and chance.random() < 0.5:
        time.sleep(1.0)  # a stop has no end that could be waited for
        processes.send_signal(*key, signal.SIGCONT)
    return True


def settle(shell: Shell, run: RunDir) -> None:
    """Whatever is left of the run is brought to an end, as a person would."""
    if not is_over(run):
        shell.run("stop", run.id, "--now", code=None)
    until(lambda: is_over(run), "the run to be over")
    done = json.loads(shell.run("clean", run.id, "--yes", "--json")[0])
    assert done["survivors"] == []


@pytest.mark.long
def test_random_kills_leave_nothing_behind_and_harm_nobody(
    tmp_path: Path, innocents: Innocents
) -> None:
    print(f"BITWATCH_CHAOS_SEED={SEED}")
    chance = random.Random(SEED)
    shell = Shell(tmp_path)
    ran: list[RunDir] = []
    kills = 0
    while kills < KILLS:
        name = shell.run("run", str(shell.config), "--detach", *FOREVER)[0].strip()
        run = RunDir(shell.home / name)
        ran.append(run)
        if len(ran) == 1:
            innocents.add_daemon(run)
        before = innocents.keys()
        stage = chance.choice(("starting", "stepping"))
        if stage == "stepping":
            reach(run, 5)
        for _ in range(chance.randint(1, 3)):
            role, number = chance.choice(TARGETS), chance.choice(SIGNALS)
            if role == "viewer":
                with Terminal(shell, "attach", run.id) as screen:
                    screen.see(run.id.split("-")[3])
                    os.kill(screen.pid, number)
                    if number == signal.SIGSTOP:
                        os.kill(screen.pid, signal.SIGKILL)
                    screen.gone()
                kills += 1
            else:
                kills += kill(run, role, number, chance)
        if chance.random() < 0.3:
            try:
                commands.relaunch(run, seen(run).attempt, "same")
            except (RunDirError, OSError) as error:
                print(f"not relaunched: {error}")
        settle(shell, run)
        assert innocents.keys() == before
    for run in ran:
        assert seen(run).state in END_STATES
        records, skipped = read_all(run.journal)
        assert records and skipped <= len(run.attempts()) * 2
        ends = [r for r in records if isinstance(r, events.AttemptEnded)]
        assert [end.attempt for end in ends] == run.attempts()
        known = [r for r in records if isinstance(r, events.ProcessStart)]
        assert not [
            r for r in known if kernel.starttime(r.pid) == r.starttime and r.role != "other"
        ]
        shared = [r for r in records if isinstance(r, events.SharedMemory)]
        assert not [n for r in shared for n in r.names if Path("/dev/shm", n).exists()]
    left = json.loads(shell.run("clean", "--all", "--json")[0])
    assert left["own"] == []
    assert [one["pid"] for one in left["confirm"]] == [innocents.started[2].pid]
