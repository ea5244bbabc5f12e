"""All curves at a glance: their names with the newest value in a line, and, where there is
room, a small chart of each. Pure; every drawing says where its names stand."""

from __future__ import annotations

from typing import NamedTuple

from bitwatch.record.view import View
from bitwatch.tui import across
from bitwatch.tui.across import Track
from bitwatch.tui.chart import Chart
from bitwatch.tui.curve import columns_of, extent
from bitwatch.tui.draw import Line, flowing, sparks
from bitwatch.tui.drawing import Drawing
from bitwatch.tui.marks import Marks
from bitwatch.tui.tracks import KINDS, Kind, contents, known, newest, tracks

APART = "  "
LEAST_HEIGHT, MOST_HEIGHT = 4, 9  # lines of a small chart with its name
LEAST_SPARKS, MOST_SPARKS = 8, 48


class Place(NamedTuple):
    """Where a curve can be clicked: lines and columns, the ends not included."""

    kind: Kind
    top: int
    bottom: int
    left: int
    right: int

    def has(self, x: int, y: int) -> bool:
        return self.top <= y < self.bottom and self.left <= x < self.right


def names(view: View, chosen: Kind, width: int) -> tuple[list[Line], list[Place]]:
    """The names of all curves in as many lines as they need."""
    there = known(view)
    entries = [(kind, _name(view, kind, chosen)) for kind in KINDS if kind in there]
    lines = flowing([line for _, line in entries], width, APART)
    places = []
    row = column = 0
    for kind, line in entries:
        if column and column + len(APART) + line.width > width:
            row, column = row + 1, 0
        column += len(APART) if column else 0
        places.append(Place(kind, row, row + 1, column, column + line.width))
        column += line.width
    return lines, places


def _name(view: View, kind: Kind, chosen: Kind) -> Line:
    value = newest(view, kind)
    line = Line(kind.title, "strong accent" if kind is chosen else "quiet")
    return line.add(" ").add(kind.value(value), "text") if value is not None else line


class Small:
    """A column of small charts of the curves that are not chosen, each over its whole range. Of
    those that have changed one is drawn anew at a time: what they show moves slowly."""

    def __init__(self) -> None:
        self._drawn: dict[str, tuple[object, object, list[Line]]] = {}  # by curve: for what
        self._turn = 0

    def lines(
        self, view: View, chosen: Kind, axis: str, width: int, height: int
    ) -> tuple[list[Line], list[Place]]:
        shown = [kind for kind in known(view) if kind is not chosen]
        each = min(MOST_HEIGHT, height // max(1, len(shown)))
        if each < LEAST_HEIGHT:
            shown, each = shown[: height // LEAST_HEIGHT], LEAST_HEIGHT
        self._turn += 1
        lines: list[Line] = []
        places = []
        for at, kind in enumerate(shown):
            top = len(lines)
            place = (view.run, axis, width, each)
            before = self._drawn.get(kind.id)
            if before is None or before[0] != place or (at - self._turn) % len(shown) == 0:
                self._draw(view, kind, axis, place)
            lines += [_name(view, kind, chosen), *self._drawn[kind.id][2], Line()]
            places.append(Place(kind, top, top + each - 1, 0, width))
        return lines, places

    def _draw(self, view: View, kind: Kind, axis: str, place: tuple[str, str, int, int]) -> None:
        drawn = tracks(view, kind)
        what = contents(drawn)
        before = self._drawn.get(kind.id)
        if before and before[:2] == (place, what):
            return
        width, rows = place[2], place[3] - 2
        window = across.whole(drawn, axis) if drawn else None
        lines = [Line()] * rows
        if window is not None:
            drawing = Drawing(kind, drawn, [], axis, window, Marks([], [], []))
            lines = Chart(drawing, width, rows, bare=True).lines()
        self._drawn[kind.id] = (place, what, lines)


def sparkline(shown: list[Track], width: int) -> str:
    """The newest attempt in one line; nothing where there is no room for it."""
    series = [track.series for track in shown if track.series.starts][-1:]
    if not series or width < LEAST_SPARKS:
        return ""
    columns = columns_of(series[0], *extent(series), min(width, MOST_SPARKS))
    means = [column.mean if column else None for column in columns]
    least = min(mean for mean in means if mean is not None)
    most = max(mean for mean in means if mean is not None)
    above = [None if mean is None else mean - least for mean in means]
    return sparks(above, len(above), most - least or 1.0)
