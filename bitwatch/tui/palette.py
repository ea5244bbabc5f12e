"""From roles ("quiet", "bad") to what a terminal can show of them.

Widgets name roles and never colours. In 16 colours the nearest match of a dark grey would be
black on black, so there the roles are the terminal's own colours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.style import Style
from textual.color import Color

from bitwatch.tui import source_colours
from bitwatch.tui.themes import variables_of

if TYPE_CHECKING:
    from textual.app import App
    from textual.theme import Theme

# Colours that rich's 16 matches exactly, in the order dark, light.
SIXTEEN = {
    "text": ((229, 229, 229), (0, 0, 0)),
    "quiet": ((127, 127, 127), (127, 127, 127)),
    "faint": ((127, 127, 127), (127, 127, 127)),
    "accent": ((0, 205, 205), (0, 0, 238)),
    "accent-muted": ((0, 205, 205), (0, 0, 238)),
    "fine": ((0, 205, 0), (0, 205, 0)),
    "warning": ((205, 205, 0), (205, 0, 205)),
    "bad": ((255, 0, 0), (205, 0, 0)),
}
GROUNDS = ("warning-ground", "bad-ground", "info-ground", "cursor-ground", "surface")


class Palette:
    """Styles by role and ground, each made once.

    A role is a colour name with optional words before it: "text", "strong text",
    "reverse accent"; a word like "@surface" names its ground.
    """

    def __init__(self, colours: dict[str, str], *, sixteen: bool, dark: bool) -> None:
        self._colours = {name: Color.parse(value).rich_color for name, value in colours.items()}
        if sixteen:
            for name, pair in SIXTEEN.items():
                self._colours[name] = Color(*pair[0 if dark else 1]).rich_color
            for name in source_colours.NAMES:
                self._colours[name] = self._colours["quiet"]
        self._sixteen = sixteen
        self._styles: dict[tuple[str, str], Style] = {}

    def style(self, role: str, ground: str = "") -> Style:
        known = self._styles.get((role, ground))
        if known is None:
            known = self._styles[role, ground] = self._make(role, ground)
        return known

    def _make(self, role: str, ground: str) -> Style:
        words = role.split()
        ground = next((word[1:] for word in words if word[0] == "@"), ground)
        name = words[-1] if words[-1][0] != "@" else "text"
        colour = self._colours.get(name, self._colours["text"])
        background = self._colours.get(ground or "background", self._colours["background"])
        if self._sixteen and ground in GROUNDS:  # no tints there: the cursor is said by reversing
            background = self._colours["background"]
            if ground == "cursor-ground":
                colour, background = background, self._colours["text"]
        if "reverse" in words:
            colour, background = self._colours["background"], colour
        return Style(color=colour, bgcolor=background, bold="strong" in words)


def palette_of(app: App) -> Palette:
    """The palette of the app's current theme on its terminal."""
    global _newest
    theme, sixteen = app.current_theme, app.console.color_system == "standard"
    of, of_sixteen, palette = _newest
    if palette is None or of is not theme or of_sixteen != sixteen:
        colours = tuple(sorted(_colours(theme).items()))
        palette = _cached(colours, sixteen, theme.dark)
        _newest = theme, sixteen, palette
    return palette


# What was asked for last: every line that is painted asks, and a theme has many colours.
_newest: tuple[Theme | None, bool, Palette | None] = (None, False, None)


def _colours(theme: Theme) -> dict[str, str]:
    named = variables_of(theme)
    accent = theme.accent or theme.primary
    return {
        **source_colours.source_colours(named["quiet"], accent),
        "background": theme.background or ("#121212" if theme.dark else "#efefef"),
        "surface": theme.surface or named["block-cursor-blurred-background"],
        "text": theme.foreground or ("#e0e0e0" if theme.dark else "#1e1e1e"),
        "accent": accent,
        "warning": theme.warning or theme.primary,
        **{name: named[name] for name in ("quiet", "faint", "fine", "bad", "accent-muted")},
        **{name: named[name] for name in GROUNDS if name in named},
    }


@lru_cache(maxsize=8)
def _cached(colours: tuple[tuple[str, str], ...], sixteen: bool, dark: bool) -> Palette:
    return Palette(dict(colours), sixteen=sixteen, dark=dark)
