"""Runs of trainings that bitwatch did not start, for the tests: logs that they write, and a watcher
in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bitwatch.attach.watcher import Watcher
from bitwatch.record import rundir
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import Lock, RunDir
from bitwatch.record.view import View, view
from bitwatch.sense.processes import Key, read_stat
from bitwatch.sense.training import Member, Training
from tests.conftest import until

LINE = "iter {}: loss {:.4f}, time 130.11ms, mfu 1.20%\n"


def steps(numbers: range) -> str:
    return "".join(LINE.format(n, 5 / (n + 1)) for n in numbers)


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


@contextmanager
def watching(run: RunDir) -> Iterator[Watcher]:
    lock = Lock(run)
    watcher = Watcher(run, lock)
    try:
        watcher.tick()
        watcher.read_logs()
        yield watcher
    finally:
        watcher.close()
        lock.release()


def look(watcher: Watcher) -> None:
    watcher.read_logs()
    watcher.tick()


def seen(run: RunDir, after_s: float | None = None) -> View:
    """Now, or so long after the newest step."""
    follower = Follower(run)
    follower.poll()
    now = view(follower.state, time.time(), follower.liveness())
    if after_s is None:
        return now
    assert now.last
    return view(follower.state, now.last.t + after_s, follower.liveness())


def points(picture: View) -> int:
    return sum(sum(series.counts) for _, series in picture.loss)


def training_of(launcher: Key, rank: Key, logs: tuple = ()) -> Training:
    """As the finder tells it, of two stand-ins."""
    stats = [read_stat(launcher[0]), read_stat(rank[0])]
    assert stats[0] and stats[1]
    members = (
        Member(stats[0], "agent", "torchrun train_gpt.py"),
        Member(stats[1], "rank", "python train_gpt.py", rank=0, world_size=1),
    )
    return Training(launcher, "torchrun train_gpt.py", "/", time.time(), members, 1, logs)


def follow(run: RunDir, log: Path) -> None:
    """As if the log had been found with the training."""
    identity = run.identity()
    identity.logs = [str(log)]
    rundir.write_identity(run, identity)


def ended(run: RunDir, watcher: Watcher) -> None:
    def closed() -> bool:
        look(watcher)
        return run.exit(1).exists()

    until(closed, "the end to be on record")
