"""`bitwatch report` without a word: the machine as it is now. Its runs, whatever looks like a
training, what ended runs have left, who holds GPUs, and what may soon stand in the way.

Only looks: nothing is signalled, closed, taken over or deleted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bitwatch import listing
from bitwatch.listing import Row
from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES, View, view
from bitwatch.report import machine_findings, machine_room
from bitwatch.report.facts import Gathered
from bitwatch.report.model import Entry
from bitwatch.report.when import sane
from bitwatch.report.words import moment, sentence
from bitwatch.sense import once
from bitwatch.sense.log_files import Log, LogFinder
from bitwatch.sense.members import Member
from bitwatch.sense.training import Training, all_here
from bitwatch.sense.training_facts import TrainingFacts
from bitwatch.supervise.clean import Cleaner
from bitwatch.supervise.result import Listed, Result
from bitwatch.text import counted

RUNS = 20  # the newest, in the timeline
LIVE = 10  # runs that are looked at more closely


class Live(msgspec.Struct, kw_only=True):
    """A run of this home that has not ended, and its picture of now."""

    run: RunDir
    seen: View
    pids: frozenset[int]  # that its record names


class Here(msgspec.Struct, kw_only=True):
    """What there is. `logs`: of what is left of ended runs, by pid."""

    host: str
    rows: list[Row]
    live: list[Live]
    found: Result
    trainings: list[Training]
    logs: dict[int, tuple[Log, ...]]
    gpus: events.Gpus | None
    now: float


def add(gathered: Gathered, home: Path) -> None:
    """Looks at this machine, and brings what it finds into the evidence of a report."""
    here = look(home)
    gathered.about.append(f"this machine ({here.host}), at {moment(here.now)}")
    gathered.timeline += timeline(here)
    gathered.findings += machine_findings.findings(here)
    gathered.findings += machine_room.findings(home, bool(here.live or here.trainings))
    _verdict(gathered, here)
    if here.gpus is None:
        gathered.notes.append("no NVIDIA driver answers here: who holds GPUs was not looked at")


def look(home: Path) -> Here:
    rows = listing.rows(home)
    now = time.time()
    live = [_live(home / row.run, now) for row in rows if row.state not in END_STATES][:LIVE]
    found = Cleaner(home).look()
    facts = TrainingFacts()
    trainings = all_here(facts)
    return Here(
        host=os.uname().nodename,
        rows=rows,
        live=live,
        found=found,
        trainings=trainings,
        logs=_logs([*found.own, *found.confirm, *found.suspect], facts),
        gpus=once.gpus(),
        now=now,
    )


def _live(path: Path, now: float) -> Live:
    run = RunDir(path)
    follower = Follower(run, glance=True)
    follower.poll()
    pids = frozenset(pid for pid, _ in follower.state.journal.processes)
    return Live(run=run, seen=view(follower.state, now, follower.liveness()), pids=pids)


def _logs(listed: Sequence[Listed], facts: TrainingFacts) -> dict[int, tuple[Log, ...]]:
    table = facts.look(everything=True)
    finder = LogFinder(table)
    found = {}
    for one in listed:
        stat = table.get(one.pid)
        if stat is not None and stat.starttime == one.starttime:
            logs = finder.logs(stat, [Member(stat, "rank")])
            if logs:
                found[one.pid] = logs
    return found


def timeline(here: Here) -> list[Entry]:
    entries = []
    for row in here.rows[:RUNS]:
        source = f"run {row.run}"
        if sane(row.started):
            entries.append(Entry(t=row.started, source=source, text=f"run {row.name} was made"))
        at = f" at step {row.step:,}" if row.step else ""
        if row.state in END_STATES:
            note = f": {row.note}" if row.note else ""
            text = f"its newest attempt ended, {row.state}{at}{note}"
        else:
            text = f"its newest word; it is {row.state}{at}"
        if sane(row.updated):
            entries.append(Entry(t=row.updated, source=source, text=text))
    for training in here.trainings:
        pid, _ = training.root
        text = f"a training began that bitwatch did not start: {training.command}"
        entries.append(Entry(t=training.started, source=f"process {pid}", text=text))
    for words, listed in (
        ("of an ended attempt", here.found.own),
        ("perhaps of an ended attempt", here.found.confirm),
        ("looks like a leftover", here.found.suspect),
    ):
        for one in listed[:RUNS]:
            text = f"{one.role or 'process'} began, which lives now ({words}): {one.command}"
            t = here.now - one.age_s
            entries.append(Entry(t=t, source=f"process {one.pid}", text=text))
    return sorted(entries, key=lambda entry: entry.t or 0.0)


def _verdict(gathered: Gathered, here: Here) -> None:
    found = here.found
    live = sum(row.state not in END_STATES for row in here.rows)
    gathered.shown.append(
        f"{counted(len(here.rows), 'run')} on record, {live} of them live" if here.rows
        else "no run is on record here"
    )  # fmt: skip
    if here.trainings:
        many = counted(len(here.trainings), "training")
        gathered.shown.append(f"{many} here that bitwatch did not start")
    left = f"{counted(len(found.own), 'process')} of ended runs, by proof of their records"
    gathered.shown.append(left if found.own else "nothing is left of ended runs of this home")
    if found.suspect:
        many = counted(len(found.suspect), "process")
        gathered.likely.append(
            f"{many} that look like it were left by a training; whose, nothing proves"
        )
    gathered.unknown.append("what other users, and other containers, run on this machine")
    for said in (gathered.shown, gathered.likely, gathered.unknown):
        said[:] = map(sentence, said)
