"""Who keeps a run that takes no step: the waits of all its ranks in one sentence. Pure.

A rank that waits in a collective waits for others, and is never named as the cause; unless all
do. No duration stands in a sentence: each change of it is a line in the journal. Of a run that
takes its steps a look is one instant: it says where the ranks are, and blames nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bitwatch.record import readers
from bitwatch.record.view import View
from bitwatch.record.waits import Wait
from bitwatch.text import clock, literal

# The kinds of wait for which nobody else of the run is the reason; then those that only look so.
HELD = ("ended", "stopped", "kernel", "data", "checkpoint", "prepare", "other")
AT_WORK = ("compile", "busy", "unknown")
AT_EASE = ("running",)  # states of a run that is not held up
ONE_INSTANT = "this was one instant of a run that is not known to stand still"
SHOWN = 3  # causes of different kinds in a sentence
SPAN = 3  # ranks in a row from which they are told as "0 to 3"
NAME_CHARACTERS = 120  # of a place


def culprits(waits: Sequence[Wait]) -> list[Wait]:
    """The ranks that the others wait for; none where all wait for each other, or all compute."""
    held = [wait for wait in waits if wait.kind in HELD]
    waiting = [wait for wait in waits if wait.kind == "collective"]
    if held or not waiting:
        return held
    compiles = [wait for wait in waits if wait.kind == "compile"]
    return compiles or [wait for wait in waits if wait.kind in AT_WORK]


def sentence(view: View, waits: Sequence[Wait], now: float) -> str:
    """Such as "rank 2 waits in DataLoader queue.get (worker 1 has been in one read of shard 3
    since 07:14:02); ranks 0, 1, 3 wait for it in all_reduce"."""
    if not waits:
        return ""
    causes = culprits(waits)
    if not causes:
        return _no_cause(view, waits)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for wait in causes:
        beside = worker_of(view, wait.rank, now) if wait.kind == "data" else ""
        groups.setdefault((wait.kind, _name(wait), beside), []).append(wait.rank)
    told = [
        f"{ranks(numbers)} {_does(kind, where, len(numbers))}{f' ({beside})' if beside else ''}"
        for (kind, where, beside), numbers in groups.items()
    ]
    if len(told) > SHOWN:
        told[SHOWN:] = [f"and {len(told) - SHOWN} more"]
    them = "it" if len(causes) == 1 else "them"
    named = {wait.rank for wait in causes}
    others = [wait for wait in waits if wait.kind == "collective" and wait.rank not in named]
    for where, numbers in _by_place(others).items():
        verb = "waits" if len(numbers) == 1 else "wait"
        told.append(f"{ranks(numbers)} {verb} for {them} in {where}")
    return "; ".join(told)


def worker_of(view: View, rank: int, now: float) -> str:
    """Which of a rank's readers keeps it, as far as their accounts say."""
    found = []
    for (of, worker), judged in readers.judged(view, now).items():
        if of != rank or judged.reader is None:
            continue
        who = f"worker {worker}" if view.workers else "its reader"
        since = f" since {clock(judged.since)}" if judged.since else ""
        halted = _letter(view, judged.reader.pid, judged.reader.starttime) in readers.HALTED
        shard = readers.shard_of(judged.reader) or "its text"
        if judged.state == "dead":
            found.append((0, f"{who} is dead"))
        elif halted:
            found.append((1, f"{who} is stopped by a signal"))
        elif judged.state == "retrying":
            found.append((2, f"{who} cannot reach its text and tries again"))
        elif judged.state == "stuck" or judged.reader.state == "reading":
            order = 3 if judged.state == "stuck" else 4
            found.append((order, f"{who} has been in one read of {shard}{since}"))
    return min(found, default=(0, ""))[1]


def _no_cause(view: View, waits: Sequence[Wait]) -> str:
    places = _by_place([wait for wait in waits if wait.kind == "collective"])
    if not places:
        unknown = [wait for wait in waits if wait.kind == "unknown"]
        at_work = [wait for wait in waits if wait.kind != "unknown"]
        are_all = len(waits) >= view.ranks and not (unknown and at_work)
        words = [_at_work(view, at_work, are_all)] if at_work else []
        words += [_unknown(unknown, are_all)] if unknown else []
        return "; ".join(words)
    told = "; ".join(
        f"{ranks(numbers)} wait{'s' if len(numbers) == 1 else ''} in {where}"
        for where, numbers in places.items()
    )
    if view.state in AT_EASE:
        return f"{told}; {ONE_INSTANT}"
    if len(places) == 1:
        return f"{told}: all wait for each other, and none of them is late"
    return f"{told}: they wait for each other in different places, and none of them can go on"


def _at_work(view: View, waits: Sequence[Wait], are_all: bool) -> str:
    names = {_name(wait) for wait in waits if wait.where}
    doing = f" at {names.pop()}" if len(names) == 1 else ""
    who = ranks([wait.rank for wait in waits])
    if are_all:
        who = "all ranks" if len(waits) > 1 else "the rank"
    are = "are" if len(waits) > 1 else "is"
    said = f"{who} {are} at work{doing}"
    if view.state in AT_EASE:
        return f"{said}; {ONE_INSTANT}"
    return f"{said}: a step that takes long, or never ends"


def _unknown(waits: Sequence[Wait], are_all: bool) -> str:
    calls = sorted({_name(wait) for wait in waits if wait.where})
    seen = f"; the kernel says {', '.join(calls[:SHOWN])}" if calls else ""
    who = ranks([wait.rank for wait in waits])
    if are_all:
        who = "the ranks" if len(waits) > 1 else "the rank"
    return f"what {who} wait{'s' if len(waits) == 1 else ''} for cannot be known{seen}"


def _by_place(waits: Iterable[Wait]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for wait in waits:
        places.setdefault(_name(wait) or "a collective", []).append(wait.rank)
    return places


def _does(kind: str, where: str, many: int) -> str:
    waits, are, have = ("waits", "is", "has") if many == 1 else ("wait", "are", "have")
    match kind:
        case "ended":
            return f"{have} {where or 'ended'}"
        case "stopped":
            return f"{are} stopped by a signal"
        case "kernel":
            return f"{waits} in the kernel (state D{', ' + where if where else ''})"
        case "checkpoint":
            return f"{are} at {where or 'a checkpoint'}"
        case "compile":
            return f"{'compiles' if many == 1 else 'compile'} ({where})"
        case "busy":
            return f"{are} still at work{f' at {where}' if where else ''}"
        case "unknown":
            return f"{waits}, nobody knows where{f' (wchan {where})' if where else ''}"
    return f"{waits} in {where or 'a place that nobody knows'}"


def _name(wait: Wait) -> str:
    return literal(wait.where)[:NAME_CHARACTERS]


def _letter(view: View, pid: int, starttime: int) -> str:
    return next((row.state for row in view.processes if row.key == (pid, starttime)), "")


def ranks(numbers: Sequence[int]) -> str:
    """rank 2; ranks 0, 1, 3; ranks 0 to 5, 7"""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    words: list[str] = []
    for span in spans:
        words += [f"{span[0]} to {span[-1]}"] if len(span) > SPAN else map(str, span)
    return f"rank{'' if len(numbers) == 1 else 's'} {', '.join(words)}"
