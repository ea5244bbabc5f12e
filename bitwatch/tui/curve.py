"""From the buckets of a series to the columns of a chart. Pure.

Costs a search for each column: what the width costs, never what the history costs.
"""

from __future__ import annotations

import bisect
from typing import NamedTuple

from bitwatch.record.series import Series

SMOOTHING = 0.02  # of the width: what a smoothed point mostly rests on


class Column(NamedTuple):
    """What lies in one column of dots."""

    low: float
    high: float
    mean: float


def extent(curves: list[Series]) -> tuple[int, int]:
    """The first and the last step that any curve has."""
    firsts = [min([*s.starts[:1], *s.nonfinite[:1]]) for s in curves]
    lasts = [
        max(s.last[0] if s.last else 0, *(x[-1] for x in (s.starts, s.nonfinite) if x))
        for s in curves
    ]
    return min(firsts), max(lasts)


def columns_of(series: Series, first: int, last: int, count: int) -> list[Column | None]:
    """`count` columns from step `first` to step `last`; None where there is no bucket."""
    starts, lows, highs = series.starts, series.low, series.high
    totals, counts = series.total, series.counts
    span = last - first + 1
    columns: list[Column | None] = []
    begin = bisect.bisect_left(starts, first)
    for x in range(1, count + 1):
        end = bisect.bisect_left(starts, first - (-x * span // count), begin)
        if end == begin:
            columns.append(None)
        elif end == begin + 1:
            mean = totals[begin] / counts[begin]
            columns.append(Column(lows[begin], highs[begin], mean))
        else:
            mean = sum(totals[begin:end]) / sum(counts[begin:end])
            columns.append(Column(min(lows[begin:end]), max(highs[begin:end]), mean))
        begin = end
    return columns


def smoothed(columns: list[Column | None]) -> list[float | None]:
    """A debiased moving average: a constant stays the constant from its first point on, and
    what is not finite was never in the columns."""
    keep = 1 - 1 / max(1.0, len(columns) * SMOOTHING)
    value = weight = 0.0
    means: list[float | None] = []
    for column in columns:
        value, weight = value * keep, weight * keep
        if column is None:
            means.append(None)
            continue
        value += (1 - keep) * column.mean if keep else column.mean
        weight += 1 - keep if keep else 1.0
        means.append(value / weight)
    return means
