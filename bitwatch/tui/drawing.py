"""What a chart draws, and what it makes of it first: columns of dots and a range. Pure.

All arithmetic that looks into a series is here: a search for each column, so that it costs
what the width costs, never what the history costs.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from bitwatch.tui import across, axes
from bitwatch.tui.across import Track, Window
from bitwatch.tui.curve import Column, gather, smoothed
from bitwatch.tui.marks import Marks
from bitwatch.tui.tracks import Kind

BAND, EARLIER, CURVE = 1, 2, 6
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
    """A track in columns of dots. `bounds` are its buckets by column, `broken` the columns with
    a value that is not finite."""

    track: Track
    layer: int
    bounds: list[int]
    columns: list[Column | None]
    means: list[float | None]
    broken: list[int]


def drawn_of(drawing: Drawing, track: Track, layer: int, edges: list[float]) -> Drawn:
    series, share = track.series, drawing.smoothing
    bounds = across.bounds(track, drawing.axis, series.starts, edges)
    columns = gather(series, bounds, drawing.kind.factor)
    means = smoothed(columns, share) if share else [c.mean if c else None for c in columns]
    broken: list[int] = []
    if series.nonfinite:
        odd = across.bounds(track, drawing.axis, series.nonfinite, edges)
        broken = [x for x, (a, b) in enumerate(itertools.pairwise(odd)) if b > a]
    return Drawn(track, layer, bounds, columns, means, broken)


def range_of(drawing: Drawing, every: list[Drawn], rows: int) -> axes.Axis:
    """The axis of the values."""
    by_column = [[c for c in at if c] for at in zip(*(one.columns for one in every), strict=True)]
    found = [column for column in by_column if column]
    if not found:
        return axes.linear(0.0, 1.0, rows)
    lows = [min(c.low for c in column) for column in found]
    highs = [max(c.high for c in column) for column in found]
    if drawing.log and (positive := [value for value in lows if value > 0]):
        floor = sorted(positive)[int(len(positive) * axes.QUANTILE / 4)]
        low, high = floor, max(*highs, floor * 1.02)
        axis = axes.logarithmic(low, high, rows)
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
