"""Graphs of what was before: a filled curve of braille dots over time. Pure.

Dots stand for whole stretches of the clock, so that a graph moves by a dot at a time and what
is drawn already stays as it is.
"""

from __future__ import annotations

import bisect
import itertools
import math

from bitwatch.record.gpu_history import RECENT_S
from bitwatch.record.series import Series
from bitwatch.tui.braille import SPANS
from bitwatch.tui.curve import columns_of
from bitwatch.tui.draw import Line

BRIDGE = 2.5  # times the usual time between two samples: a longer gap is one
# Cells by how many dots are filled from below, 0 to 4 at the left and at the right.
FILLED = (
    " "
    + "".join(
        chr(0x2800 + sum(SPANS[side][4 - dots][3] for side, dots in enumerate((a, b)) if dots))
        for a in range(5)
        for b in range(5)
    )[1:]
)
# How many of a cell's dots are filled, by the dots above its lower end; below it none are.
WITHIN = [0, 1, 2, 3, *[4] * 400, *[0] * 400]
FIVES = [5 * dots for dots in WITHIN]
Values = list[float | None]


def recent_values(times: list[float], values: Values, now: float, count: int) -> Values:
    """Means of the last ten minutes in `count` dots, the newest at the right; None in a gap."""
    if not times or count <= 0:
        return [None] * max(0, count)
    step = RECENT_S / count
    end = math.ceil(now / step)
    found: Values = []
    gapless = None not in values
    begin = bisect.bisect_left(times, (end - count) * step)
    for dot in range(end - count + 1, end + 1):
        after = bisect.bisect_left(times, dot * step, begin)
        part = values[begin:after]
        if not gapless:
            part = [value for value in part if value is not None]
        found.append(sum(part) / len(part) if part else None)  # type: ignore[arg-type]
        begin = after
    apart = (times[-1] - times[0]) / max(1, len(times) - 1)
    return _bridged(found, apart / step)


def whole_values(series: Series, first: float, now: float, count: int) -> Values:
    """Means of the whole run in `count` dots."""
    if not series.starts or count <= 0:
        return [None] * max(0, count)
    first = min(int(first), series.starts[0])
    last = max(int(now), series.last[0] if series.last else 0, first + 1)
    columns = columns_of(series, first, last, count)
    apart = max(series.width, (series.starts[-1] - series.starts[0]) / len(series.starts))
    means: Values = [column.mean if column else None for column in columns]
    return _bridged(means, apart * count / (last - first))


def _bridged(values: Values, apart_dots: float) -> Values:
    """A value goes on until the next one, where that comes when it is due."""
    most = math.ceil(apart_dots * BRIDGE) if apart_dots > 0.5 else 1
    last: float | None = None
    since = 0
    for at, value in enumerate(values):
        if value is not None:
            last, since = value, 0
        elif last is not None and since < most:
            since += 1
            values[at] = last
    return values


def area(
    values: Values, top: float, width: int, height: int, role: str, mark: float | None = None
) -> list[Line]:
    """Lines of `width` cells for two values a cell, filled from below. The uppermost dots stay
    free: graphs stay apart. A known zero is a dot, what is not known is nothing. `mark` is a
    value with a quiet line of its own."""
    most = height * 4 - 1
    scale = most / top if top > 0 else 0.0
    levels = [
        0 if value is None or not scale else min(most, max(1, round(value * scale)))
        for value in values[: width * 2]
    ]
    levels += [0] * (width * 2 - len(levels))
    least, highest = min(levels, default=0), max(levels, default=0)
    pairs = list(zip(levels[::2], levels[1::2], strict=True))
    marked = -1
    if mark is not None and 0 < mark <= top:
        marked = height - 1 - (max(1, round(mark * scale)) - 1) // 4
    lines = []
    for row in range(height):
        base = (height - 1 - row) * 4  # dots below this row
        if base >= highest:
            text = " " * width
        elif base + 4 <= least:
            text = FILLED[24] * width
        else:
            text = "".join([FILLED[FIVES[a - base] + WITHIN[b - base]] for a, b in pairs])
        lines.append(_marked(text, role) if row == marked else Line(text, role))
    return lines


def _marked(text: str, role: str) -> Line:
    """With the quiet line where nothing is drawn."""
    line = Line()
    for is_free, run in itertools.groupby(text, lambda character: character == " "):
        part = "".join(run)
        line.add("┈" * len(part) if is_free else part, "quiet" if is_free else role)
    return line
