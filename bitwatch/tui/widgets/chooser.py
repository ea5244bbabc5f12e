"""A page of lines on which one of several things is chosen; it scrolls where it is higher
than the terminal."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Size

from bitwatch.tui import keys
from bitwatch.tui.draw import Line
from bitwatch.tui.widgets.painted import Painted

Drawing = Callable[[int, int], list[Line]]  # for a width, and which of the things is chosen


class Chooser(VerticalScroll, can_focus=True):
    """`chosen` of `count` things. With only one the arrows scroll."""

    DEFAULT_CSS = "Chooser { scrollbar-size-vertical: 1; }"
    BINDINGS = keys.bindings("corrections")

    def __init__(self, drawing: Drawing, count: int) -> None:
        super().__init__(id="chooser")
        self.count = count
        self.chosen = 0
        self._drawing = drawing

    def compose(self) -> ComposeResult:
        yield Sheet(lambda width: self._drawing(width, self.chosen))

    def action_choose(self, by: int) -> None:
        if self.count > 1:
            self.chosen = (self.chosen + by) % self.count
            self.query_one(Sheet).change()
        else:
            self.action_move(by)

    def action_move(self, lines: int) -> None:
        self.scroll_relative(y=lines, animate=False)


class Sheet(Painted):
    """Lines as high as they are."""

    DEFAULT_CSS = "Sheet { height: auto; width: 1fr; }"

    def __init__(self, drawing: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._drawing = drawing

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._drawing(width))

    def draw(self, width: int, height: int) -> list[Line]:
        return self._drawing(width)

    def change(self) -> None:
        """What it shows is another now, and may be higher."""
        self._drawn = None
        self.refresh(layout=True)
