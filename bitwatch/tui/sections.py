"""The sections of the process panel: our run, what was left behind, what may be somebody's, what
only looks like a leftover, and who else holds a GPU. Pure."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from bitwatch.attach.others import Other
from bitwatch.record.events import ProcessStart
from bitwatch.record.view import ProcessRow, View
from bitwatch.text import counted
from bitwatch.tui import family, keys
from bitwatch.tui.draw import Line, plain
from bitwatch.tui.rows import LETTERS, SORT_KEYS, Key, Row, contains, rank_of

OURS = "ours"
GROUPS = ("leftover", "confirm", "suspect", "gpu")
TITLES = {OURS: "our run", "confirm": "ask first", "suspect": "suspects", "gpu": "other GPU users"}
TONES = {
    OURS: "strong accent",
    "leftover": "reverse strong bad",
    "confirm": "reverse strong warning",
    "suspect": "strong warning",
    "gpu": "strong text",
}
MEANS = {
    "confirm": "of a run, but perhaps somebody's",
    "suspect": "nothing proves that they are ours",
}
DATED = re.compile(r"^\d{4}-\d\d-\d\d-")  # as the name of a run begins


class Heading(NamedTuple):
    """One line over the rows of a section. `key` is what acts on all of them, with its label."""

    group: str
    title: str
    words: str
    key: tuple[str, str] | None = None

    def line(self, width: int) -> Line:
        line = Line(f" {self.title} ", TONES[self.group])
        line.add(f"  {self.words}", "text" if self.group == "leftover" else "quiet")
        if self.key is None:
            return line.cut(width)
        name, label = self.key
        return line.right(Line(f"[{name}]", "strong accent").add(f" {label}", "accent"), width)


class Section(NamedTuple):
    heading: Heading
    rows: list[Row]


def sections(
    view: View,
    others: Sequence[Row] = (),
    *,
    tree: bool = True,
    sort: str = "pid",
    backwards: bool = False,
    text: str = "",
    collapse: int = 0,
    now: float = 0.0,
    made: dict[Key, Row] | None = None,
) -> list[Section]:
    """Those that have rows, our run first; `others` come from `beside`, `made` of
    `family.make` where it was asked before."""
    made = family.make(of_it(view, others), now) if made is None else made
    ours = family.rows(
        view, tree=tree, sort=sort, backwards=backwards, text=text, collapse=collapse, made=made
    )
    found = [Section(_heading(OURS, view, ours), ours)] if ours else []
    for group in GROUPS:
        every = [row for row in others if row.group == group]
        rows = [row for row in every if contains(row, text)]
        if not tree:
            rows.sort(key=SORT_KEYS.get(sort, SORT_KEYS["pid"]), reverse=backwards)
        if rows:
            found.append(Section(_heading(group, view, rows, len(every)), rows))
    return found


def lines_of(found: Iterable[Section]) -> list[Heading | Row]:
    """One under the other. Our run alone needs no heading."""
    found = list(found)
    if [section.heading.group for section in found] == [OURS]:
        return list(found[0].rows)
    lines: list[Heading | Row] = []
    for section in found:
        lines.append(section.heading)
        lines += section.rows
    return lines


def counts(view: View, others: Sequence[Other]) -> dict[str, int]:
    """How many are beside the live attempt, by their group."""
    found = dict.fromkeys(GROUPS, 0)
    for other in others:
        found[other.group] += 1
    known = {other.key for other in others}
    found["leftover"] += sum((p.pid, p.starttime) not in known for p in view.leftovers)
    return found


def of_it(view: View, others: Sequence[Row]) -> View:
    """With the processes of the live attempt alone. What is known of one beside it is newer than
    a sample that still shows it in the attempt."""
    keys = {row.process.key for row in others}
    pids = {pid for pid, _ in keys}
    if not any(one.key in keys for one in view.processes if one.pid in pids):
        return view
    kept = [process for process in view.processes if process.key not in keys]
    return msgspec.structs.replace(view, processes=kept)


def beside(view: View, others: Sequence[Other], now: float) -> list[Row]:
    """The rows of what is not of the live attempt, with leftovers that only the journal knows:
    no scan has seen them yet."""
    known = {other.key for other in others}
    gpu = family.gpu_memory(view)
    rows = [
        _told(left, gpu.get(left.pid))
        for left in view.leftovers
        if (left.pid, left.starttime) not in known
    ]
    rows += [_row(other, view.run, gpu.get(other.pid), now) for other in others]
    rows.sort(key=lambda row: _place(row, view.run))
    return rows


def _place(row: Row, run: str) -> tuple[bool, str, int, int, int, float, int]:
    """This run's own before others', as they were launched; who holds most of a GPU first."""
    other, process = row.other, row.process
    of = (other.run or run) if other else run
    rank = -1 if process.rank is None else process.rank
    held = -(row.gpu_mib or 0.0)
    return of != run, of, row.attempt, rank_of(process.role), rank, held, process.pid


def _told(left: ProcessStart, gpu: float | None) -> Row:
    """Only the journal knows it: no sample says how much processor or memory it takes."""
    process = ProcessRow(
        pid=left.pid, starttime=left.starttime, ppid=left.ppid, role=left.role, state="",
        rank=left.rank, worker=left.worker, command=left.command, started=left.t,
    )  # fmt: skip
    words = _of_rank(family.role_words(process, None), process)
    return Row(
        process, words, "leftover", keys=(process.key,), gpu_mib=gpu,
        group="leftover", attempt=left.attempt,
    )  # fmt: skip


def _row(other: Other, run: str, gpu: float | None, now: float) -> Row:
    process = ProcessRow(
        pid=other.pid,
        starttime=other.starttime,
        ppid=other.ppid,
        role=other.role,
        state=other.state,
        rank=other.rank,
        worker=other.worker,
        cpu_percent=other.cpu_percent,
        rss_mib=other.rss_mib,
        command=other.command,
        started=None if other.age_s is None else now - other.age_s,
    )
    words = _of_rank(family.role_words(process, None), process)
    if other.role in ("", "other"):
        words = _program(other.command) or "process"
    if other.run and other.run != run:
        words += f" · {plain(DATED.sub('', other.run[:80]))}"
    return Row(
        process,
        words,
        _state(other),
        keys=(other.key,),
        gpu_mib=gpu if other.gpu_mib is None else other.gpu_mib,
        rss_mib=other.rss_mib,
        shared_mib=other.shared_mib,
        cpu_percent=other.cpu_percent,
        other=other,
        group=other.group,
        user="" if other.user == _my_name() else plain(other.user),
        attempt=other.attempt,
    )


def _of_rank(words: str, process: ProcessRow) -> str:
    """Outside of a tree a worker says whose it is."""
    if process.role == "worker" and process.rank is not None:
        return f"{words} of rank {process.rank}"
    return words


def _state(other: Other) -> str:
    """One word or two. What is dead says how much of it."""
    if other.state == "Z" and other.words:
        return plain(other.words.partition(",")[0])
    return LETTERS.get(other.state) or plain(other.words) or "unknown"


def _program(command: str) -> str:
    """The name of what runs, without its folder and its words."""
    first = command.split(" ", 1)[0]
    return plain(first.rsplit("/", 1)[-1][:64])


@lru_cache(maxsize=1)
def _my_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a number without a name, as in some containers
        return str(os.getuid())


def _heading(group: str, view: View, rows: list[Row], of: int = 0) -> Heading:
    """`of`: how many there are when a filter hides some; a key acts on those too."""
    number = sum(row.living if group == OURS else len(row.keys) for row in rows)
    words = counted(number, "process") if number >= of else f"{number} of {of} processes"
    if held := sum(row.gpu_mib or 0.0 for row in rows):
        words += f", {held / 1024:.1f} GiB of GPU memory"
    if group in MEANS:
        words += f" · {MEANS[group]}"
    if group == OURS and view.foreign:
        return Heading(group, "this training", words)
    title = TITLES.get(group) or _leftovers(view, rows)
    clean = keys.get("clean")
    acts = group == "leftover" and clean.name
    return Heading(group, title, words, (clean.name, clean.label) if acts else None)


def _leftovers(view: View, rows: list[Row]) -> str:
    """Of which attempts of this run, and of how many others."""
    mine, runs = set(), set()
    for row in rows:
        of = row.other.run if row.other else view.run
        if of in ("", view.run):
            mine.add(row.attempt)
        else:
            runs.add(of)
    attempts = f"attempt {', '.join(str(n) for n in sorted(mine))}" if mine else ""
    if not runs:
        return f"leftovers of {attempts}"
    if not mine:
        return f"leftovers of {_other_runs(len(runs))}"
    return f"leftovers of {attempts} and {_other_runs(len(runs))}"


def _other_runs(number: int) -> str:
    return "another run" if number == 1 else f"{number} other runs"
