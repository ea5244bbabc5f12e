"""What every widget of the dashboard shares: it draws a View into lines, and repaints only
the lines that look different from last time. Over a slow connection that is what counts.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from bitwatch.record.view import View
from bitwatch.tui.draw import Line
from bitwatch.tui.palette import palette_of


class Painted(Widget):
    """`show` takes a snapshot and the time it is shown at; `draw` turns both into lines."""

    default_id = ""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id or self.default_id or None, classes=classes)
        self.view = View()
        self.now = 0.0
        self._drawn: list[Line] | None = None
        self._drawn_for = (0, 0)

    def show(self, view: View, now: float) -> None:
        """A new snapshot. Remembers what a later one will not say, then repaints."""
        self.view, self.now = view, now
        self.remember(view)
        self.repaint()

    def remember(self, view: View) -> None:
        """For histories that only successive views have."""

    def forget(self) -> None:
        """What earlier views have left: the next one is of a time before them."""

    def draw(self, width: int, height: int) -> list[Line]:
        raise NotImplementedError

    def repaint(self) -> None:
        """Draws again, and refreshes the lines that changed."""
        width, height = self.size
        if not width or not height:
            self._drawn = None
            return
        before, same_size = self._drawn, self._drawn_for == (width, height)
        after = self._draw_now()
        if before is None or not same_size:
            self.refresh()
            return
        changed = [Region(0, y, width, 1) for y in range(height) if _at(before, y) != _at(after, y)]
        if changed:
            self.refresh(*changed)

    def _draw_now(self) -> list[Line]:
        width, height = self.size
        self._drawn_for = (width, height)
        self._drawn = self.draw(width, height)[:height]
        return self._drawn

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        drawn = self._drawn
        if drawn is None or self._drawn_for != (width, height):
            drawn = self._draw_now()
        palette = palette_of(self.app)
        line = _at(drawn, y)
        if line is None:
            return Strip([Segment(" " * width, palette.style("text"))], width)
        line = line.cut(width)
        segments = [Segment(text, palette.style(role, line.ground)) for text, role in line.spans]
        if line.width < width:
            segments.append(Segment(" " * (width - line.width), palette.style("text", line.ground)))
        return Strip(segments, width)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.refresh())

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.repaint()


def _at(lines: list[Line], y: int) -> Line | None:
    return lines[y] if y < len(lines) else None
