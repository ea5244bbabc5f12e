"""The keys, from the same table that binds them: those of the place where one is come first."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content

from bitwatch import config as configuration
from bitwatch.tui import keys
from bitwatch.tui.draw import Line, fit, folded, plain
from bitwatch.tui.screens.dialog import Page
from bitwatch.tui.widgets.chooser import Sheet

NAMES_CELLS = 13
ID_CELLS = 21
WITH_IDS_CELLS = 84  # from here on there is room for the words that the user's file knows


class Help(Page):
    """`here` names the scopes of the place, what has the focus first."""

    def __init__(self, here: Sequence[str]) -> None:
        super().__init__("Keys", [])
        self._here = here

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content(f"{keys.name('page-close')} closes")
            with VerticalScroll(id="scroll", can_focus=True):
                yield Sheet(lambda width: lines(self._here, width))


def lines(here: Sequence[str], width: int) -> list[Line]:
    """One scope after the other; of the places where one is not, in grey."""
    width -= 1  # beside the bar that scrolls
    drawn: list[Line] = []
    for scope in ordered(here):
        found = [key for key in keys.table() if key.scope == scope]
        title = keys.SCOPES[scope][0]
        at = scope in here
        drawn += [Line()] if drawn else []
        head = Line(title, "strong text" if at else "strong quiet")
        if width >= WITH_IDS_CELLS and not drawn:
            head.pad(width - ID_CELLS).add("name in the file", "quiet")
        drawn.append(head.cut(width))
        for key in found:
            drawn += _of(key, width)
    return [*drawn, *_rest(width)]


def ordered(here: Sequence[str]) -> list[str]:
    """The scopes that have keys, those of the place first."""
    there = {key.scope for key in keys.table()}
    first = [scope for scope in here if scope in there]
    return [*first, *(scope for scope in keys.SCOPES if scope in there and scope not in first)]


def _of(key: keys.Key, width: int) -> list[Line]:
    many = len(key.written) > NAMES_CELLS and key.shown
    names = fit((key.shown if many else key.written) or "no key", NAMES_CELLS)
    begin = Line(f"{names} ", "strong accent" if key.written else "quiet")
    room = width - ID_CELLS if width >= WITH_IDS_CELLS else width
    drawn = folded(key.help, room - 2, "text", begin)
    if room < width:
        drawn[0].pad(room).add(key.id, "quiet")
    return drawn


def _rest(width: int) -> list[Line]:
    file = plain(str(configuration.user_file()))
    drawn = []
    for words in (
        "ctrl+q leaves from everywhere. ctrl+c does nothing to the run, and closing the terminal "
        "does neither.",
        "The mouse works too: panels, the keys that are named, a process (twice: its details), and "
        "the head of a column (sorts by it; again: the other way round).",
        f'Other keys: in {file}, under [keys], a line for each, as in stop = "ctrl+s".',
    ):
        drawn += [Line(), *folded(words, width, "quiet", Line())]
    return drawn
