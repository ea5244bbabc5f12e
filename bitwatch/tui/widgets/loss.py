"""The curve of the loss over all attempts, at any width.

The record keeps the lowest, highest and mean value of at most 2,048 buckets an attempt; here
they become one column of dots each, so a redraw costs what the width costs, never what the
history costs.
"""

from __future__ import annotations

import math

from bitwatch.record.series import Series
from bitwatch.record.view import View
from bitwatch.text import number
from bitwatch.tui.chart import Chart
from bitwatch.tui.curve import columns_of, extent
from bitwatch.tui.draw import Line, Part, centred, plain, sparks
from bitwatch.tui.widgets.panel import Panel

SHOWN_ATTEMPTS = 12  # of more, the newest


class LossPanel(Panel):
    """`log_scale` and `smooth` are switched by the app's keys; `repaint` shows it. `filled` is
    the share of the history that has been read."""

    default_id = "loss"
    title = "Loss"
    keeps = ("log_scale", "smooth")

    log_scale = False
    smooth = False
    filled = 1.0

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._last: tuple[object, list[Line]] | None = None  # what was drawn, and the drawing

    def lines(self, width: int, height: int) -> list[Line]:
        curves = [(n, s) for n, s in self.view.loss if s.starts or s.nonfinite][-SHOWN_ATTEMPTS:]
        if not curves or height < 2:
            return centred(_waiting(self.view), width, height)
        key = (width, height, self.log_scale, self.smooth, _contents(curves), _scored(self.view))
        if self._last is None or self._last[0] != key:
            chart = Chart(self.view, curves, width, height, log=self.log_scale, smooth=self.smooth)
            self._last = (key, chart.lines())
        return self._last[1]

    def summary(self, width: int) -> Line:
        view = self.view
        if view.last is None:
            return Line(_waiting(view), "quiet")
        line = Line(number(view.last.loss, 4), "strong text").add("  ")
        room = width - line.width - 12
        curves = [s for _, s in view.loss if s.starts]
        if curves and room >= 8:
            columns = columns_of(curves[-1], *extent(curves[-1:]), min(room, 48))
            values = [c.mean if c else None for c in columns]
            line.add(_sparkline(values), "accent")
        return line

    def caption(self) -> list[Part]:
        view = self.view
        parts = []
        if view.last and view.last.loss is not None:
            role = "text" if math.isfinite(view.last.loss) else "strong bad"
            parts.append(Part(2, Line("train ", "quiet").add(number(view.last.loss, 4), role)))
        if view.evaluations:
            words = Line("● ", "strong text").add("validation ", "quiet")
            parts.append(Part(1, words.add(number(view.evaluations[-1].loss, 4))))
        return parts

    def subtitle(self) -> list[Part]:
        parts = []
        if self.filled < 1:
            words = Line("reading earlier steps ", "quiet").add(f"{100 * self.filled:.0f}")
            parts.append(Part(1, words.add(" %", "quiet")))
        if len(self.view.loss) > 1:
            parts.append(Part(2, Line("┊ attempt", "quiet")))
        if any(s.nonfinite_count for _, s in self.view.loss):
            parts.append(Part(5, Line("✗ not finite", "bad")))
        if self.log_scale:
            parts.append(Part(4, Line("log", "accent")))
        if self.smooth:
            parts.append(Part(3, Line("smoothed", "accent")))
        return parts


def _contents(curves: list[tuple[int, Series]]) -> list[object]:
    """Differs when the curves do: a step comes, or history is filled in."""
    return [(n, s.last, len(s.starts), sum(s.counts), s.nonfinite_count) for n, s in curves]


def _scored(view: View) -> tuple[int, int]:
    return len(view.evaluations), view.evaluations[-1].step if view.evaluations else 0


def _waiting(view: View) -> str:
    if view.phase in ("prepare", "compile", "start"):
        return f"no step yet: {plain(view.phase_text or view.phase)}"
    if view.foreign:
        return plain(view.notes[-1].text) if view.notes else "its log has told of no step yet"
    return "no step yet"


def _sparkline(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    spread = most - least or 1.0
    return sparks([None if v is None else v - least for v in values], len(values), spread)
