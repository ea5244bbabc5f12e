"""The moments of all evidence in one order, each with where it can be read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch.attach.said import Said
from bitwatch.report.facts import Gathered, LogSeen, ProcessSeen, StepRun
from bitwatch.report.model import Entry
from bitwatch.report.words import moment, quoted

MOST_OF_LOG = 120  # entries of one log
MOST_PROCESSES = 60
MOST = 400
LONGEST = 300  # characters of an entry

Placed = tuple[float, str, int, Entry]


def make(gathered: Gathered) -> list[Entry]:
    """By time; what has none stands behind what was read before it."""
    placed: list[Placed] = []
    for entry in gathered.timeline:
        placed.append((entry.t or 0.0, entry.source, entry.line or 0, entry))
    for log in gathered.logs:
        placed += _of_log(log)
    placed += _of_processes(gathered.processes)
    for listing in gathered.listings:
        if listing.taken is not None:
            text = f"this listing was written: {listing.processes:,} processes"
            entry = Entry(t=listing.taken, source=listing.path, text=text)
            placed.append((listing.taken, listing.path, 0, entry))
    placed.sort(key=lambda one: one[:3])
    entries = [entry for *_, entry in placed]
    return _shortened(entries, MOST, "entries")


def _of_log(log: LogSeen) -> list[Placed]:
    entries: list[Entry] = []
    seen: set[tuple[str, str]] = set()
    for said in log.said:
        if isinstance(said, StepRun):
            entries += _steps(said)
            continue
        key = (said.what, _without_time(said))
        if said.what in ("warning", "error", "evaluation") and key in seen:
            continue  # once each
        seen.add(key)
        line = said.line
        text = quoted(_without_time(said), LONGEST)
        entries.append(Entry(t=line.t, source=log.path, line=line.number or None, text=text))
    if log.last is not None and (not entries or entries[-1].line != log.last.number):
        line, text = log.last, quoted(log.last.text, LONGEST)
        last = Entry(t=line.t, source=log.path, line=line.number or None, text=f"last line: {text}")
        entries.append(last)
    placed: list[Placed] = []
    t = log.begins if log.begins is not None else log.modified or 0.0
    for entry in _shortened(entries, MOST_OF_LOG, "entries of this log"):
        t = entry.t if entry.t is not None else t
        placed.append((t, log.path, entry.line or 0, entry))
    return placed


def _steps(run: StepRun) -> Iterator[Entry]:
    """The first and the last of a series, and not those between."""
    for said in dict.fromkeys((run.first.line, run.last.line)):
        of = "" if run.count == 1 else f" (of {run.count:,} lines of steps in a row)"
        text = f"{quoted(said.text, LONGEST)}{of if said == run.first.line else ''}"
        yield Entry(t=said.t, source=said.source, line=said.number or None, text=text)


def _of_processes(processes: Sequence[ProcessSeen]) -> Iterator[Placed]:
    """Those of a training, one by one; where they are very many, the rest as a number."""
    ours = [p for p in processes if p.role != "other" and p.started is not None]
    for process in ours[:MOST_PROCESSES]:
        assert process.started is not None
        source = f"process {process.pid}"
        where = f" ({process.source}{f', line {process.line}' if process.line else ''})"
        text = f"started: {quoted(process.command, 120)}{where}"
        entry = Entry(t=process.started, source=source, text=text)
        yield process.started, source, 0, entry
    if len(ours) > MOST_PROCESSES:
        first, last = ours[MOST_PROCESSES], ours[-1]
        assert first.started is not None
        text = f"{len(ours) - MOST_PROCESSES:,} more processes started until {moment(last.started)}"
        yield first.started, first.source, 0, Entry(t=first.started, source=first.source, text=text)


def _shortened(entries: list[Entry], most: int, noun: str) -> list[Entry]:
    """The first and the last of too many, with a word in between."""
    if len(entries) <= most:
        return entries
    half = most // 2
    out = entries[half : len(entries) - half]
    gap = Entry(t=out[0].t, source=out[0].source, text=f"{len(out):,} {noun} are left out here")
    return [*entries[:half], gap, *entries[-half:]]


def _without_time(said: Said) -> str:
    """The text of a line without the time that the timeline shows beside it."""
    if said.line.t is None:
        return said.line.text
    head, bracket, tail = said.line.text.partition("[")
    return f"[{tail}" if bracket and sum(c.isdigit() for c in head) >= 6 else said.line.text
