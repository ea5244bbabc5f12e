"""The themes: each with its colours in a line, and seen on the whole screen before it is chosen.
Below them stands what is wrong with the files of others."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.theme import Theme
from textual.widgets import OptionList, Static

from bitwatch.tui import keys
from bitwatch.tui.draw import fit, plain
from bitwatch.tui.palette import SIXTEEN
from bitwatch.tui.screens.over import Over
from bitwatch.tui.themes import variables_of
from bitwatch.tui.widgets.options import Options

NAME_CELLS = 13
SWATCHES = ("accent", "fine", "warning", "bad", "text", "quiet")


class Themes(Over[str | None]):
    """Dismissed with the theme that is wanted; without one, the old one is back."""

    BINDINGS = [*keys.bindings("themes", "choice"), keys.closing("theme")]
    AUTO_FOCUS = "#themes"

    def __init__(self, themes: Sequence[Theme], complaints: Sequence[str] = ()) -> None:
        super().__init__()
        self._themes = list(themes)
        self._complaints = list(complaints)
        self._before = ""
        self._closes = False
        self._list = Options(*(theme.name for theme in themes), id="themes", markup=False)

    def compose(self) -> ComposeResult:
        broken = " -broken" if self._complaints else ""
        with Vertical(classes=f"dialog themes{broken}") as dialog:
            dialog.border_title = "Theme · 16 colours" if self._sixteen() else "Theme"
            takes, closes = keys.name("theme-keep"), keys.name("theme-back")
            dialog.border_subtitle = Content(f"{takes} keeps · {closes} goes back")
            yield self._list
            if self._complaints:
                with VerticalScroll(id="complaints"):
                    yield from (Static(Content(plain(text))) for text in self._complaints)

    def on_mount(self) -> None:
        self._before = self.app.theme
        names = [theme.name for theme in self._themes]
        if self._before in names:
            self._list.highlighted = names.index(self._before)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The mark is a sign, for the colours of the line are those of its theme."""
        for at, theme in enumerate(self._themes):
            line = _line(theme, at == event.option_index, self._sixteen())
            event.option_list.replace_option_prompt_at_index(at, line)
        # Before that it is only the first line, and a page that closes is told of late moves too.
        if self._before and not self._closes:
            self.app.theme = self._themes[event.option_index].name

    def _sixteen(self) -> bool:
        """There the themes are but two, as the terminal colours them."""
        return self.app.console.color_system == "standard"

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._themes[event.option_index].name)

    def action_keep(self) -> None:
        at = self._list.highlighted
        self.dismiss(None if at is None else self._themes[at].name)

    def action_move(self, by: int) -> None:
        self._list.action_cursor_down() if by > 0 else self._list.action_cursor_up()

    def action_close(self) -> None:
        self._closes = True
        self.app.theme = self._before
        self.dismiss(None)


def _line(theme: Theme, chosen: bool, sixteen: bool) -> Content:
    """Its name in its own colours, and one block of each of the others, on its ground."""
    named = variables_of(theme)
    colours = {
        "accent": theme.accent or theme.primary,
        "warning": theme.warning or theme.primary,
        "text": theme.foreground or "",
        **{name: named[name] for name in ("fine", "bad", "quiet")},
    }
    if sixteen:
        at = 0 if theme.dark else 1
        colours = {role: Color(*SIXTEEN[role][at]).hex for role in colours}
    ground = theme.background or ""
    name = plain(theme.name)
    mark = "▸" if chosen else " "
    parts = [(f"{mark} {fit(name, NAME_CELLS)} ", f"{colours['text']} on {ground}")]
    parts += [("██ ", f"{colours[role]} on {ground}") for role in SWATCHES]
    return Content.assemble(*parts)
