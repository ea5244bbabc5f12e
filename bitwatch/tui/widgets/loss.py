"""The panel of curves. It opens with the loss, over all attempts, at any width.

The record keeps the lowest, highest and mean value of at most 2,048 buckets an attempt; here
they become one column of dots each, so a redraw costs what the width costs, never what the
history costs.
"""

from __future__ import annotations

import math

from textual.message import Message

from bitwatch.record.view import View
from bitwatch.text import number
from bitwatch.tui import across, readout
from bitwatch.tui.curve import SMOOTHINGS
from bitwatch.tui.detail import Detail, Wanted, grain, wanted
from bitwatch.tui.draw import Line, Part, centred, joined, plain
from bitwatch.tui.drawing import Drawing
from bitwatch.tui.kept import Value
from bitwatch.tui.marks import Marks, marks_of
from bitwatch.tui.multiples import Place, Small, names, sparkline
from bitwatch.tui.tracks import (
    LOSS,
    Kind,
    Track,
    by_id,
    first_not_finite,
    known,
    newest,
    tracks,
)
from bitwatch.tui.unmoved import Shown
from bitwatch.tui.widgets.companions import Companions
from bitwatch.tui.widgets.steered import Steered

FRAME = (2, 1)  # columns and lines before the inside
NAMED_HEIGHT = 10  # lines inside, from which the names of all curves have theirs
WIDE, HIGH = 150, 32  # from here on there is room for small charts of the others
SMALL_WIDTH = 44
DOING = {
    "prepare": "the text is being prepared",
    "compile": "the model is being compiled",
    "start": "the ranks are starting",
}


class LossPanel(Steered):
    """What is shown is switched by the app's keys; `repaint` shows it. `filled` is the share of
    the history that has been read, `companions` are the runs beside it."""

    default_id = "loss"
    title = "Loss"

    filled = 1.0

    class Closer(Message):
        """What is in sight is coarse: these stretches are wanted in full."""

        def __init__(self, wanted: list[Wanted]) -> None:
            super().__init__()
            self.wanted = wanted

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.log_scale = False
        self.smoothing = 0  # which of SMOOTHINGS
        self.kind: Kind = LOSS
        self.companions = Companions()
        self.detail = Detail()
        self._last: Shown | None = None
        self._small = Small()
        self._places: list[Place] = []
        self._of = (0, "")  # of which view and curve the tracks and the marks are
        self._tracks: list[Track] = []
        self._marks: dict[str, Marks] = {}  # by axis

    # -- what is shown --------------------------------------------------------------------

    def kept(self) -> dict[str, Value]:
        """What the next screen begins with."""
        return {
            "curve": self.kind.id,
            "axis": self.axis,
            "log_scale": self.log_scale,
            "smoothing": self.smoothing,
        }

    def restore(self, kept: dict[str, Value]) -> None:
        """What of it is not understood stays as it is."""
        self.choose(by_id(str(kept.get("curve"))))
        if (axis := kept.get("axis")) in across.ALL:
            self.axis = str(axis)
        self.log_scale = kept.get("log_scale") is True
        strength = kept.get("smoothing")
        if isinstance(strength, int) and 0 <= strength < len(SMOOTHINGS):
            self.smoothing = int(strength)

    def remember(self, view: View) -> None:
        self._of = (0, "")
        self.detail.follow(view)

    def choose(self, kind: Kind) -> None:
        self.kind = kind
        self.title = f"{kind.title[:1].upper()}{kind.title[1:]}"
        self.repaint()

    def next_curve(self, by: int) -> None:
        """Of those that have a value."""
        there = known(self.view)
        at = there.index(self.kind) if self.kind in there else 0
        self.choose(there[(at + by) % len(there)])

    def next_axis(self) -> bool:
        """The next one along which anything is known; False when there is no other."""
        shown = tracks(self.view, self.kind)
        at = across.ALL.index(self.axis)
        for axis in (*across.ALL[at + 1 :], *across.ALL[:at]):
            if across.is_known(shown, axis):
                self.axis = axis
                self.zoom.clear()
                self.repaint()
                return True
        return False

    def next_smoothing(self) -> None:
        self.smoothing = (self.smoothing + 1) % len(SMOOTHINGS)
        self.repaint()

    def pressed(self, x: int, y: int) -> bool:
        left, top = FRAME if self.size.height >= 3 else (1, 0)
        place = next((place for place in self._places if place.has(x - left, y - top)), None)
        if place is not None:
            self.choose(place.kind)
        return place is not None

    # -- the drawing ----------------------------------------------------------------------

    def lines(self, width: int, height: int) -> list[Line]:
        if self._of != (id(self.view), self.kind.id):
            self._of = (id(self.view), self.kind.id)
            self._tracks, self._marks = tracks(self.view, self.kind), {}
        axis = self.axis if across.is_known(self._tracks, self.axis) else across.STEP
        if axis != self.along:
            self.along = axis
            self.zoom.clear()
        self._places = []
        self.whole = self.chart = None
        if not self._tracks or height < 2:
            return centred(self._nothing(), width, height)
        alone = self.has_class("-maximised") and height >= NAMED_HEIGHT
        top: list[Line] = []
        if alone:
            top, self._places = names(self.view, self.kind, width)
        beside = SMALL_WIDTH + 3 if alone and width >= WIDE and height >= HIGH else 0
        room = width - beside
        head = len(top) + (1 if alone else 0)
        chart_lines = self._chart(axis, room, height - head)
        found = self.reading()
        if alone:
            top.append(self._said(found, room))
        if found is not None and self.chart is not None:
            chart_lines = readout.marked(self.chart, chart_lines, *found)
        left, above = FRAME if height < self.size.height else (1, 0)
        self.origin = (left, above + head)
        if not beside:
            return [*top, *chart_lines]
        others, places = self._small.lines(
            self.view, self.kind, axis, SMALL_WIDTH, height - len(top)
        )
        shift = len(top)
        self._places += [
            place._replace(
                top=place.top + shift,
                bottom=place.bottom + shift,
                left=place.left + room + 3,
                right=place.right + room + 3,
            )
            for place in places
        ]
        rows = [*top, *chart_lines]
        for at, line in enumerate(others, start=shift):
            if at < len(rows):
                whole = Line().join(rows[at])
                rows[at] = whole.pad(room + 3).join(line)
        return rows

    def _chart(self, axis: str, width: int, height: int) -> list[Line]:
        beside = self.companions.beside(self.kind, axis)
        self.whole = across.whole([*self._tracks, *(t for o in beside for t in o.tracks)], axis)
        own = across.whole(self._tracks, axis)
        if self.whole is None or own is None:
            return centred(self._nothing(), width, height)
        self.newest = own.end - (1 if axis != across.TIME else 0)
        window = self.zoom.shown(self.whole, self.newest)
        shown = self._closer(axis, window)
        drawing = Drawing(
            kind=self.kind,
            tracks=shown,
            others=beside,
            axis=axis,
            window=window,
            marks=self._marks_of(axis),
            log=self.log_scale,
            smoothing=SMOOTHINGS[self.smoothing][1],
        )
        read_out = self.zoom.window is not None or self.zoom.mark is not None
        last = self._last
        if last is None or not last.shows(drawing, width, height, exactly=read_out):
            last = self._last = Shown(drawing, width, height)
        self.chart = last.chart
        return last.lines

    def _marks_of(self, axis: str) -> Marks:
        if axis not in self._marks:
            self._marks[axis] = marks_of(self.view, self.kind, self._tracks, axis)
        return self._marks[axis]

    def _closer(self, axis: str, window: across.Window) -> list[Track]:
        """The tracks in the detail that the window asks for, as far as it has been read."""
        if self.zoom.window is None:
            return self._tracks
        needs = wanted(self._tracks, axis, window)
        if needs and self.is_attached and (missing := self.detail.missing(needs)):
            self.post_message(self.Closer(missing))
        return self.detail.instead(self._tracks, self.kind, needs)

    def _said(self, found: tuple[int, readout.Reading] | None, width: int) -> Line:
        """The line between the names and the chart: what the cursor reads out, else the runs
        that are compared."""
        if found is not None and self.chart is not None:
            return joined(readout.parts(self.chart, found[1]), width, " · ")
        return joined([Part(1, line) for line in self.companions.legend()], width, "   ")

    def _nothing(self) -> str:
        if self.kind is LOSS or self.view.last is None:
            return _waiting(self.view)
        return f"no {self.kind.title} yet"

    def summary(self, width: int) -> Line:
        view = self.view
        value = newest(view, self.kind)
        if view.last is None or value is None:
            return Line(self._nothing(), "quiet")
        line = Line(self.kind.value(value), "strong text").add("  ")
        return line.add(sparkline(tracks(view, self.kind), width - line.width - 12), "accent")

    def caption(self) -> list[Part]:
        view, kind = self.view, self.kind
        found = self.reading()
        if found is not None and self.chart is not None and not self._places:
            return readout.parts(self.chart, found[1])
        parts = []
        if kind is not LOSS:
            value = newest(view, kind)
            return [Part(2, Line(kind.value(value)))] if value is not None else []
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
        if not self._places or self.zoom.mark is not None:
            parts += [Part(7, line) for line in self.companions.legend()]
        if len(self._tracks) > 1:
            parts.append(Part(2, Line("┊ attempt", "quiet")))
        if odd := first_not_finite(self._tracks):
            parts.append(Part(9, Line(f"✗ {odd}", "bad")))
        if self.chart is not None and self.zoom.window is not None:
            if self.newest >= self.chart.window.end:
                parts.append(Part(8, Line("newest is further right", "accent")))
            drawing = self.chart.drawing
            if points := grain(drawing.tracks, drawing.axis, drawing.window):
                parts.append(Part(6, Line(points, "quiet")))
        if self.along != across.STEP and self.chart is not None:
            parts.append(Part(5, Line(f"along {self.along}", "accent")))
        if self.log_scale:
            parts.append(Part(4, Line("log", "accent")))
        if self.smoothing:
            strength = SMOOTHINGS[self.smoothing][0]
            parts.append(Part(3, Line("smoothed ", "accent").add(strength, "accent")))
        return parts


def _waiting(view: View) -> str:
    if view.phase in DOING:
        return f"no step yet: {plain(view.phase_text or DOING[view.phase])}"
    if view.foreign:
        return plain(view.notes[-1].text) if view.notes else "its log has told of no step yet"
    return "no step yet"
