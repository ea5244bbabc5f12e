"""How a report says times, numbers of things and lists of processes."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from bitwatch.report.facts import Attempt, ProcessSeen
from bitwatch.report.standard_model import number
from bitwatch.text import duration, literal

NAMED = 6  # processes in one sentence


def moment(t: float | None) -> str:
    """2025-08-24 07:14:00, in local time as loggers write it."""
    if t is None:
        return "an unknown time"
    try:
        return datetime.datetime.fromtimestamp(t).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "an impossible time"


def pids(processes: Sequence[ProcessSeen]) -> str:
    """process 13803; processes 13803 and 13935; processes 1, 2, 3 and 40 more"""
    numbers = [str(process.pid) for process in processes[:NAMED]]
    if len(processes) > NAMED:
        return f"processes {', '.join(numbers)} and {len(processes) - NAMED:,} more"
    if len(numbers) == 1:
        return f"process {numbers[0]}"
    return f"processes {', '.join(numbers[:-1])} and {numbers[-1]}"


def listed(words: Sequence[str]) -> str:
    """a; a and b; a, b and c"""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def wanted(attempt: Attempt) -> str:
    """What an attempt was to train, in a few words."""
    count = number(attempt.target)
    if count is not None:
        return f"{count:,} parameters"
    if attempt.built and (built := number(attempt.built[0])) is not None:
        return f"{built:,} parameters, as counted"
    return "no parameters named"


def called(attempt: Attempt, of: int = 2) -> str:
    return f"attempt {attempt.number}" if of > 1 else "the attempt"


def later(process: ProcessSeen, t: float) -> str:
    """How long after `t` a process began: 1.3 s after, as exactly as its start is known. One
    that is shown to the minute began within it, before or after."""
    if process.started is None:
        return "at an unknown time"
    seconds = process.started - t
    if seconds + process.within_s < 0.0:
        return f"{duration(-seconds)} before"
    if process.within_s > 1.0 and seconds < 0.0:
        return f"within {duration(process.within_s)} of"
    if process.within_s > 1.0:
        return f"within {duration(seconds + process.within_s)} after"
    return f"{duration(max(0.0, seconds))} after"


def span(processes: Sequence[ProcessSeen], t: float) -> str:
    """1.3 s after; 1.3 s to 2.3 s after: of processes in the order of their starts."""
    first, last = later(processes[0], t), later(processes[-1], t)
    if first == last:
        return first
    if first.endswith(" after") and last.endswith(" after"):
        return f"{first.removesuffix(' after')} to {last}"
    return f"{first} and {last}"


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def quoted(text: str, longest: int = 200) -> str:
    shown = literal(text.strip())
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."
