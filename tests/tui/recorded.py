"""A recorded run that a test builds itself, and a source that hands its picture to the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bitwatch.attach.others import Other
from bitwatch.attach.telling import Mode, Snapshot
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower, Liveness
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View, view

BEGAN = 1_700_000_000.0
NOW = BEGAN + 400.0
LIVE = Liveness(supervisor=True, agent=True, ranks=frozenset({0, 1}))
STEPS, STEP_NOW = 800, 400
PLAN = {
    "problems": [],
    "corrections": [],
    "data": {
        "num_shards": 2,
        "rows": 2708,
        "ranks": 2,
        "workers_per_rank": 2,
        "readers": 4,
        "readers_busy": 2,
        "readers_idle": 2,
        "mode": "as-is",
        "read_amplification": 1,
    },
    "model": {"asked": None, "built": 793_602, "held": [396_801, 396_801]},
}
IDLE = events.Alert(
    id="idle-reader",
    severity="warning",
    text="2 of 4 readers have nothing to read: rank 0 worker 1, rank 1 worker 1",
    evidence=["rank 0 worker 1: given no shard (pid 105)", "rank 1 worker 1: given no shard"],
    next="run it with --set data.workers=1",
    attempt=1,
    t=BEGAN + 20,
    m=20.0,
)
PROCESSES = [
    (100, 1, "supervisor", None, None, 0.5, 24.0),
    (101, 100, "agent", None, None, 0.2, 310.0),
    (102, 101, "rank", 0, None, 98.0, 402.0),
    (103, 101, "rank", 1, None, 97.0, 401.0),
    (104, 102, "worker", 0, 0, 12.0, 180.0),
    (105, 102, "worker", 0, 1, 0.0, 160.0),
    (106, 103, "worker", 1, 0, 11.0, 181.0),
    (107, 103, "worker", 1, 1, 0.0, 161.0),
]  # pid, parent, role, rank, worker, cpu %, MiB


def write(path: Path, records: list[events.Record]) -> None:
    writer = JournalWriter(path)
    for record in records:
        writer.write(record)
    writer.close()


def make(home: Path, *, ended: bool = False, name: str = "demo") -> RunDir:
    """Two ranks with two workers each, in the middle of their training or at its end."""
    run = rundir.create(home, name)
    rundir.new_attempt(run)
    journal: list[events.Record] = [
        events.RunStarted(run=run.id, name=name, t=BEGAN, m=0.0),
        events.AttemptStarted(
            steps=STEPS, ranks=2, workers=2, device="cpu", log_every=10, t=BEGAN, m=0.0
        ),
        events.DataPlanned(plan=PLAN, t=BEGAN, m=0.0),
        *(
            events.ProcessStart(
                pid=pid, starttime=9, ppid=parent, role=role, rank=rank, worker=worker,
                attempt=1, command=f"python {role}", t=BEGAN + 2, m=2.0,
            )
            for pid, parent, role, rank, worker, _, _ in PROCESSES
        ),
        IDLE,
    ]  # fmt: skip
    if ended:
        journal += [
            events.AttemptEnded(state="done", step=STEP_NOW, t=NOW, m=400.0),
            events.RunEnded(state="done", t=NOW, m=400.0),
        ]
    write(run.journal, journal)
    for rank in (0, 1):
        write(run.rank(1, rank), _rank(rank))
        for worker in (0, 1):
            account = events.Reader(
                rank=rank, worker=worker, pid=104 + 2 * rank + worker, starttime=9,
                shards=[rank] if worker == 0 else [], samples=3200 if worker == 0 else 0,
                rows=90, bytes=100_000, state="reading" if worker == 0 else "idle",
                t=NOW - 1, m=399.0,
            )  # fmt: skip
            write(run.reader(1, rank, "train", worker, "0"), [account])
    write(run.samples / "2023-11-14T22.jsonl", _samples())
    return run


def _rank(rank: int) -> list[events.Record]:
    records: list[events.Record] = [
        events.ProcessStart(pid=102 + rank, starttime=9, role="rank", rank=rank, t=BEGAN + 2, m=2),
        events.ModelBuilt(
            built=793_602, held=[396_801, 396_801], ranks=2, device="cpu", t=BEGAN + 3, m=3.0
        ),
        events.Phase(rank=rank, name="train", t=BEGAN + 4, m=4.0),
    ]
    for step in range(10, STEP_NOW + 1, 10):
        loss = 0.35 + 3.4 / (step + 8)
        records.append(
            events.Step(
                rank=rank, step=step, tokens=step * 4096, loss=loss, bits_per_byte=loss * 11.54,
                learning_rate=1e-3, grad_norm=0.4, step_s=0.98, data_s=0.01,
                tokens_per_s=18_000.0, t=BEGAN + step, m=float(step),
            )
        )  # fmt: skip
        if step % 100 == 0 and rank == 0:
            records.append(
                events.Evaluation(
                    step=step, loss=loss + 0.01, bits_per_byte=5.0, scored_bytes=9000,
                    t=BEGAN + step, m=float(step),
                )
            )  # fmt: skip
    return records


def _samples() -> list[events.Record]:
    rows = [
        events.Process(
            pid=pid, starttime=9, ppid=parent, role=role, state="R" if cpu > 50 else "S",
            rank=rank, worker=worker, cpu_percent=cpu, rss_mib=rss,
        )
        for pid, parent, role, rank, worker, cpu, rss in PROCESSES
    ]  # fmt: skip
    return [
        events.Gpus(source="cpu", note="no NVIDIA driver", t=NOW - 1, m=399.0),
        events.Processes(attempt=1, processes=rows, t=NOW - 1, m=399.0),
    ]


def seen(run: RunDir, liveness: Liveness = LIVE, now: float = NOW) -> View:
    follower = Follower(run)
    follower.poll()
    return view(follower.state, now, liveness)


class Fixed:
    """A source that gives what the test hands it, and remembers what it was told."""

    def __init__(self, run: RunDir, view: View) -> None:
        self.run = run
        self.view = view
        self.went_on = False
        self.closed = False
        self.latest: Snapshot | None = None
        self._told: Callable[[Snapshot], object] = lambda _: None

    def listen(self, told: Callable[[Snapshot], object]) -> None:
        self._told = told
        self.give(self.view)

    def give(
        self,
        view: View,
        now: float = NOW,
        mode: Mode = "live",
        others: Sequence[Other] = (),
    ) -> None:
        self.view = view
        self._told(Snapshot(view=view, now=now, mode=mode, others=tuple(others)))

    def go_on(self) -> None:
        self.went_on = True

    def close(self) -> None:
        self.closed = True


class Remembered:
    """Commands that are only noted."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.signals: list[tuple[str, list[tuple[int, int]]]] = []
        self.ended: list[list[tuple[int, int]]] = []

    def stop(self, run: RunDir, attempt: int) -> str:
        self.asked.append(("stop", run.id, attempt))
        return f"attempt {attempt} stops"

    def clean(self, run: RunDir) -> str:
        self.asked.append(("clean", run.id, 0))
        return "ended worker 1 of rank 0 (pid 7)"

    def end_left(self, run: RunDir, targets: Sequence[tuple[int, int]]) -> str:
        self.ended.append(list(targets))
        return f"ended {len(targets)} processes"

    def relaunch(self, run: RunDir, attempt: int, correction: str) -> str:
        self.asked.append((f"relaunch {correction}", run.id, attempt))
        return f"attempt {attempt + 1} goes on, {correction}"

    def signal(self, run: RunDir, targets: Sequence[tuple[int, int]], name: str) -> str:
        self.signals.append((name, list(targets)))
        return f"{name} sent to {len(targets)}"
