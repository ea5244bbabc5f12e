"""`bitwatch report RUN`: a recorded run explains itself from its record. No prose is parsed, no
log is read, and nothing of the run is touched."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower, Liveness
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.view import END_STATES, View, view
from bitwatch.report import record_ends, record_findings, record_training
from bitwatch.report.facts import Gathered
from bitwatch.report.model import Finding, Verdict, severest_first
from bitwatch.report.record_end import Ended
from bitwatch.report.record_read import Record
from bitwatch.report.when import sane
from bitwatch.report.words import moment, sentence
from bitwatch.sense.processes import TICKS_PER_S
from bitwatch.supervise import leftovers

MOST_ATTEMPTS = 50  # the newest, that are looked at one by one
MOST_PROCESSES = 20_000  # of a record, to be found again in a listing


class Named(NamedTuple):
    """A process that a record names. `started` is wall clock."""

    pid: int
    started: float | None
    role: str
    rank: int | None
    attempt: int


class Recorded(msgspec.Struct, kw_only=True):
    """What a run's record says, concluded. `processes` are all that it names."""

    run: RunDir
    record: Record
    seen: View
    findings: list[Finding]
    verdict: Verdict
    notes: list[str]
    processes: list[Named]


def add(gathered: Gathered, run: RunDir, *, prefix: str = "", now: float | None = None) -> Recorded:
    """Reads a run's record into the evidence of a report. `prefix`: before the names of its
    files where several runs are reported of."""
    found = read(run, prefix=prefix, now=time.time() if now is None else now)
    gathered.about.append(about(found))
    gathered.timeline += found.record.timeline.entries()
    of = f"run {run.id}: " if prefix else ""
    gathered.findings += [
        msgspec.structs.replace(finding, title=of + finding.title) for finding in found.findings
    ]
    gathered.shown += map(sentence, found.verdict.shown)
    gathered.likely += map(sentence, found.verdict.likely)
    gathered.unknown += map(sentence, found.verdict.unknown)
    gathered.notes += found.notes
    return found


def read(run: RunDir, *, prefix: str, now: float) -> Recorded:
    record = Record(run, prefix)
    notes = list(record.notes)
    liveness = _liveness(record)
    seen = view(record.state, now, liveness)
    try:
        foreign = run.identity().foreign
    except RunDirError as error:
        notes.append(str(error))
        foreign = False
    seen = msgspec.structs.replace(seen, foreign=seen.foreign or foreign)
    # After another boot it lives nowhere: only of another machine or container nobody knows.
    elsewhere = "" if liveness.elsewhere == rundir.REBOOTED else liveness.elsewhere
    ends = _ends(record, seen, elsewhere)
    if len(record.state.journal.attempts) > MOST_ATTEMPTS:
        notes.append(
            f"{run.id}: only its newest {MOST_ATTEMPTS} attempts were looked at one by one"
        )
    alive = _leftovers(record, seen, liveness)
    verdict = Verdict()
    _summary(run, ends, seen, verdict)
    findings = [finding for end in ends for finding in record_ends.findings(end, verdict)]
    findings += record_findings.restarts(record, ends)
    findings += record_training.models(record, seen, verdict)
    findings += record_training.readers(record, seen, verdict)
    findings += record_training.losses(record, verdict)
    findings += record_training.stalls(record, verdict)
    findings += record_findings.leftovers(record, alive, verdict)
    findings += record_findings.now(record, seen, elsewhere, verdict)
    findings += record_training.checkpoints(record, seen, verdict)
    findings += record_findings.watched(record, seen, verdict)
    covered = {finding.id for finding in findings}
    findings += record_findings.alerts(record, ends, seen, covered)
    return Recorded(
        run=run,
        record=record,
        seen=seen,
        findings=severest_first(findings),
        verdict=verdict,
        notes=notes,
        processes=list(_processes(record)),
    )


def about(found: Recorded) -> str:
    """Which run, and how it is."""
    seen = found.seen
    words = "watched, not started by bitwatch; " if seen.foreign else ""
    began = f", since {moment(seen.started)}" if seen.started else ""
    return f"run {found.run.id} ({words}{seen.state}{began})"


def _liveness(record: Record) -> Liveness:
    follower = Follower(record.run, glance=True)
    follower.state = record.state
    return follower.liveness()


def _ends(record: Record, seen: View, elsewhere: str) -> list[Ended]:
    """Of the newest attempts, one by one; one that goes on has no end yet, and says so."""
    numbers = sorted({*record.state.journal.attempts, *(n for n, _ in record.state.ranks)})
    newest = numbers[-MOST_ATTEMPTS:]
    return [Ended(record, number, seen, elsewhere) for number in newest]


def _leftovers(record: Record, seen: View, liveness: Liveness) -> Sequence[events.ProcessStart]:
    """By the record's own numbers: they are text, and may be any."""
    journal = record.state.journal
    led = liveness.agent and journal.run is not None and journal.run.foreign
    if liveness.elsewhere or led:  # what a training does that we only watch is no leftover
        return ()
    over = {start.attempt for start in journal.processes.values()}
    if seen.state not in END_STATES:
        over -= {seen.attempt}
    return leftovers.find(record.state, over)


def _summary(run: RunDir, ends: Sequence[Ended], seen: View, verdict: Verdict) -> None:
    of = f" of {seen.steps:,}" if seen.steps else ""
    if seen.state in ("done", "stopped"):
        cause = f" ({seen.cause})" if seen.cause else ""
        verdict.shown.append(f"{run.id} ended: {seen.state} at step {seen.step:,}{of}{cause}")
    if not ends:
        verdict.shown.append(f"no attempt of {run.id} ever began")


def _processes(record: Record) -> Iterator[Named]:
    """When each began: the monotonic clock of its record against its start in ticks since boot."""
    for start in list(record.state.journal.processes.values())[-MOST_PROCESSES:]:
        began = start.t - max(0.0, start.m - start.starttime / TICKS_PER_S)
        yield Named(start.pid, sane(min(began, start.t)), start.role, start.rank, start.attempt)


def of_folder(path: str) -> RunDir | None:
    """The run that a folder is; None of any other."""
    run = RunDir(Path(path).absolute())
    return run if run.identity_file.is_file() else None
