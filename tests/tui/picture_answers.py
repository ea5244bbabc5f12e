"""What pages get for an answer while they are drawn as pictures: they ask of processes that are
there and of clocks, and pictures of those would be different each time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from bitwatch.attach import choose
from bitwatch.attach.choose import Choice, Offered
from bitwatch.attach.details import About
from bitwatch.attach.stacks import RankStacks, Stacks
from bitwatch.record import events, rundir
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.sense.stacks import Frame, Thread
from bitwatch.sense.training import Training
from bitwatch.tui.screens import details, stacks
from tests.tui import recorded, views

BESIDE = "2026-11-28-1b21-02c4"  # the run that is drawn beside
LIBRARY = "/home/ada/.venv/lib/python3.11/site-packages"
WAITS = (
    Frame("/usr/lib/python3.11/multiprocessing/queues.py", 113, "get"),
    Frame(f"{LIBRARY}/torch/utils/data/dataloader.py", 1310, "_try_get_data"),
    Frame("/home/ada/bitwatch/trainer/loop.py", 88, "next_batch"),
    Frame("/home/ada/bitwatch/trainer/train.py", 141, "main"),
)
REDUCES = (
    Frame(f"{LIBRARY}/torch/distributed/distributed_c10d.py", 3009, "all_reduce"),
    Frame("/home/ada/bitwatch/trainer/loop.py", 131, "agree"),
    Frame("/home/ada/bitwatch/trainer/train.py", 144, "main"),
)
PINS = Thread(
    "pin", (Frame(f"{LIBRARY}/torch/utils/data/_utils/pin_memory.py", 32, "do_one_step"),)
)


def stand_still(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    clock = SimpleNamespace(time=lambda: views.NOW)
    for module in ("bitwatch.attach.target", "bitwatch.tui.screens.details"):
        monkeypatch.setattr(f"{module}.time", clock)
    monkeypatch.setattr(stacks, "look", look)
    monkeypatch.setattr(details, "about", about)
    monkeypatch.setattr(choose, "earlier", lambda run: iter([(runs(home), True)]))


def look(run: RunDir, view: View) -> Stacks:
    """Rank 2 waits for its reader, the others for rank 2."""
    told = []
    for rank in range(4):
        late = rank == 2
        kind, where = ("data", "DataLoader queue.get") if late else ("collective", "all_reduce")
        wait = events.Wait(rank, kind, where, since_s=94.0)
        threads = (Thread("main", WAITS if late else REDUCES), PINS)
        wchan = "futex_wait_queue" if late else ""
        told.append(
            RankStacks(
                wait, views.pid_of(rank), "sleeping" if late else "running", wchan, "", threads
            )
        )
    words = "no step for 1 m 34 s: rank 2 waits in DataLoader queue.get; ranks 0, 1, 3 wait for it"
    return Stacks(words, views.NOW, tuple(told))


def about(pid: int, starttime: int) -> About:
    return About(
        pid=pid, starttime=starttime, name="python", state="S", state_words="sleeping",
        role="worker", command=["/home/ada/.venv/bin/python", "-u", "trainer/train.py"],
        directory="/home/ada/bitwatch", user="ada", created=views.NOW - 7440, threads=9,
        threads_live=9, open_files=41, user_s=5120.0, system_s=61.0, read_bytes=812 << 20,
        written_bytes=3 << 20, rss_mib=402.0, shared_mib=190.0, unique_mib=180.0,
        proportional_mib=244.0, swap_mib=0.0, wchan="futex_wait_queue", gpu_files=("nvidia3",),
        run="2026-11-29-1b21-7f3a", attempt=2, parent_pid=41251, parent_name="python",
        session=41233,
    )  # fmt: skip


def runs(home: Path) -> list[Choice]:
    """Of one state each, and one with a name that is longer than most."""

    def one(name: str, state: events.State, step: int, loss: float | None, age_s: float) -> Choice:
        return Choice(RunDir(home / name), state, step, 20_000, loss, age_s)

    return [
        one(BESIDE, "done", 9_000, 0.1212, 86_000.0),
        one("2026-11-28-wide-aaf1", "failed", 12_404, math.nan, 91_000.0),
        one("2026-11-27-deeper-and-with-more-heads-0c1d", "stopped", 400, 0.4127, 180_000.0),
        one("2026-11-26-1b21-5e5e", "lost", 19_800, 0.0883, 260_000.0),
        one("2026-11-25-first-77d0", "failed", 0, None, 350_000.0),
    ]


def choices(home: Path) -> Iterator[Sequence[Choice | Offered]]:
    """Somebody's training, one that runs, and those that have ended."""
    training = Training(
        root=(30_411, 77), command="torchrun train.py", directory="/home/ada/llm",
        started=views.NOW - 5400, members=(), ranks=4,
        evidence=("4 ranks with RANK and WORLD_SIZE set", "torchrun is their parent"),
    )  # fmt: skip
    live = Choice(RunDir(home / "2026-11-29-1b21-7f3a"), "running", 12_408, 20_000, 0.0891, 3.0)
    yield [Offered(home, training), live, *runs(home)]


def make_beside(home: Path) -> None:
    """The record of the run that is drawn beside."""
    run = rundir.create(home, "1b21")
    run = RunDir(run.path.rename(home / BESIDE))
    rundir.new_attempt(run)
    began = recorded.BEGAN
    recorded.write(
        run.journal,
        [
            events.RunStarted(run=run.id, name="1b21", t=began, m=0.0),
            events.AttemptStarted(steps=20_000, t=began),
            events.AttemptEnded(state="done", step=9_000, t=began),
            events.RunEnded(state="done", t=began),
        ],
    )
    steps: list[events.Record] = [
        events.Step(step=at, loss=0.12 + 0.55 * math.exp(-at / 1400), t=began + at, m=float(at))
        for at in range(20, 9_001, 20)
    ]
    recorded.write(run.rank(1, 0), steps)
