"""The picture of a page of logs: the bar of sources, the lines, and what is said below them."""

from __future__ import annotations

from textual import events as textual_events
from textual.message import Message

from bitwatch.tui.draw import Line
from bitwatch.tui.log_book import Picture
from bitwatch.tui.widgets.filter_line import FilterLine
from bitwatch.tui.widgets.painted import Painted

WHEEL_LINES = 3
OWN_LINES = 2  # the bar and the last line


class LogView(Painted):
    DEFAULT_CSS = "LogView { width: 1fr; height: 1fr; }"
    default_id = "log"

    class Scrolled(Message):
        """By the mouse."""

        def __init__(self, lines: int) -> None:
            super().__init__()
            self.lines = lines

    class Chosen(Message):
        """A source in the bar was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__()
        self.picture: Picture | None = None
        self.entry = FilterLine("finds it", "leaves")

    def paint(self, picture: Picture) -> None:
        self.picture = picture
        self.repaint()

    def draw(self, width: int, height: int) -> list[Line]:
        picture = self.picture
        if picture is None:
            return []
        room = max(0, height - OWN_LINES)
        body = picture.lines[:room]
        body += [Line() for _ in range(room - len(body))]
        last = self.entry.line(width) if self.entry.editing else picture.status
        return [picture.bar, *body, last]

    def on_mouse_scroll_down(self, event: textual_events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Scrolled(WHEEL_LINES))

    def on_mouse_scroll_up(self, event: textual_events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Scrolled(-WHEEL_LINES))

    def on_click(self, event: textual_events.Click) -> None:
        if event.y == 0 and self.picture is not None:
            for begin, end, number in self.picture.bar_places:
                if begin <= event.x < end:
                    self.post_message(self.Chosen(number))
