"""What a page over the dashboard has in common: a frame, a title, and the keys that close it."""

from __future__ import annotations

from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from bitwatch.tui import keys
from bitwatch.tui.screens.over import Over


class Block(NamedTuple):
    """A paragraph, its lines indented alike. `one_line` cuts it instead of breaking it."""

    text: Content
    indent: int = 0
    one_line: bool = False


class Page(Over[None]):
    """A scrolling text over the dashboard."""

    BINDINGS = keys.bindings("page")

    def __init__(self, title: str, body: list[Block]) -> None:
        super().__init__(classes="page")
        self._title = title
        self._body = body

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content(f"{keys.name('page-close')} closes")
            with VerticalScroll(id="scroll", can_focus=True):
                yield from map(_shown, self._body)

    async def replace(self, body: list[Block]) -> None:
        """Another text, in the same frame."""
        scroll = self.query_one("#scroll", VerticalScroll)
        await scroll.remove_children()
        await scroll.mount(*map(_shown, body))

    def action_close(self) -> None:
        self.dismiss()

    def action_scroll(self, lines: int) -> None:
        for scroll in self.query("#scroll"):  # which is not there yet in the first instant
            scroll.scroll_relative(y=lines, animate=False)


def _shown(block: Block) -> Static:
    words = Static(block.text, classes="line" if block.one_line else "")
    words.styles.padding = (0, 0, 0, block.indent)
    return words
