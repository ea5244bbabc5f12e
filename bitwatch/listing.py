"""All runs of this user as rows: what `bitwatch ls` shows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import msgspec

from bitwatch import utf8
from bitwatch.record import rundir, unwritten
from bitwatch.record.events import State
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import view
from bitwatch.text import duration, literal, number

HEADINGS = ("run", "state", "step", "loss", "parameters", "updated", "note")
WATCHED = "watched, not started by bitwatch"
LEFT = {"run", "state", "note"}


class Row(msgspec.Struct, kw_only=True):
    run: str
    name: str
    state: State
    attempt: int
    step: int
    steps: int
    loss: float | None
    parameters: int | None
    started: float | None
    updated: float | None
    host: str
    dir: str
    supervisor: Literal["alive", "gone", "ended"]
    note: str


def rows(home: Path) -> list[Row]:
    """Newest first. A directory that cannot be understood is listed with a note."""
    return [row(run) for run in rundir.list_runs(home)]


def row(run: RunDir) -> Row:
    follower = Follower(run, glance=True)
    follower.poll()
    seen = view(follower.state, time.time(), follower.liveness())
    note, host, created = seen.note, "", seen.started
    lacking = unwritten.sentence(seen.unwritten, seen.ranks, seen.state)
    if seen.foreign:
        note = "; ".join(part for part in (WATCHED, note, seen.cause) if part)
    name = seen.name
    try:
        identity = run.identity()
        host, created, name = identity.host, created or identity.created, identity.name
    except rundir.RunDirError as error:
        note = str(error)
    return Row(
        run=run.id,
        name=name,
        state=seen.state,
        attempt=seen.attempt,
        step=seen.step,
        steps=seen.steps,
        loss=seen.last.loss if seen.last else None,
        parameters=seen.built,
        started=created,
        updated=seen.updated,
        host=host,
        dir=str(run.path),
        supervisor=seen.supervisor,
        note=note or "; ".join(part for part in (seen.cause, lacking) if part),
    )


def to_json(found: list[Row]) -> bytes:
    return msgspec.json.format(utf8.to_json(found)) + b"\n"


def table(found: list[Row]) -> str:
    if not found:
        return "no runs yet; `bitwatch run` starts the demo\n"
    now = time.time()
    lines = [HEADINGS, *(_cells(one, now) for one in found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    text = ""
    for line in lines:
        cells = [
            cell.ljust(width) if heading in LEFT else cell.rjust(width)
            for heading, cell, width in zip(HEADINGS, line, widths, strict=True)
        ]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def _step(one: Row) -> str:
    """Of how many, where that is known: the log of a watched training may not say it."""
    if one.steps:
        return f"{one.step:,}/{one.steps:,}"
    return f"{one.step:,}" if one.step else "-"


def _cells(one: Row, now: float) -> tuple[str, ...]:
    return (
        literal(one.run),
        one.state,
        _step(one),
        number(one.loss, 4) if one.loss is not None else "-",
        f"{one.parameters:,}" if one.parameters else "-",
        f"{duration(max(0.0, now - one.updated))} ago" if one.updated else "-",
        literal(one.note),
    )
