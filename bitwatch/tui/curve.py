"""From the buckets of a series to the columns of a chart. Pure.

Costs a search for each column: what the width costs, never what the history costs.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from bitwatch.record.series import Series
from bitwatch.tui.axes import FAR, FEW, usual

LIGHT = 0.02
SMOOTHINGS = (("", 0.0), ("light", LIGHT), ("medium", 0.06), ("strong", 0.15))


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
    span = last - first + 1
    edges = [first + at * span / count for at in range(count + 1)]
    return gather(series, cuts(series.starts, edges))


def cuts(starts: Sequence[float], edges: list[float]) -> list[int]:
    """For each edge of a column the first bucket that does not begin before it."""
    if not starts:
        return [0] * len(edges)
    first, last = bisect.bisect_right(edges, starts[0]), bisect.bisect_right(edges, starts[-1])
    found = [0] * first
    at = 0
    for edge in edges[first:last]:
        at = bisect.bisect_left(starts, edge, at)
        found.append(at)
    return found + [len(starts)] * (len(edges) - last)


def filled(bounds: list[int]) -> range:
    """The columns outside of which nothing lies; `bounds` is as long as they are and one more."""
    if bounds[0] == bounds[-1]:
        return range(0)
    return range(bisect.bisect_right(bounds, bounds[0]) - 1, bisect.bisect_left(bounds, bounds[-1]))


def gather(series: Series, bounds: list[int], factor: float = 1.0) -> list[Column | None]:
    """What lies between each bound and the next; every value times `factor`."""
    lows, highs, totals, counts = series.low, series.high, series.total, series.counts
    columns: list[Column | None] = []
    for begin, end in itertools.pairwise(bounds):
        if end <= begin:
            columns.append(None)
            continue
        if end == begin + 1:
            low, high, mean = lows[begin], highs[begin], totals[begin] / counts[begin]
        else:
            low, high = min(lows[begin:end]), max(highs[begin:end])
            mean = sum(totals[begin:end]) / sum(counts[begin:end])
        columns.append(Column(low * factor, high * factor, mean * factor))
    return columns


def smoothed(
    columns: list[Column | None], share: float = LIGHT, width: int = 0
) -> list[float | None]:
    """A moving average that looks both ways, so that it lies on the curve also where that falls
    fast, with weights that fade by distance. It is debiased: a constant stays the constant from
    its first point to its last. What is not finite was never in the columns, and what is absurd
    has no part in it: the curve would leave for good with it. `share` of the width, in columns, is
    what a point mostly rests on; without one all columns are given."""
    keep = 1 - 1 / max(1.0, (width or len(columns)) * share / 2)
    kept = _without_absurd(columns)
    before, after = _faded(kept, keep), _faded(kept[::-1], keep)[::-1]
    means: list[float | None] = []
    for column, own, (past, past_weight), (future, future_weight) in zip(
        columns, kept, before, after, strict=True
    ):
        if column is None:
            means.append(None)
        elif own is None:
            weight = past_weight + future_weight  # none where nothing near is averaged
            means.append((past + future) / weight if weight else column.mean)
        else:
            weight = past_weight + future_weight - 1.0
            means.append((past + future - own.mean) / weight)
    return means


def _without_absurd(columns: list[Column | None]) -> list[Column | None]:
    sizes = sorted((abs(column.mean) for column in columns if column), reverse=True)
    far = FAR * usual(sizes) if len(sizes) >= FEW else 0.0
    if not far or sizes[0] <= far:
        return columns
    return [column if column and abs(column.mean) <= far else None for column in columns]


def _faded(columns: list[Column | None], keep: float) -> list[tuple[float, float]]:
    """Up to and with each column: the sum of what has been, fading, and of its weights."""
    value = weight = 0.0
    found = []
    for column in columns:
        value, weight = value * keep, weight * keep
        if column is not None:
            value, weight = value + column.mean, weight + 1.0
        found.append((value, weight))
    return found
