"""A training that stands still: its ranks are asked where they are, and the right one is named."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.view import View, view
from bitwatch.sense import processes, stacks
from bitwatch.sense.places import wait_of
from bitwatch.sense.stacks import Target
from bitwatch.supervise.stalls import Stalls
from bitwatch.supervise.watch import Watch
from tests.conftest import until
from tests.trainer.conftest import Launched
from tests.trainer.ready import Forked, free_port

pytestmark = pytest.mark.slow

ROWS = 100  # of a file: about as many steps


class Watched:
    """What a supervisor does about stalls, a look at a time."""

    def __init__(self, launched: Launched) -> None:
        self.run = launched.run
        self.journal = JournalWriter(self.run.journal)
        self.journal.write(events.AttemptStarted(attempt=1, ranks=2, workers=1, stall_s=1.0))
        self.follower = Follower(self.run)
        self.stalls = Stalls(self.run, self.journal, 1)
        self.watch = Watch(self.journal)

    def look(self) -> View:
        self.follower.poll()
        live = msgspec.structs.replace(self.follower.liveness(), supervisor=True)
        now = time.time()
        seen = view(self.follower.state, now, live)
        if self.stalls.look(seen, self.follower.state, now):
            self.follower.poll()
            seen = view(self.follower.state, now, live)
        self.watch.look(seen, now)
        return seen

    def stalled(self) -> list[events.Alert]:
        """A busy machine may have others to tell of."""
        return [alert for alert in self.look().alerts if alert.id == "stalled"]

    def alert(self, *words: str) -> events.Alert:
        def told() -> events.Alert | None:
            return next((a for a in self.stalled() if all(word in a.text for word in words)), None)

        return until(told, f"an alert with {words}")


def test_who_keeps_a_run_is_named_and_where(
    launch: Callable[..., Launched],
    small: Callable[..., object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stacks, "ANSWER_S", 30.0)  # or a late answer, or half of one, is news
    monkeypatch.setattr(stacks, "STILL_S", 0.3)
    for part in range(4):  # two for each rank; those of rank 0 are longer
        rows = [f"row {row:010}" for row in range(ROWS * (1 if part == 2 else 20))]
        pq.write_table(pa.table({"text": rows}), tmp_path / f"part-{part}.parquet")
    data = {"source": f"{tmp_path}/part-*.parquet", "workers": 1, "sharding": "reshard"}
    config = small(
        data={**data, "shuffle": 0},
        parallel={"ranks": 2, "step_timeout_s": 300},
        train={"steps": 10**6},
    )
    launched = launch(config)
    watched = Watched(launched)
    launched.await_that(lambda: launched.of(events.Step))  # both have opened their first file
    last = tmp_path / "part-3.parquet"
    last.unlink()
    os.mkfifo(last)  # nobody writes into it: who reads it waits
    # The first step is slow, and alone would be the usual one.
    launched.await_that(lambda: len(launched.of(events.Step)) > 5)
    until(lambda: watched.look().state == "running", "it to run")

    rank = launched.of(events.ProcessStart, 1)[0]
    assert processes.send_signal(rank.pid, rank.starttime, signal.SIGSTOP)
    halted = watched.alert(": rank 1 is stopped by a signal; rank 0 waits for it in ")
    assert halted.next.startswith("kill -CONT ")
    assert halted.evidence[2].startswith("rank 1: stopped")
    assert processes.send_signal(rank.pid, rank.starttime, signal.SIGCONT)
    until(lambda: not watched.stalled(), "the alert to clear")

    blocked = watched.alert(
        "rank 1 waits in DataLoader queue.get",
        "(worker 0 has been in one read of shard part-3.parquet[0:1] since ",
        "; rank 0 waits for it in ",
    )
    assert "all_reduce" in blocked.text or "FSDP" in blocked.text
    told = watched.look().stuck
    assert told is not None
    assert [(wait.rank, wait.kind) for wait in told.waits] == [(0, "collective"), (1, "data")]
    assert any(
        "_try_get_data (utils/data/dataloader.py:" in line for line in told.waits[1].evidence
    )
    # What has not changed is not written again.
    before = _told(watched)
    for _ in range(2):
        watched.stalls._next_m = 0.0
        watched.look()
        until(lambda: watched.look() and watched.stalls._asking is None, "another answer")
    assert _told(watched) == before
    assert launched.process.poll() is None
    for step in launched.of(events.Step)[1:]:
        assert 0 < step.wait_s < step.step_s


def _told(watched: Watched) -> int:
    told = read_all(watched.run.journal)[0]
    alerts = [r for r in told if isinstance(r, events.Alert) and r.id == "stalled"]
    return len(alerts) + sum(isinstance(r, events.Stuck) for r in told)


def pair(rank: int, port: int, folder: str, what: str) -> None:
    """One of two ranks. Rank 1 comes to the collective only when the pipe beside it is opened."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    import torch
    import torch.distributed as dist

    from trainer import stacks as answering

    answering.answer_as_rank(f"{folder}/rank{rank}.txt")

    def blocked(*_: object) -> object:
        return os.open(f"{folder}/pipe", os.O_RDONLY)

    if what == "start" and rank:
        blocked()
    dist.init_process_group("gloo", rank=rank, world_size=2)
    Path(folder, f"ready{rank}").touch()
    if rank and what == "compile":
        torch.compile(lambda x: x + 1, backend=lambda graph, _: blocked() and graph)(torch.ones(1))
    elif rank and what == "other":
        blocked()
    dist.all_reduce(torch.ones(1))


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("start", [("collective", "the start of the other ranks"), None]),
        ("compile", [("collective", "all_reduce"), ("compile", "torch.compile")]),
        ("other", [("collective", "all_reduce"), ("other", "blocked")]),
    ],
)
def test_places_of_real_ranks(
    what: str, expected: list[tuple[str, str] | None], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    port = free_port()
    children = [Forked(pair, rank, port, str(tmp_path), what) for rank in (0, 1)]
    try:
        stats = [processes.read_stat(child.pid) for child in children]
        asked = [
            Target(rank, *stat.key, tmp_path / f"rank{rank}.txt")
            for rank, stat in enumerate(stats)
            if stat
        ]

        def found() -> bool:
            waits = [wait_of(look) for look in stacks.ask(asked)]
            return all(
                wanted is None or (wait.kind == wanted[0] and wait.where.startswith(wanted[1]))
                for wait, wanted in zip(waits, expected, strict=True)
            )

        assert until(found, f"the places of {what}")
    finally:
        for child in children:
            child.kill()
            child.wait()
