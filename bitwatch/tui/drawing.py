"""What a chart draws, and what it makes of it first: columns of dots and a range. Pure.

All arithmetic that looks into a series is here: a search for each column, so that it costs
what the width costs, never what the history costs.
"""

from __future__ import annotations

import bisect
import itertools
from typing import NamedTuple

from bitwatch.tui import across, axes
from bitwatch.tui.across import Track, Window
from bitwatch.tui.curve import Column, filled, gather, smoothed
from bitwatch.tui.marks import Marks
from bitwatch.tui.tracks import Kind

BAND, EARLIER, CURVE = 1, 2, 6
OVER_EACH_OTHER = 4  # attempts in one column
OTHERS = ("fine", "warning", "text")  # of compared runs, by the order in which they came
ROLES = ("text", "accent-muted", "quiet", *OTHERS, "accent")


class Other(NamedTuple):
    """A compared run. `place`: which of `OTHERS` is its colour."""

    place: int
    letter: str
    name: str
    tracks: list[Track]

    @property
    def role(self) -> str:
        return OTHERS[self.place]

    @property
    def layer(self) -> int:
        return EARLIER + 1 + self.place


class Drawing(NamedTuple):
    """What is drawn. `smoothing` is the share of the width that a point rests on, 0 for none."""

    kind: Kind
    tracks: list[Track]
    others: list[Other]
    axis: str
    window: Window
    marks: Marks
    log: bool = False
    smoothing: float = 0.0


class Drawn(NamedTuple):
    """A track in columns of dots, of which `filled` may have values. `bounds` are its buckets by
    column, `broken` the columns with a value that is not finite."""

    track: Track
    layer: int
    bounds: list[int]
    filled: range
    columns: list[Column | None]
    means: list[float | None]
    broken: list[int]


def drawn(
    drawing: Drawing, tracks: list[Track], edges: list[float], layer: int, newest: int | None = None
) -> list[Drawn]:
    """The attempts of a run, the `newest` in a layer of its own. Of those that lie over each other
    the newest are drawn: more would be a smear, and cost what nobody sees."""
    taken = [0] * (len(edges) - 1)
    found = []
    for at, track in enumerate(reversed(tracks)):
        of = newest if newest is not None and at == 0 else layer
        found.append(_drawn(drawing, track, of, edges, taken))
    return found[::-1]


def _drawn(
    drawing: Drawing, track: Track, layer: int, edges: list[float], taken: list[int]
) -> Drawn:
    """`taken`: by how many newer attempts each column has been drawn."""
    series, share, count = track.series, drawing.smoothing, len(taken)
    if _is_under(drawing, track, edges, taken):
        bounds = [0] * len(edges)
    else:
        bounds = across.bounds(track, drawing.axis, series.starts, edges)
    reach = filled(bounds)
    if any(number >= OVER_EACH_OTHER for number in taken[reach.start : reach.stop]):
        free = [x for x in reach if taken[x] < OVER_EACH_OTHER]
        reach = range(free[0], free[-1] + 1) if free else range(0)
        first, end = bounds[reach.start], bounds[reach.stop]
        bounds = [min(max(bound, first), end) for bound in bounds]
    inside = gather(series, bounds[reach.start : reach.stop + 1], drawing.kind.factor)
    for at, x in enumerate(reach):
        if taken[x] >= OVER_EACH_OTHER:
            inside[at] = None
        elif inside[at]:
            taken[x] += 1
    means = smoothed(inside, share, count) if share else [c.mean if c else None for c in inside]
    before, after = [None] * reach.start, [None] * (count - reach.stop)
    broken: list[int] = []
    if series.nonfinite:
        odd = across.bounds(track, drawing.axis, series.nonfinite, edges)
        broken = [x for x, (a, b) in enumerate(itertools.pairwise(odd)) if b > a]
    return Drawn(
        track,
        layer,
        bounds,
        reach,
        [*before, *inside, *after],
        [*before, *means, *after],
        broken,
    )


def _is_under(drawing: Drawing, track: Track, edges: list[float], taken: list[int]) -> bool:
    """Whether nothing of it would be seen, from its first value to its last."""
    if max(taken) < OVER_EACH_OTHER or not track.series.starts:
        return False
    starts = track.series.starts
    ends = [across.position(track, drawing.axis, step) for step in (starts[0], starts[-1])]
    first, last = (bisect.bisect_right(edges, x) if x is not None else 0 for x in ends)
    return min(taken[max(0, first - 1) : last], default=0) >= OVER_EACH_OTHER


def range_of(drawing: Drawing, every: list[Drawn], rows: int) -> axes.Axis:
    """The axis of the values."""
    by_column: dict[int, list[Column]] = {}
    for one in every:
        for x in one.filled:
            if (column := one.columns[x]) is not None:
                by_column.setdefault(x, []).append(column)
    found = [by_column[x] for x in sorted(by_column)]
    if not found:
        return axes.linear(0.0, 1.0, rows)
    lows = [_drawable(min(c.low for c in columns)) for columns in found]
    highs = [_drawable(max(c.high for c in columns)) for columns in found]
    if drawing.log and (positive := [value for value in lows if value > 0]):
        low, high = axes.robust_log(positive, [value for value in highs if value > 0])
        axis = axes.logarithmic(low, max(high, low * 1.02), rows)
    else:
        low, high = axes.robust(lows, highs, recent=drawing.kind.recent)
        window = drawing.window
        scored = [v for x, v in drawing.marks.validations if window.first <= x < window.end]
        for value in scored[-3:]:  # the newest is worth seeing, unless it is far away
            if low - (high - low) <= value <= high + (high - low):
                low, high = min(low, value), max(high, value)
        axis = axes.linear(low, high, rows)
    tick = drawing.kind.tick
    if tick is None:
        return axis
    return axis._replace(ticks=[(row, tick(float(text))) for row, text in axis.ticks])


def _drawable(value: float) -> float:
    return min(max(value, -axes.MOST), axes.MOST)
