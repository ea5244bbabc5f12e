"""The keys, from the same table that binds them."""

from __future__ import annotations

from textual.content import Content

from bitwatch.tui import keys
from bitwatch.tui.screens.dialog import Block, Page

WIDTH = 14


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
        Content.styled("The mouse works too: panels, and the keys that are named.", "$quiet"),
    ]
    return [Block(line) for line in lines]


def _written(name: str) -> str:
    return {"question_mark": "?", "f1": "F1"}.get(name, name)
