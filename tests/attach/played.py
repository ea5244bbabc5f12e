"""A recorded run with two attempts and a night between them, for those who play it again."""

from __future__ import annotations

import time
from pathlib import Path

from bitwatch.attach.playing import Playing
from bitwatch.record import events, rundir
from bitwatch.record.gpu_history import GpuHistory
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir

BEGAN = 1_700_000_000.0
FAILED = BEGAN + 206.0
AGAIN = BEGAN + 11_006.0  # three hours later
DONE = AGAIN + 400.0
SAMPLED = AGAIN + 200.0  # from here on full-rate samples are left
BORN = 1 << 50  # of its processes, in ticks: nothing on this machine began then
SILENCE = "3 h 00 m without a record"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def at(playing: Playing, t: float) -> None:
    """Holds its clock at this time, with all read that was recorded by then."""
    playing.go_to(t)
    playing.paused = True
    while playing.picture().place.reading is not None:
        playing.tick()


def write(path: Path, records: list[events.Record]) -> None:
    writer = JournalWriter(path)
    for record in records:
        writer.write(record)
    writer.close()


def make(home: Path) -> RunDir:
    """Attempt 1 prepares, trains and fails; attempt 2 follows in the morning and is done."""
    run = rundir.create(home, "played")
    idle = events.Alert(id="idle-reader", text="1 reader is idle", attempt=1, t=BEGAN + 50)
    journal: list[events.Record] = [
        events.RunStarted(run=run.id, name="played", t=BEGAN, m=0.0),
        *_attempt(1, BEGAN),
        idle,
        events.Alert(id="idle-reader", attempt=1, cleared=True, t=BEGAN + 120),
        *_exits(1, BEGAN + 205),
        events.AttemptEnded(attempt=1, state="failed", cause="out of memory", step=19, t=FAILED),
        *_attempt(2, AGAIN),
        *_exits(2, DONE - 1),
        events.AttemptEnded(attempt=2, state="done", step=39, t=DONE),
        events.RunEnded(state="done", t=DONE),
    ]
    minutes = [
        events.Minute(processes=4, gpu_memory_mib=[1000.0 + n], gpu_utilization_percent=[90.0], t=t)
        for n, t in enumerate([*_every(60, BEGAN, FAILED), *_every(60, AGAIN, DONE)])
    ]
    write(run.journal, sorted([*journal, *minutes], key=lambda record: record.t))
    for number, began, first, last in ((1, BEGAN, 1, 19), (2, AGAIN, 20, 39)):
        rundir.new_attempt(run)
        if number == 1:
            write(run.prepare(1), _prepare())
        write(run.rank(number, 0), _rank(number, began, first, last))
        accounts: list[events.Record] = [
            events.Reader(
                rank=0, pid=10 * number + 3, starttime=BORN, shards=[0], state="reading",
                samples=n, moved=t, t=t, m=0.0,
            )
            for n, t in enumerate(_every(10, began + 20, began + 200))
        ]  # fmt: skip
        write(run.reader(number, 0, "train", 0, "1"), accounts)
    samples: list[events.Record] = []
    for t in _every(2, SAMPLED, DONE):
        rows = [
            events.Process(pid=pid, starttime=BORN, ppid=1, role=role, state="R", rss_mib=100.0)
            for pid, role in ((20, "supervisor"), (21, "agent"), (22, "rank"), (23, "worker"))
        ]
        samples.append(events.Processes(attempt=2, processes=rows, t=t, m=0.0))
    write(run.samples / "2023-11-15T01.jsonl", samples)
    return run


def _every(seconds: int, begin: float, end: float) -> list[float]:
    return [begin + s for s in range(0, int(end - begin), seconds)]


def _attempt(number: int, began: float) -> list[events.Record]:
    roles = ("supervisor", "agent", "rank", "worker")
    return [
        events.AttemptStarted(
            attempt=number, steps=39, ranks=1, workers=1, device="cuda", log_every=1, t=began
        ),
        *(
            events.ProcessStart(
                pid=10 * number + at, starttime=BORN, ppid=10 * number + at - 1, role=role,
                rank=0 if at > 1 else None, worker=0 if at > 2 else None, attempt=number,
                command=f"python {role}", t=began + 8 + at,
            )
            for at, role in enumerate(roles)
        ),
    ]  # fmt: skip


def _exits(number: int, t: float) -> list[events.Record]:
    roles = ((3, "worker"), (2, "rank"), (1, "agent"))
    return [
        events.ProcessExit(pid=10 * number + at, starttime=BORN, role=role, status=1, t=t)
        for at, role in roles
    ]


def _prepare() -> list[events.Record]:
    return [
        events.Phase(name="prepare", progress=0.5, t=BEGAN + 2),
        events.RankEnded(state="done", t=BEGAN + 6),
    ]


def _rank(number: int, began: float, first: int, last: int) -> list[events.Record]:
    steps: list[events.Record] = [
        events.Step(step=step, tokens=100 * step, loss=1 / step, step_s=10.0, t=t, m=0.0)
        for step, t in zip(
            range(first, last + 1), _every(10, began + 20, began + 999), strict=False
        )
    ]
    end = events.RankEnded(state="failed", cause="out of memory", step=last, t=began + 204)
    if number == 2:
        end = events.RankEnded(state="done", step=last, t=DONE - 2)
    return [
        events.ProcessStart(pid=10 * number + 2, starttime=BORN, role="rank", rank=0, t=began + 10),
        events.Phase(name="train", t=began + 12),
        *steps,
        events.Checkpoint(step=last, path="x", t=began + 203),
        end,
    ]


def moment(t: float, wide: bool = True) -> str:
    """As a screen says it."""
    day = "%A %-d %B %Y" if wide else "%-d %b %Y"
    return time.strftime(f"{day}, %H:%M:%S", time.localtime(t))


def settled(history: GpuHistory) -> GpuHistory:
    """With everything in its curves, and none of the counters that only say how it came there."""
    while history.absorb():
        pass
    return GpuHistory(history.recent, history.whole, history.answered)
