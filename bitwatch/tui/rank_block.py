"""Ranks without GPUs, as blocks: processor time and memory, of all of the run and of each. Pure."""

from __future__ import annotations

import math
from functools import partial

from bitwatch.record.gpu_history import ALL, Recent, of_rank
from bitwatch.record.view import ProcessRow, View
from bitwatch.text import counted
from bitwatch.tui.blocks import Block, Fact
from bitwatch.tui.draw import Line, bar, fit
from bitwatch.tui.gpu_block import Scale, Span
from bitwatch.tui.gpu_facts import GIB, ranks_of

NA = "n/a"
CORE = 100.0  # percent


def blocks(view: View, span: Span) -> list[Block]:
    """The run first, and of it alone the whole: the aggregates of the journal name no rank."""
    ranks = ranks_of(view)
    recents = [view.gpu_history.recent.get(of_rank(row.rank or 0), Recent()) for row in ranks]
    top_cpu = _top([*(row.cpu_percent for row in ranks), *_most(recents, "busy")], CORE)
    top_mib = _top([*(row.rss_mib for row in ranks), *_most(recents, "memory_mib")], 1.0)
    found = [_of_run(view, span)]
    lately = Span(view.gpu_history, span.now, whole=False)
    for row, recent in zip(ranks, recents, strict=True):
        workers = [one for one in view.processes if one.role == "worker" and one.rank == row.rank]
        graphs = lately.graphs(recent, None, _cpu(top_cpu), _memory(top_mib))
        head = Line(f"rank {row.rank or 0}", "strong text").add(f"  pid {row.pid}", "quiet")
        head.add("  last 10 minutes" if span.whole else "", "quiet")
        own = [
            _cpu_fact(row.cpu_percent, top_cpu),
            _memory_fact(row.rss_mib, _most([recent], "memory_mib")[0]),
        ]
        found.append(Block(head, own, [_group(counted(len(workers), "worker"), workers)], graphs))
    return found


def _of_run(view: View, span: Span) -> Block:
    history = view.gpu_history
    recent, whole = history.recent.get("", Recent()), history.whole.get(ALL)
    cpu = sum(row.cpu_percent or 0.0 for row in view.processes)
    mib = sum(row.rss_mib or 0.0 for row in view.processes)
    top_cpu, top_mib = _top([cpu, *recent.busy], CORE), _top([mib, *recent.memory_mib], 1.0)
    if span.whole and whole:
        top_cpu, top_mib = _top(whole.busy.high, top_cpu), _top(whole.memory_mib.high, top_mib)
    most_mib = max([v for v in recent.memory_mib if v is not None], default=None)
    if span.whole and whole:
        most_mib = max(whole.memory_mib.high, default=most_mib)
    facts = [_cpu_fact(cpu, top_cpu), _memory_fact(mib, most_mib)]
    ranks = ranks_of(view)
    workers = [row for row in view.processes if row.role == "worker"]
    others = [row for row in view.processes if row.role not in ("rank", "worker")]
    groups = [
        _group(counted(len(ranks), "rank"), ranks),
        _group(counted(len(workers), "worker"), workers),
        _group(f"{len(others)} other", others),
    ]
    head = Line("all of the run", "strong text").add(f"  {len(view.processes)} processes", "quiet")
    return Block(head, facts, groups, span.graphs(recent, whole, _cpu(top_cpu), _memory(top_mib)))


def _cpu_fact(percent: float | None, top: float) -> Fact:
    words = Line(fit(NA if percent is None else f"{percent:.0f}", 6, right=True)).add(" %", "quiet")
    return Fact("cpu", [words], partial(bar, None if percent is None else percent / top))


def _memory_fact(mib: float | None, most_mib: float | None) -> Fact:
    """How much the machine has is not in the record: beside the most that it was."""
    now = Line(fit(NA if mib is None else f"{mib / GIB:.2f}", 6, right=True)).add(" GiB", "quiet")
    most = Line("most ", "quiet").add(NA if most_mib is None else f"{most_mib / GIB:.2f}", "quiet")
    return Fact("memory", [now, most.add(" GiB", "quiet")])


def _group(name: str, rows: list[ProcessRow]) -> Fact:
    cpu = Line(fit(f"{sum(row.cpu_percent or 0.0 for row in rows):.0f}", 6, right=True))
    memory = Line(fit(f"{sum(row.rss_mib or 0.0 for row in rows) / GIB:.2f}", 6, right=True))
    return Fact(name, [cpu.add(" % cpu", "quiet"), memory.add(" GiB", "quiet")])


def _cpu(top: float) -> Scale:
    return Scale("cpu", f"{top:.0f} %", top)


def _memory(top_mib: float) -> Scale:
    return Scale("memory", f"{top_mib / GIB:.1f} GiB", top_mib)


def _most(recents: list[Recent], field: str) -> list[float | None]:
    return [max((v for v in getattr(one, field) if v is not None), default=None) for one in recents]


def _top(values: list[float | None] | list[float], least: float) -> float:
    """The most, up to a whole core or 100 MiB; a little above one is still that."""
    most = max((value for value in values if value is not None), default=0.0)
    return max(least, math.ceil(most / CORE - 0.15) * CORE)
