"""The keys, from the same table that binds them."""

from __future__ import annotations

from textual.content import Content

from bitwatch.tui import keys
from bitwatch.tui.screens.dialog import Block, Page

WIDTH = 14
NAMES = {"question_mark": "?", "f1": "F1", "f9": "F9", "full_stop": ".", "comma": ",", "slash": "/"}


class Help(Page):
    BINDINGS = [("question_mark,h,f1", "close", "close")]

    def __init__(self) -> None:
        super().__init__("Keys", text())


def text() -> list[Block]:
    lines = []
    for key in keys.KEYS:
        names = ", ".join(_written(name) for name in key.keys.split(","))
        lines.append(
            Content.assemble((f"{names:<{WIDTH}}", "bold $accent"), (key.help, "$foreground"))
        )
    lines += [
        Content(""),
        Content.styled(
            "ctrl+c does nothing to the run. Closing the terminal does neither.", "$quiet"
        ),
        Content.styled(
            "The mouse works too: panels, the keys that are named, a process (twice: its details), and "
            "the head of a column (sorts by it; again: the other way round).",
            "$quiet",
        ),
    ]
    return [Block(line) for line in lines]


def _written(name: str) -> str:
    return NAMES.get(name, name)
