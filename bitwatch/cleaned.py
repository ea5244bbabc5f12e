"""`bitwatch clean`: what was found, what is asked, and what became of it, as lines or JSON."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import click
import msgspec

from bitwatch import config as configuration
from bitwatch import screen, utf8
from bitwatch.record.rundir import RunDir
from bitwatch.strict import ConfigError
from bitwatch.supervise.clean import Cleaner
from bitwatch.supervise.result import Listed, Result
from bitwatch.text import counted, duration, literal

GRACE_S = 3.0
SURVIVED = 1
COMMAND_WIDTH = 60
SECTIONS = (
    ("own", "ours, and over: proven, --yes ends them"),
    ("confirm", "ours, but perhaps somebody's: --pid PID ends one"),
    ("suspect", "perhaps leftovers, nothing proves whose: --pid PID ends one"),
    ("defunct", "dead already: only their parents can take them away"),
)


def clean(
    home: Path,
    run: RunDir | None,
    pids: Collection[int],
    *,
    act: bool,
    look_only: bool,
    as_json: bool,
) -> int:
    """The exit code: 1 when something that was to be ended is still there."""
    cleaner = Cleaner(home, run)
    found = cleaner.look()
    asked = not look_only and (act or bool(pids))
    if not as_json:
        for line in before(found):
            click.echo(line)
        if (question := _question(found)) and not asked and not look_only and screen.is_terminal():
            asked = act = click.confirm(question)
    if asked:
        by = f"bitwatch clean (pid {os.getpid()})"
        found = cleaner.clean(found, pids, by, _grace_s(run), all_own=act)
    if as_json:
        click.echo(msgspec.json.format(utf8.to_json(found)).decode())
    elif asked:
        for line in after(found):
            click.echo(line)
    return SURVIVED if found.survivors else 0


def _question(found: Result) -> str:
    """What --yes would do; empty when that is nothing."""
    parts = []
    if found.own:
        parts.append(f"end {counted(len(found.own), 'process')}")
    if found.unclosed:
        parts.append(f"close the record of {counted(len(found.unclosed), 'run')}")
    if found.orphaned:
        parts.append(f"give {counted(len(found.orphaned), 'run')} a supervisor again")
    words = " and ".join(parts)
    return f"{words[:1].upper()}{words[1:]}?" if words else ""


def before(found: Result) -> Iterator[str]:
    if not any(getattr(found, name) for name, _ in SECTIONS):
        yield "nothing is left of ended runs"
    for id_ in found.unclosed:
        yield f"{literal(id_)}: nothing of it lives, and its record is not closed: --yes closes it"
    for id_ in found.orphaned:
        yield f"{literal(id_)}: goes on without its supervisor: --yes starts a new one"
    for name, words in SECTIONS:
        listed = getattr(found, name)
        if listed:
            yield f"{counted(len(listed), 'process')} {words}"
            for one in listed:
                yield f"  {_line(one)}"
                yield f"          {literal(one.why)}"


def after(found: Result) -> Iterator[str]:
    yield f"ended {counted(len(found.killed), 'process')}"
    for one in found.killed:
        yield f"  {_line(one)}  {one.ended}"
    if found.shared_memory:
        yield f"unlinked {counted(len(found.shared_memory), 'file')} of shared memory"
    if found.freed_gpu_mib is not None:
        yield f"{found.freed_gpu_mib:,.0f} MiB of GPU memory came back"
    for line in (*found.closed, *found.taken_over):
        yield literal(line)
    for one in found.survivors:
        yield f"! still there  {_line(one)}  {one.ended}"
    for note in found.notes:
        yield f"! {literal(note)}"


def _line(one: Listed) -> str:
    rank = "" if one.rank is None else f" of rank {one.rank}"
    of = f" {one.run} attempt {one.attempt}" if one.run else ""
    command = literal(one.command)
    if len(command) > COMMAND_WIDTH:
        command = f"{command[: COMMAND_WIDTH - 1]}…"
    return (
        f"{one.pid:>8} {one.role or 'process'}{rank}{literal(of)} · {one.state} · "
        f"{duration(one.age_s)} · {one.rss_mib:,.0f} MiB · {command}"
    )


def _grace_s(run: RunDir | None) -> float:
    """As the run's own configuration says."""
    attempts = run.attempts() if run is not None else []
    if run is None or not attempts:
        return GRACE_S
    try:
        return configuration.load(run.config(attempts[-1]), lenient=True).watch.leftover_grace_s
    except ConfigError:
        return GRACE_S
