"""One drawing of a curve: its range, the dots, and the labels around it. Pure.

The newest attempt is in the accent, what came before it in grey, compared runs in colours of
their own. Where a column of dots covers several values, a band from the lowest to the highest
lies behind their mean. A line never crosses a value that is not finite.
"""

from __future__ import annotations

import bisect
import itertools

from bitwatch.tui import across
from bitwatch.tui.axes import Axis
from bitwatch.tui.braille import Canvas
from bitwatch.tui.draw import Line
from bitwatch.tui.drawing import (
    BAND,
    CURVE,
    EARLIER,
    ROLES,
    Drawing,
    Drawn,
    Other,
    drawn,
    range_of,
)

MARGIN = 6  # cells of the labels of the axis, and one between
MIN_COLUMNS = 10  # of the chart; in less the labels go
MARKS_APART = 3  # columns from one mark to the next of its kind
FOOT_ROWS = 8  # of a chart that has one to spare for the marks at its foot


class Chart:
    """One drawing: the ranges, the canvas, the labels around it. `margin`, `width` and `rows`
    say where the dots are once it is made."""

    margin: int
    width: int
    axis: Axis
    drawn: list[Drawn]
    compared: list[tuple[Other, list[Drawn]]]

    def __init__(self, drawing: Drawing, width: int, height: int, *, bare: bool = False) -> None:
        self.drawing = drawing
        self.window = drawing.window
        self._labelled = height >= 4 and not bare
        self.rows = height - 1 if self._labelled else height
        self.footed = self.rows >= FOOT_ROWS and self._has_foot()
        self.rows -= self.footed
        # The width of the labels is not known before the range is, and the range needs
        # columns: a guess that is nearly always right.
        self._take(width, 0 if bare else MARGIN)
        margin = 0 if bare else max((len(text) for _, text in self.axis.ticks), default=-1) + 1
        margin = max(margin, MARGIN) if margin and width - margin >= MIN_COLUMNS else 0
        if margin != self.margin:
            self._take(width, margin)
        self.canvas = Canvas(self.width, self.rows, ROLES)
        self._foot: dict[int, tuple[str, str]] = {}
        self._bare = bare

    def _take(self, width: int, margin: int) -> None:
        """Columns and range for a chart with a margin of this width."""
        self.margin, self.width = margin, max(1, width - margin)
        drawing, edges = self.drawing, self.window.edges(self.width * 2)
        self.drawn = drawn(drawing, drawing.tracks, edges, EARLIER, CURVE)
        self.compared = [
            (other, drawn(drawing, other.tracks, edges, other.layer)) for other in drawing.others
        ]
        every = [*self.drawn, *(one for _, theirs in self.compared for one in theirs)]
        self.axis = range_of(drawing, every, self.rows)

    # -- the drawing ----------------------------------------------------------------------

    def lines(self) -> list[Line]:
        last: tuple[int, int] | None = None
        for one in self.drawn:
            ends = self._curve(one)
            gap = ends[0][0] - last[0] if last and ends else 0
            if last and ends and 0 < gap <= _bridge(one) + 1:
                self._join(*last, *ends[0], EARLIER)  # it went on where the other had stopped
            last = ends[1] if ends else last
        for other, theirs in self.compared:
            self._other(other, theirs)
        if not self._bare:
            self._attempts()
            self._validation()
            self._at_foot()
            self._above()
            self._grid()
        lines = []
        labels = dict(self.axis.ticks) if self.margin else {}
        for row in range(self.rows):
            label = labels.get(row, "")
            line = Line(label.rjust(self.margin - 1) + " " if self.margin else "", "quiet")
            lines.append(line.join(self.canvas.line(row)))
        if self.footed:
            lines.append(self._foot_line())
        if self._labelled:
            lines.append(self._ticks())
        return lines

    def _grid(self) -> None:
        for row, _ in self.axis.ticks:
            self.canvas.level(row, "┈", "faint")

    def _curve(self, one: Drawn) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Draws it; its first and its last dot, across and down. A point that nothing joins to
        another is a mark, for one dot alone is hardly seen."""
        banded = one.layer in (EARLIER, CURVE)
        points: list[tuple[int, int, bool]] = []  # across, down, joined to the one before
        bridge = _bridge(one)
        for x in one.filled:
            column, mean = one.columns[x], one.means[x]
            if column is None or mean is None:
                continue
            if banded and (column.low < column.high or self.drawing.smoothing):
                band = self.axis.dot(column.high), self.axis.dot(column.low)
                self.canvas.vertical(x, *band, BAND)
            dot, before = self.axis.dot(mean), points[-1][0] if points else None
            joined = before is not None and x - before <= bridge + 1
            if joined and one.broken and before is not None:
                at = bisect.bisect_right(one.broken, before)
                joined = at == len(one.broken) or one.broken[at] >= x
            if joined:
                self._join(*points[-1][:2], x, dot, one.layer)
            else:
                self.canvas.vertical(x, dot, dot, one.layer)
            points.append((x, dot, joined))
        if not points:
            return None
        lone = [True, *(not joined for _, _, joined in points[1:]), True]
        for at, (x, dot, _) in enumerate(points):
            if lone[at] and lone[at + 1] and one.broken:
                self.canvas.mark(x // 2, dot // 4, "•", ROLES[one.layer])
        return points[0][:2], points[-1][:2]

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

    def _other(self, other: Other, theirs: list[Drawn]) -> None:
        """A compared run, with its letter at its end: where there are no colours that says
        which it is."""
        ends = [found for one in theirs if (found := self._curve(one))]
        if ends and not self._bare:
            x, dot = max(last for _, last in ends)
            row = min(self.rows - 1, max(0, dot // 4))
            self.canvas.mark(min(self.width - 1, x // 2 + 1), row, other.letter, other.role)

    def _attempts(self) -> None:
        """The newest first: of beginnings that are close together one is named."""
        taken = self.width + MARKS_APART
        for one, before in itertools.pairwise(reversed(self.drawn)):
            series = one.track.series
            begins = min([*series.starts[:1], *series.nonfinite[:1]])
            column = self._column(across.position(one.track, self.drawing.axis, begins))
            if column is None or not (before.track.series.starts or before.track.series.nonfinite):
                continue
            if abs(taken - column) < MARKS_APART:
                continue
            taken = column
            for row in range(self.rows):
                self.canvas.mark(column, row, "┊", "quiet", over=False)
            label = str(one.track.attempt)
            room = self.width - column - 1
            self.canvas.text(column, 0, "┊", "quiet")
            self.canvas.text(column + (1 if len(label) <= room else -len(label)), 0, label, "quiet")

    def _validation(self) -> None:
        """The newest first: marks need room between them, or they hide the curve."""
        taken = self.width + MARKS_APART
        for x, value in reversed(self.drawing.marks.validations):
            column = self._column(x)
            if column is None or abs(taken - column) < MARKS_APART:
                continue
            row = self.axis.dot(value) // 4
            if 0 <= row < self.rows:
                taken = column
                self.canvas.mark(column, row, "●", "strong text")

    def _has_foot(self) -> bool:
        marks, window = self.drawing.marks, self.window
        places = [*marks.checkpoints, *(x for x, _ in marks.alerts)]
        odd = any(track.series.nonfinite for track in self.drawing.tracks)
        return odd or any(window.first <= x < window.end for x in places)

    def _at_foot(self) -> None:
        """Marks in a line of their own under the curve, where there is room for one; the more
        important stand over the less."""
        taken = self.width + MARKS_APART
        for x in reversed(self.drawing.marks.checkpoints):
            column = self._column(x)
            if column is not None and abs(taken - column) >= MARKS_APART:
                taken = column
                self._foot[column] = ("◇", "quiet")
        for x, role in self.drawing.marks.alerts:
            if (column := self._column(x)) is not None and self._foot.get(column, "")[1:] != (
                "bad",
            ):
                self._foot[column] = ("▲", role)
        for one in self.drawn:
            for x in one.broken:
                self._foot[x // 2] = ("✗", "bad")
        if not self.footed:
            for column, (character, role) in self._foot.items():
                if character == "✗":
                    self.canvas.mark(column, self.rows - 1, character, role)

    def _foot_line(self) -> Line:
        line = Line(" " * self.margin)
        for column in sorted(self._foot):
            line.pad(self.margin + column).add(*self._foot[column])
        return line.pad(self.margin + self.width)

    def _above(self) -> None:
        """Where the curve begins, when that lies above the range."""
        first = self.drawn[0].bounds[0] if self.drawn else 0
        if not self.drawn or first == self.drawn[0].bounds[-1]:
            return
        value = self.drawn[0].track.series.mean(first) * self.drawing.kind.factor
        if self.axis.dot(value) >= 0:
            return
        words = f"↑ {value:.3g}"
        for column in (0, self.canvas.end_of_run(0) + 1):
            if self.canvas.is_free(column, 0, len(words) + 1):
                self.canvas.text(column, 0, words, "quiet")
                break

    def _column(self, x: float | None) -> int | None:
        return self.window.column(x, self.width)

    def _ticks(self) -> Line:
        line = Line(" " * self.margin)
        edge = self.margin + self.width
        for column, text in across.ticks(self.drawing.axis, self.window, self.width):
            start = self.margin + max(0, column - len(text) // 2)
            start = min(start, edge - len(text))
            if start >= line.width + (2 if line.width > self.margin else 0):
                line.pad(start).add(text, "quiet")
        word = self.drawing.axis
        if edge - line.width >= len(word) + 3:
            line.right(Line(word, "faint"), edge)
        return line


def _bridge(one: Drawn) -> int:
    """Empty columns of dots that a line may cross: a few points on many columns are joined, a
    hole in a dense curve stays a hole."""
    number = sum(1 for x in one.filled if one.columns[x])
    return max(4, 3 * len(one.columns) // max(1, number))
