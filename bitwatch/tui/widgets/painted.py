"""What every widget of the dashboard shares: it draws a View into lines, and repaints only
the lines that look different from last time. Over a slow connection that is what counts.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style
from textual import events
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
        self._strips: dict[int, tuple[Line | None, Strip]] = {}  # by line: of what it is
        self._styles: dict[tuple[str, str], Style] = {}  # by role and ground, through the filters
        self._painted_for: object = None

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
        changed = []
        for y in range(height):
            was, line = _at(before, y), _at(after, y)
            if was != line:
                changed.append(Region(0, y, width, 1))
            elif was is not None:
                after[y] = was  # its strip stays as it is too
        if changed:
            self.refresh(*changed)

    def _draw_now(self) -> list[Line]:
        width, height = self.size
        self._drawn_for = (width, height)
        self._drawn = self.draw(width, height)[:height]
        return self._drawn

    def _current(self, size: tuple[int, int]) -> list[Line]:
        if self._drawn is None or self._drawn_for != size:
            return self._draw_now()
        return self._drawn

    def render_line(self, y: int) -> Strip:
        size = self.size
        return _strip(_at(self._current(size), y), size.width, palette_of(self.app).style)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Whenever anything on the screen changes every widget is asked for all its lines: most
        are the strips that they were. Of borders and the like nothing is looked up, for there is
        none here."""
        if self.styles.gutter:
            return super().render_lines(crop)
        size = self.size
        drawn, width = self._current(size), size.width
        painted = (palette_of(self.app), width, self.get_line_filters())
        if self._painted_for != painted:
            self._painted_for = painted
            self._strips.clear()
            self._styles.clear()
        strips = []
        for y in crop.line_range:
            line, kept = _at(drawn, y), self._strips.get(y)
            if kept is None or kept[0] is not line:
                kept = self._strips[y] = line, _strip(line, width, self._filtered)
            strips.append(kept[1])
        if crop.column_span != (0, width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def _filtered(self, role: str, ground: str = "") -> Style:
        """As the palette has it, but for a terminal without colours and the like. What Textual's
        filters make of a segment depends on its style alone, so each style goes through once."""
        style = self._styles.get((role, ground))
        if style is None:
            segments = [Segment(" ", palette_of(self.app).style(role, ground))]
            for each in self.get_line_filters():
                segments = each.apply(segments, self.background_colors[1])
            style = self._styles[role, ground] = segments[0].style or Style.null()
        return style

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.refresh())

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.repaint()

    def _on_focus(self, event: events.Focus) -> None:
        """Textual's own would paint all lines again, not those that look different now."""
        event.prevent_default()
        self.has_focus = True
        if self.parent is not None:
            self.parent.post_message(events.DescendantFocus(self))

    def _on_blur(self, event: events.Blur) -> None:
        event.prevent_default()
        self.has_focus = False
        if self.parent is not None:
            self.parent.post_message(events.DescendantBlur(self))


def _at(lines: list[Line], y: int) -> Line | None:
    return lines[y] if y < len(lines) else None


def _strip(line: Line | None, width: int, style_of: Callable[..., Style]) -> Strip:
    """A line in the colours that `style_of` gives its roles, with what is missing to the width."""
    if line is None:
        return Strip([Segment(" " * width, style_of("text"))], width)
    line = line.cut(width)
    segments = [Segment(text, style_of(role, line.ground)) for text, role in line.spans]
    if line.width < width:
        segments.append(Segment(" " * (width - line.width), style_of("text", line.ground)))
    return Strip(segments, width)
