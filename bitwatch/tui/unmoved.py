"""A chart that is drawn, and whether it still shows what there is. Pure.

One more step seldom moves a dot: of a long run hundreds stand in one. So a chart is drawn anew
when one of its dots would be another, not whenever there is another value.
"""

from __future__ import annotations

from typing import NamedTuple

from bitwatch.tui import across
from bitwatch.tui.across import Track
from bitwatch.tui.chart import Chart
from bitwatch.tui.curve import gather
from bitwatch.tui.draw import Line
from bitwatch.tui.drawing import Drawing
from bitwatch.tui.tracks import contents

SLACK = 0.25  # of a column of dots: so far the end of what is shown may move


class Tail(NamedTuple):
    """The last column of the newest curve that has a value, which is all that a new step changes.
    `bucket` is its first, `before` how many values stand left of it, and `odd` how many are not
    finite."""

    attempt: int
    column: int
    bucket: int
    before: int
    odd: int
    dots: tuple[int, int, int]


class Shown:
    """One chart and its lines."""

    def __init__(self, drawing: Drawing, width: int, height: int) -> None:
        self.chart = Chart(drawing, width, height)
        self.lines: list[Line] = self.chart.lines()
        self._of = _but_newest(drawing, width, height)
        self._newest = contents(drawing.tracks[-1:])
        self._tail = self._tail_of(drawing.tracks)

    def shows(self, drawing: Drawing, width: int, height: int, *, exactly: bool) -> bool:
        """Whether it would look the same drawn again. `exactly`: also every value in it is to be
        of now, for they are read out."""
        if self._of != _but_newest(drawing, width, height):
            return False
        if (self.chart.window, self._newest) == (drawing.window, contents(drawing.tracks[-1:])):
            return True
        return not exactly and self._has_same_dots(drawing)

    def _tail_of(self, tracks: list[Track]) -> Tail | None:
        drawn = self.chart.drawn[-1] if self.chart.drawn else None
        filled = [x for x, column in enumerate(drawn.columns) if column] if drawn else []
        if drawn is None or not filled:
            return None
        bucket = drawn.bounds[filled[-1]]
        newest = tracks[-1].series
        before = sum(newest.counts[:bucket])
        column = drawn.columns[filled[-1]]
        assert column is not None
        dot = self.chart.axis.dot
        dots = dot(column.low), dot(column.high), dot(column.mean)
        attempt, odd = tracks[-1].attempt, newest.nonfinite_count
        return Tail(attempt, filled[-1], bucket, before, odd, dots)

    def _has_same_dots(self, drawing: Drawing) -> bool:
        tail, window = self._tail, self.chart.window
        columns = self.chart.width * 2
        if tail is None or drawing.window.first != window.first:
            return False
        if not 0 <= drawing.window.end - window.end <= SLACK * window.span / columns:
            return False
        now = drawing.tracks[-1]
        series = now.series
        if (now.attempt, series.nonfinite_count) != (tail.attempt, tail.odd):
            return False
        begins, ends = window.edges(columns)[tail.column : tail.column + 2]
        if tail.column == columns - 1:
            ends = drawing.window.end
        bucket, end = across.bounds(now, drawing.axis, series.starts, [begins, ends])
        if (bucket, end) != (tail.bucket, len(series.starts)):
            return False
        if sum(series.counts[:bucket]) != tail.before:
            return False
        column = gather(series, [bucket, end], drawing.kind.factor)[0]
        dot = self.chart.axis.dot
        return column is not None and tail.dots == (
            dot(column.low),
            dot(column.high),
            dot(column.mean),
        )


def _but_newest(drawing: Drawing, width: int, height: int) -> tuple[object, ...]:
    """All that a drawing is made of, but for the newest curve and how far it goes."""
    tracks = [*drawing.tracks[:-1], *(track for other in drawing.others for track in other.tracks)]
    looks = drawing.kind, drawing.axis, drawing.marks, drawing.log, drawing.smoothing
    others = [(other.place, other.letter) for other in drawing.others]
    return (width, height, *looks, others, contents(tracks))
