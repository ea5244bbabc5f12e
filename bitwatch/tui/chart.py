"""One drawing of curves: their range, the dots, the marks, and the labels around them. Pure.

The newest attempt is in the accent, what came before it in grey. Where a column of dots
covers several values, a band from the lowest to the highest lies behind their mean.
"""

from __future__ import annotations

import itertools
import math

from bitwatch.record.series import Series
from bitwatch.record.view import View
from bitwatch.tui import axes
from bitwatch.tui.braille import Canvas
from bitwatch.tui.curve import Column, columns_of, extent, smoothed
from bitwatch.tui.draw import Line

BAND, EARLIER, CURVE = 1, 2, 3
ROLES = ("text", "accent-muted", "quiet", "accent")
MARGIN = 6  # cells of the labels of the axis, and one between
MIN_COLUMNS = 10  # of the chart; in less the labels go
MARKS_APART = 3  # columns from one validation to the next


class Chart:
    """One drawing: the ranges, the canvas, the labels around it."""

    def __init__(
        self,
        view: View,
        curves: list[tuple[int, Series]],
        width: int,
        height: int,
        *,
        log: bool,
        smooth: bool,
    ) -> None:
        self._view, self._curves, self._smooth = view, curves, smooth
        self._rows = height - 1 if height >= 4 else height
        self._labelled = height >= 4
        self.first, self.last = extent([series for _, series in curves])
        self._log = log
        # The width of the labels is not known before the range is, and the range needs
        # columns: a guess that is nearly always right.
        self._take(width, MARGIN)
        margin = max((len(text) for _, text in self.axis.ticks), default=-1) + 1
        if margin > MARGIN:
            self._take(width, margin)
        if width - margin < MIN_COLUMNS or not margin:
            self._take(width, 0)
        self.canvas = Canvas(self._columns, self._rows, ROLES)

    def _take(self, width: int, margin: int) -> None:
        """Columns and range for a chart with a margin of this width."""
        self._margin, self._columns = margin, max(1, width - margin)
        self._by_attempt = [
            columns_of(series, self.first, self.last, self._columns * 2)
            for _, series in self._curves
        ]
        self.axis = _axis(self._by_attempt, self._view, self._rows, self._log)

    def lines(self) -> list[Line]:
        newest = self._curves[-1][0]
        last: tuple[int, int] | None = None
        for (number_, _), columns in zip(self._curves, self._by_attempt, strict=True):
            ends = self._curve(columns, CURVE if number_ == newest else EARLIER)
            if last and ends and 0 < ends[0][0] - last[0] <= _bridge(columns) + 1:
                self._join(*last, *ends[0], EARLIER)  # it went on where the other had stopped
            last = ends[1] if ends else last
        self._attempts()
        self._validation()
        self._not_finite()
        self._above()
        self._grid()
        lines = []
        labels = dict(self.axis.ticks) if self._margin else {}
        for row in range(self._rows):
            label = labels.get(row, "")
            line = Line(label.rjust(self._margin - 1) + " " if self._margin else "", "quiet")
            lines.append(line.join(self.canvas.line(row)))
        if self._labelled:
            lines.append(self._steps())
        return lines

    def _grid(self) -> None:
        for row, _ in self.axis.ticks:
            for column in range(self._columns):
                self.canvas.mark(column, row, "┈", "faint", over=False)

    def _curve(
        self, columns: list[Column | None], layer: int
    ) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Draws it; its first and its last dot, across and down."""
        means = smoothed(columns) if self._smooth else [c.mean if c else None for c in columns]
        first: tuple[int, int] | None = None
        before: int | None = None
        gap = 0
        bridge = _bridge(columns)
        for x, column in enumerate(columns):
            mean = means[x]
            if column is None or mean is None:
                gap += 1
                continue
            if column.low < column.high or self._smooth:
                band = self.axis.dot(column.high), self.axis.dot(column.low)
                self.canvas.vertical(x, *band, BAND)
            dot = self.axis.dot(mean)
            if before is not None and gap <= bridge:
                self._join(x - gap - 1, before, x, dot, layer)
            else:
                self.canvas.vertical(x, dot, dot, layer)
            before, gap = dot, 0
            first = first or (x, dot)
        if first is None or before is None:
            return None
        return first, (len(columns) - 1 - gap, before)

    def _join(self, x0: int, y0: int, x1: int, y1: int, layer: int) -> None:
        """A line from dot to dot. Between neighbours each covers its half of the jump."""
        last = y0
        for x in range(x0 + 1, x1 + 1):
            y = y0 + round((y1 - y0) * (x - x0) / (x1 - x0))
            low, high = min(last, y), max(last, y)
            if high - low > 1:
                half = (low + high) // 2
                upper, lower = (low, half), (half + 1, high)
                left, right = (upper, lower) if last == low else (lower, upper)
                self.canvas.vertical(x - 1, *left, layer)
                self.canvas.vertical(x, *right, layer)
            else:
                self.canvas.vertical(x, y, y, layer)
            last = y

    def _attempts(self) -> None:
        for (_, before), (number_, series) in itertools.pairwise(self._curves):
            begins = min([*series.starts[:1], *series.nonfinite[:1]])
            column = self._column(begins)
            if column is None or not (before.starts or before.nonfinite):
                continue
            for row in range(self._rows):
                self.canvas.mark(column, row, "┊", "quiet", over=False)
            label = str(number_)
            room = self._columns - column - 1
            self.canvas.text(column, 0, "┊", "quiet")
            self.canvas.text(column + (1 if len(label) <= room else -len(label)), 0, label, "quiet")

    def _validation(self) -> None:
        """The newest first: marks need room between them, or they hide the curve."""
        taken = self._columns + MARKS_APART
        for scored in reversed(self._view.evaluations):
            column = self._column(scored.step)
            if scored.loss is None or not math.isfinite(scored.loss) or column is None:
                continue
            row = self.axis.dot(scored.loss) // 4
            if 0 <= row < self._rows and taken - column >= MARKS_APART:
                taken = column
                self.canvas.mark(column, row, "●", "strong text")

    def _not_finite(self) -> None:
        for _, series in self._curves:
            for start in series.nonfinite:
                column = self._column(start)
                if column is not None:
                    self.canvas.mark(column, self._rows - 1, "✗", "bad")

    def _above(self) -> None:
        """Where the curve begins, when that lies above the range."""
        series = self._curves[0][1]
        if not series.starts or self.axis.dot(series.mean(0)) >= 0:
            return
        words = f"↑ {series.mean(0):.3g}"
        for column in (0, self.canvas.end_of_run(0) + 1):
            if self.canvas.is_free(column, 0, len(words) + 1):
                self.canvas.text(column, 0, words, "quiet")
                break

    def _column(self, step: int) -> int | None:
        if not self.first <= step <= self.last:
            return None
        return int((step - self.first) / (self.last - self.first + 1) * self._columns)

    def _steps(self) -> Line:
        line = Line(" " * self._margin)
        edge = self._margin + self._columns
        for column, text in axes.steps(self.first, self.last, self._columns):
            start = self._margin + max(0, column - len(text) // 2)
            start = min(start, edge - len(text))
            if start >= line.width + (2 if line.width > self._margin else 0):
                line.pad(start).add(text, "quiet")
        if edge - line.width >= 7:
            line.right(Line("step", "faint"), edge)
        return line


def _bridge(columns: list[Column | None]) -> int:
    """Empty columns of dots that a line may cross: a few points on many columns are joined, a
    hole in a dense curve stays a hole."""
    filled = sum(1 for column in columns if column)
    return max(4, 3 * len(columns) // max(1, filled))


def _axis(curves: list[list[Column | None]], view: View, rows: int, log: bool) -> axes.Axis:
    by_column = [[c for c in at if c] for at in zip(*curves, strict=True)]
    drawn = [found for found in by_column if found]
    if not drawn:
        return axes.linear(0.0, 1.0, rows)
    lows = [min(c.low for c in found) for found in drawn]
    highs = [max(c.high for c in found) for found in drawn]
    if log and (positive := [value for value in lows if value > 0]):
        floor = sorted(positive)[int(len(positive) * axes.QUANTILE / 4)]
        low, high = floor, max(*highs, floor * 1.02)
        return axes.logarithmic(low, high, rows)
    low, high = axes.robust(lows, highs, recent=True)
    scored = [e.loss for e in view.evaluations[-3:] if e.loss is not None and math.isfinite(e.loss)]
    for value in scored:  # the newest validation is worth seeing, unless it is far away
        if low - (high - low) <= value <= high + (high - low):
            low, high = min(low, value), max(high, value)
    return axes.linear(low, high, rows)
