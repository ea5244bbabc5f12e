"""Records of runs that a test writes itself, and what a report says of them."""

from __future__ import annotations

import time
from pathlib import Path

from bitwatch.record import events, kernel, rundir
from bitwatch.record.rundir import RunDir
from bitwatch.report import recorded
from bitwatch.report.facts import Gathered
from bitwatch.report.model import Finding
from tests.tui.recorded import write

BEGAN = 1_700_000_000.0
NOW = BEGAN + 90_000.0
BUILT, LOWER = 1_208_606_722, 679_962_626


def made(home: Path, name: str = "demo", attempts: int = 1, **identity: object) -> RunDir:
    run = rundir.create(home, name, **identity)
    for _ in range(attempts):
        rundir.new_attempt(run)
    known = run.identity()
    known.created = time.time() - 3600  # no supervisor is about to begin
    rundir.write_identity(run, known)
    return run


def journal(run: RunDir, *records: events.Record) -> None:
    write(run.journal, list(records))


def says(run: RunDir, rank: int, *records: events.Record, attempt: int = 1) -> None:
    write(run.rank(attempt, rank), list(records))


def started(attempt: int = 1, t: float = BEGAN, **fields: object) -> events.AttemptStarted:
    values = {"steps": 800, "ranks": 4, "workers": 4, "cause": "first launch", "by": "a test"}
    return events.AttemptStarted(attempt=attempt, t=t, m=0.0, **(values | fields))  # type: ignore[arg-type]


def ended(state: str, cause: str = "", attempt: int = 1, t: float = BEGAN + 500) -> events.Record:
    return events.AttemptEnded(attempt=attempt, state=state, cause=cause, t=t, m=0.0)  # type: ignore[arg-type]


def failed(rank: int, cause: str, t: float, step: int = 40) -> events.RankEnded:
    return events.RankEnded(rank=rank, state="failed", cause=cause, step=step, t=t, m=0.0)


def steps(rank: int, last: int, every: int = 10, t: float = BEGAN) -> list[events.Record]:
    return [
        events.Step(rank=rank, step=n, loss=0.35 + 3.4 / (n + 8), step_s=1.0, t=t + n, m=float(n))
        for n in range(every, last + 1, every)
    ]


def exit_of(
    pid: int, role: str, number: int | None, t: float, rank: int | None = None
) -> events.ProcessExit:
    return events.ProcessExit(pid=pid, starttime=9, role=role, rank=rank, signal=number, t=t, m=1.0)


def process(
    pid: int, role: str, rank: int | None = None, attempt: int = 1, t: float = BEGAN + 2
) -> events.ProcessStart:
    return events.ProcessStart(
        pid=pid, starttime=9, role=role, rank=rank, attempt=attempt, t=t, m=0.09
    )


def another_boot(run: RunDir) -> None:
    identity = run.identity()
    identity.boot_id = "another boot"
    assert identity.boot_id != kernel.boot_id()
    rundir.write_identity(run, identity)


def report(run: RunDir, now: float = NOW) -> Gathered:
    gathered = Gathered()
    recorded.add(gathered, run, now=now)
    return gathered


def of(gathered: Gathered, id_: str) -> Finding:
    """The only finding of this id."""
    (finding,) = [finding for finding in gathered.findings if finding.id == id_]
    return finding


def ids(gathered: Gathered) -> list[str]:
    return [finding.id for finding in gathered.findings]


def places(finding: Finding) -> list[tuple[str, int | None]]:
    return [(evidence.source, evidence.line) for evidence in finding.evidence]
