"""Graphs of what was before: a filled curve of braille dots over time. Pure.

Dots stand for whole stretches of the clock, so that a graph moves by a dot at a time and what
is drawn already stays as it is.
"""

from __future__ import annotations

import bisect
import math

from bitwatch.record.gpu_history import RECENT_S
from bitwatch.record.series import Series
from bitwatch.tui.braille import Canvas
from bitwatch.tui.curve import columns_of
from bitwatch.tui.draw import Line

BRIDGE = 2.5  # times the usual time between two samples: a longer gap is one
Values = list[float | None]


def recent_values(times: list[float], values: Values, now: float, count: int) -> Values:
    """Means of the last ten minutes in `count` dots, the newest at the right; None in a gap."""
    if not times or count <= 0:
        return [None] * max(0, count)
    step = RECENT_S / count
    end = math.ceil(now / step)
    found: Values = []
    begin = bisect.bisect_left(times, (end - count) * step)
    for dot in range(end - count + 1, end + 1):
        after = bisect.bisect_left(times, dot * step, begin)
        part = [value for value in values[begin:after] if value is not None]
        found.append(sum(part) / len(part) if part else None)
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
    canvas = Canvas(width, height, ("faint", role))
    dots = height * 4
    for x, value in enumerate(values[: width * 2]):
        if value is not None and top > 0:
            share = min(1.0, max(0.0, value / top))
            canvas.vertical(x, dots - max(1, round(share * (dots - 1))), dots - 1, 1)
    if mark is not None and 0 < mark <= top:
        row = (dots - max(1, round(mark / top * (dots - 1)))) // 4
        for column in range(width):
            canvas.mark(column, row, "┈", "quiet", over=False)
    return [canvas.line(row) for row in range(height)]
