"""Listings of processes as text: what `ps`, in any of its shapes, has left in a file.

With a heading the columns are read by their names; without one a row is tried against the shapes
that people type. A line that is no row ("... hundreds more") is prose, and no process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from bitwatch.attach.said import Line
from bitwatch.report import starts
from bitwatch.report.facts import ListingSeen, ProcessSeen
from bitwatch.report.starts import ELAPSED, START, Around, Start
from bitwatch.sense import roles

PIDS = 1 << 22  # the largest that Linux gives out
KEPT_PROSE = 20

STARTS = {"STARTED", "START", "STIME", "LSTART"}
ELAPSEDS = {"ELAPSED", "ETIME"}
COMMANDS = {"COMMAND", "CMD", "ARGS"}
HEADINGS = STARTS | ELAPSEDS | COMMANDS | {
    "PID", "PPID", "USER", "UID", "STAT", "S", "TTY", "TT", "TIME", "%CPU", "%MEM", "CPU",
    "VSZ", "RSS", "SZ", "C", "NI", "PRI", "F", "WCHAN", "PGID", "SID", "PGRP", "SESS", "NLWP",
    "LWP", "ADDR", "ETIMES", "RUSER", "EUSER", "GROUP", "PSR", "CLS", "CP",
}  # fmt: skip

_STATE = r"[DRSTtZIWX][<NLsl+]*"
_NUMBER = r"\d+(?:\.\d+)?"
_CPU = r"(?:\d+-)?\d+:\d{2}(?::\d{2})?"
SHAPES = tuple(
    re.compile(shape)
    for shape in (
        # ps aux
        rf"\s*(?P<user>\S+)\s+(?P<pid>\d+)\s+{_NUMBER}\s+{_NUMBER}\s+\d+\s+\d+\s+\S+\s+"
        rf"(?P<state>{_STATE})\s+(?P<start>\S+(?: \d+)?)\s+{_CPU}\s+(?P<command>\S.*)",
        # ps -ef
        rf"\s*(?P<user>\S+)\s+(?P<pid>\d+)\s+(?P<parent>\d+)\s+\d+\s+(?P<start>\S+(?: \d+)?)\s+"
        rf"\S+\s+{_CPU}\s+(?P<command>\S.*)",
        # ps -eo pid,[ppid,][user,][stat,]lstart,args
        rf"\s*(?P<pid>\d+)\s+(?:(?P<parent>\d+)\s+)?(?:(?P<user>[a-z_][\w.+-]*)\s+)?"
        rf"(?:(?P<state>{_STATE})\s+)?"
        rf"(?P<start>(?:{'|'.join(starts.DAYS)})\b.*?\d:\d{{2}}(?::\d{{2}})?(?:\s+\d{{4}}(?=\s))?"
        r"|\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2})\s+(?P<command>\S.*)",
        # ps -o pid,ppid,stat,etime,cmd
        rf"\s*(?P<pid>\d+)\s+(?:(?P<parent>\d+)\s+)?(?:(?P<user>[a-z_][\w.+-]*)\s+)?"
        rf"(?P<state>{_STATE})\s+(?P<elapsed>{ELAPSED.pattern})\s+(?P<command>\S.*)",
        # ps -o pid,etime,args
        rf"\s*(?P<pid>\d+)\s+(?:(?P<parent>\d+)\s+)?(?P<elapsed>{ELAPSED.pattern})\s+"
        r"(?P<command>\S.*)",
        # ps -e: terminal and CPU time, no start
        rf"\s*(?P<pid>\d+)\s+(?:\?|(?:pts/|tty)\w+)\s+{_CPU}\s+(?P<command>\S.*)",
        # pgrep -af: only what Python runs, or any text with a number in front would be one
        r"\s*(?P<pid>\d+)\s+(?P<command>(?:\S*/)?(?:python|torchrun)\S*(?:\s.*)?)",
    )
)


class Row(NamedTuple):
    pid: int
    command: str
    start: Start
    parent: int | None = None
    state: str = ""
    user: str = ""


def is_heading(text: str) -> bool:
    words = text.split()
    return len(words) > 1 and "PID" in words and set(words) <= HEADINGS


def looks_like_one(lines: Iterable[Line]) -> bool:
    """Whether these first lines of a file are a listing: a heading, or mostly rows."""
    there = [line.text for line in lines if line.text.strip()]
    if any(is_heading(text) for text in there):
        return True
    rows = sum(1 for text in there if any(shape.fullmatch(text) for shape in SHAPES))
    return rows > 0 and 2 * rows >= len(there)


def read(lines: Iterable[Line], path: str, around: Around) -> tuple[ListingSeen, list[ProcessSeen]]:
    listing = ListingSeen(path=path, taken=None if around.copied else around.taken)
    heading: list[str] | None = None
    found: list[ProcessSeen] = []
    for line in lines:
        if not line.text.strip():
            continue
        if is_heading(line.text):
            heading = line.text.split()
            continue
        row = _by_heading(line.text, heading, around) if heading else None
        row = row or _by_shape(line.text, around)
        if row is None or not 0 < row.pid <= PIDS:
            if len(listing.prose) < KEPT_PROSE:
                listing.prose.append(line)
            continue
        found.append(_process(row, line, path))
    listing.processes = len(found)
    listing.notes = list(_notes(found, path, around))
    return listing, _with_roles(found)


def _by_heading(text: str, heading: list[str], around: Around) -> Row | None:
    """Columns before the command from the left, those behind it from the right."""
    values: dict[str, str] = {}
    start = Start(None)
    rest = text.strip()
    at = next((i for i, name in enumerate(heading) if name in COMMANDS), len(heading) - 1)
    for name in heading[:at]:
        if name in STARTS:
            match = START.match(rest)
            if match is None:
                return None
            start = starts.of_match(match, around)
        elif name in ELAPSEDS:
            match = ELAPSED.match(rest)
            if match is None:
                return None
            start = starts.ago(match, around)
        else:
            match = re.match(r"\S+", rest)
            if match is None:
                return None
            values[name] = match[0]
        rest = rest[match.end() :].lstrip()
    for name in reversed(heading[at + 1 :]):
        if name in STARTS:
            matches = [m for m in START.finditer(rest) if m.end() == len(rest)]
            if not matches:
                return None
            start, rest = starts.of_match(matches[0], around), rest[: matches[0].start()].rstrip()
        else:
            rest, _, values[name] = rest.rpartition(" ")
            rest = rest.rstrip()
    if not rest or not values.get("PID", "").isdecimal():
        return None
    parent = values.get("PPID", "")
    return Row(
        pid=int(values["PID"]),
        command=rest,
        start=start,
        parent=int(parent) if parent.isdecimal() else None,
        state=values.get("STAT", values.get("S", "")),
        user=values.get("USER", values.get("UID", "")),
    )


def _by_shape(text: str, around: Around) -> Row | None:
    for shape in SHAPES:
        found = shape.fullmatch(text)
        if found is None:
            continue
        parts = found.groupdict()
        start = Start(None)
        if parts.get("start"):
            match = START.fullmatch(parts["start"])
            if match is None:
                continue
            start = starts.of_match(match, around)
        elif parts.get("elapsed"):
            match = ELAPSED.match(parts["elapsed"])
            start = starts.ago(match, around) if match else start
        parent = parts.get("parent")
        return Row(
            pid=int(parts["pid"]),
            command=parts["command"].strip(),
            start=start,
            parent=int(parent) if parent else None,
            state=parts.get("state") or "",
            user=parts.get("user") or "",
        )
    return None


def _process(row: Row, line: Line, path: str) -> ProcessSeen:
    return ProcessSeen(
        pid=row.pid,
        started=row.start.t,
        within_s=row.start.within_s,
        command=row.command,
        source=path,
        line=line.number or None,
        text=line.text.strip(),
        parent=row.parent,
        state=row.state,
        user=row.user,
        role=roles.role_of_command(row.command),
        inferred=row.start.inferred,
    )


def _with_roles(found: list[ProcessSeen]) -> list[ProcessSeen]:
    """A rank is what torchrun has started in Python, or what has workers of its own."""
    agents = {process.pid for process in found if process.role == "agent"}
    parents = {process.parent for process in found if process.role == "worker"}
    return [
        msgspec.structs.replace(process, role="rank")
        if process.role == "other"
        and (process.parent in agents or process.pid in parents)
        and roles.PYTHON.match(process.command)
        else process
        for process in found
    ]


def _notes(found: list[ProcessSeen], path: str, around: Around) -> Iterator[str]:
    """What was inferred, and what could not be: each once, whatever the number of rows."""
    if around.copied and any(process.inferred for process in found):
        yield f"{path}: the file's time is far from that of the logs, so it is not the listing's"
    inferred: dict[str, list[ProcessSeen]] = {}
    for process in found:
        if process.inferred:
            inferred.setdefault(process.inferred, []).append(process)
    for why, those in inferred.items():
        first = those[0]
        more = f" and {len(those) - 1} more" if len(those) > 1 else ""
        yield f"{path}: start of process {first.pid}{more}: {why}"
