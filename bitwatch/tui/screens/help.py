"""The keys, from the same table that binds them: those of the place where one is come first."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from bitwatch import config as configuration
from bitwatch.tui import keys
from bitwatch.tui.draw import plain
from bitwatch.tui.screens.dialog import Block, Page

NAMES_CELLS = 12
REST = (
    "ctrl+q leaves from everywhere; ctrl+c does nothing to the run, and closing the terminal "
    "does neither.",
    "The mouse works too: panels, the keys that are named, a process (twice: its details), and "
    "the head of a column (sorts by it; again: the other way round).",
)


class Help(Page):
    """`here` names the scopes of the place, what has the focus first."""

    def __init__(self, here: Sequence[str]) -> None:
        super().__init__("Keys", text(here))


def text(here: Sequence[str]) -> list[Block]:
    known = [scope for scope in keys.SCOPES if scope not in here]
    blocks: list[Block] = []
    for scope in [*(scope for scope in here if scope in keys.SCOPES), *known]:
        found = [key for key in keys.table() if key.scope == scope]
        if not found:
            continue
        title = keys.SCOPES[scope][0]
        if blocks:
            blocks.append(Block(Content("")))
        style = "bold $foreground" if scope in here else "bold $quiet"
        where = Content.styled(" · here" if scope in here else "", "$quiet")
        blocks.append(Block(Content.assemble((title, style)) + where))
        blocks += [_line(key) for key in found]
    file = plain(str(configuration.user_file()))
    change = f'Other keys: in {file}, under [keys], the word in grey and its keys, as in stop = "ctrl+s".'
    for words in (*REST, change):
        blocks += [Block(Content("")), Block(Content.styled(words, "$quiet"))]
    return blocks


def _line(key: keys.Key) -> Block:
    names = key.written or "no key"
    words = Content.assemble(
        (f"{names:<{NAMES_CELLS}} ", "bold $accent" if key.written else "$quiet"),
        (key.help, "$foreground"),
        (f"  {key.id}", "$quiet"),
    )
    return Block(words)
