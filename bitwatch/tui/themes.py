"""Themes from TOML files: those that ship with bitwatch, then the user's own.

A file names nine colours and nothing else, so that every theme has the same hierarchy: one
accent, one colour each for fine, warning and bad, and two greys. A file that is broken is
skipped, and the sentence that says why is handed to the screen.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import platformdirs
from textual.color import Color, ColorParseError
from textual.theme import Theme

from bitwatch.config import bundled
from bitwatch.strict import ConfigError, convert, read_toml

DEFAULT = "dark"
MUTED = 0.55  # of the accent that the band around the curve keeps
LEAST_CONTRAST = 3.0  # of what must be read
READ = ("text", "accent", "fine", "warning", "bad")
GROUND = 0.14  # of a severity's colour behind its alert


class Colors(msgspec.Struct, kw_only=True):
    """`surface` lies under bars and the selected row, `border` draws frames and empty tracks,
    `quiet` is the second grey: labels, units, what is of no interest now."""

    background: str
    surface: str
    border: str
    text: str
    quiet: str
    accent: str
    fine: str
    warning: str
    bad: str


class ThemeFile(msgspec.Struct, kw_only=True):
    name: str
    dark: bool
    colors: Colors


def load(folder: Path | None = None) -> tuple[list[Theme], list[str]]:
    """All themes, the default first, and a sentence for each file that could not be used.

    A user's theme replaces a bundled one of the same name. `folder` defaults to `themes` in
    the user's configuration folder.
    """
    themes: dict[str, Theme] = {}
    errors: list[str] = []
    user = folder or platformdirs.user_config_path("bitwatch") / "themes"
    for path in [*_files(bundled("themes")), *_files(user)]:
        try:
            theme = read(path)
        except ConfigError as error:
            errors.append(str(error))
        else:
            themes[theme.name] = theme
    names = sorted(themes, key=lambda name: (name != DEFAULT, name))
    return [themes[name] for name in names], errors


def read(path: Path) -> Theme:
    """One file as a theme; a ConfigError names the file, the key and the remedy."""
    table = read_toml(path)
    file: ThemeFile = convert(table, ThemeFile, str(path))
    if not file.name.strip():
        raise ConfigError(f"{path}: name: is empty; give the theme a name to be chosen by")
    for key in Colors.__struct_fields__:
        value = getattr(file.colors, key)
        try:
            opaque = Color.parse(value).a == 1 and "ansi" not in value
        except ColorParseError:
            opaque = False
        if not opaque:
            raise ConfigError(
                f'{path}: colors.{key}: "{value}" is not a colour; write it as "#rrggbb"'
            )
    for key in READ:
        value = getattr(file.colors, key)
        if (found := contrast(value, file.colors.background)) < LEAST_CONTRAST:
            raise ConfigError(
                f'{path}: colors.{key}: "{value}" on "{file.colors.background}" has a contrast of '
                f"{found:.1f}:1 and cannot be read; take one of at least {LEAST_CONTRAST:.0f}:1"
            )
    return to_theme(file)


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2.1 defines it: 1 for the same, 21 for black on white."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in Color.parse(colour).normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def to_theme(file: ThemeFile) -> Theme:
    """A Textual theme whose variables carry our names: $quiet, $faint, $fine, $bad."""
    colors = file.colors
    return Theme(
        name=file.name,
        primary=colors.accent,
        secondary=colors.quiet,
        accent=colors.accent,
        foreground=colors.text,
        background=colors.background,
        surface=colors.surface,
        panel=colors.surface,
        success=colors.fine,
        warning=colors.warning,
        error=colors.bad,
        dark=file.dark,
        variables=_variables(colors),
    )


def _variables(colors: Colors) -> dict[str, str]:
    ours = {
        "quiet": colors.quiet,
        "faint": colors.border,
        "fine": colors.fine,
        "bad": colors.bad,
        "accent-muted": _mix(colors.background, colors.accent, MUTED),
        "warning-ground": _mix(colors.background, colors.warning, GROUND),
        "bad-ground": _mix(colors.background, colors.bad, GROUND),
        "info-ground": _mix(colors.background, colors.accent, GROUND),
        "cursor-ground": _mix(colors.background, colors.accent, 0.24),
    }
    return {
        **ours,
        "border": colors.accent,
        "border-blurred": colors.border,
        "block-cursor-background": ours["cursor-ground"],
        "block-cursor-foreground": colors.text,
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": colors.surface,
        "block-cursor-blurred-foreground": colors.text,
        "footer-key-foreground": colors.accent,
        "scrollbar": colors.border,
        "scrollbar-hover": colors.quiet,
        "scrollbar-active": colors.accent,
        "scrollbar-background": colors.background,
        "scrollbar-background-hover": colors.background,
        "scrollbar-background-active": colors.background,
    }


def variables_of(theme: Theme) -> dict[str, str]:
    """Our variables for any theme, Textual's own too: `App.get_theme_variable_defaults`
    returns this, so that the stylesheet may use $quiet and $faint whatever is chosen."""
    text = theme.foreground or ("#e0e0e0" if theme.dark else "#1e1e1e")
    ground = theme.background or ("#121212" if theme.dark else "#efefef")
    accent = theme.accent or theme.primary
    colors = Colors(
        background=ground,
        surface=theme.surface or _mix(ground, text, 0.05),
        border=_mix(ground, text, 0.25),
        text=text,
        quiet=_mix(ground, text, 0.58),
        accent=accent,
        fine=theme.success or accent,
        warning=theme.warning or accent,
        bad=theme.error or accent,
    )
    return {**_variables(colors), **theme.variables}


def _mix(ground: str, colour: str, share: float) -> str:
    """`share` of a colour on a ground. Terminal colours cannot be mixed and stay as they are."""
    one, other = Color.parse(ground), Color.parse(colour)
    if one.ansi is not None or other.ansi is not None:
        return colour if share >= 0.5 else ground
    return one.blend(other, share).hex


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.toml"))
    except OSError:
        return []
