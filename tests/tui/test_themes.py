"""Themes: the bundled ones, a user's own, broken ones, and terminals with few colours."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.theme import BUILTIN_THEMES

from bitwatch.tui import themes
from bitwatch.tui.palette import SIXTEEN, Palette

GOOD = """\
name = "mine"
dark = true
[colors]
background = "#000000"
surface = "#111111"
border = "#222222"
text = "#ffffff"
quiet = "#888888"
accent = "#00aaff"
fine = "#00ff00"
warning = "#ffff00"
bad = "#ff0000"
"""


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_the_bundled_themes_are_whole_and_dark_comes_first(tmp_path: Path) -> None:
    found, errors = themes.load(tmp_path / "none")
    assert errors == []
    assert [theme.name for theme in found] == ["dark", "colour-blind", "high-contrast", "light"]


@pytest.mark.parametrize("name", ["dark", "light", "high-contrast", "colour-blind"])
def test_all_text_can_be_read(name: str, tmp_path: Path) -> None:
    theme = next(t for t in themes.load(tmp_path)[0] if t.name == name)
    least = 7.0 if name == "high-contrast" else 4.5
    ground = theme.background or ""
    quiet = theme.variables["quiet"]
    for colour in (
        theme.foreground,
        theme.accent,
        theme.success,
        theme.warning,
        theme.error,
        quiet,
    ):
        assert colour and themes.contrast(colour, ground) >= least, (name, colour)


def test_contrast_is_that_of_wcag() -> None:
    assert themes.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert themes.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert themes.contrast("#123456", "#123456") == 1


def test_a_users_theme_joins_the_others_and_may_replace_one(tmp_path: Path) -> None:
    folder = tmp_path / "themes"
    write(folder, GOOD)
    write(folder, GOOD.replace('"mine"', '"dark"'), "dark.toml")
    found, errors = themes.load(folder)
    assert errors == []
    byname = {theme.name: theme for theme in found}
    assert byname["mine"].variables["quiet"] == "#888888"
    assert byname["dark"].accent == "#00aaff"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("accent", "acent"), "colors.acent: unknown key; did you mean colors.accent?"),
        (GOOD.replace('fine = "#00ff00"\n', ""), "colors.fine: this key is missing"),
        (GOOD.replace('"#ff0000"', '"reddish"'), 'colors.bad: "reddish" is not a colour'),
        (GOOD.replace('"#ff0000"', '"ansi_red"'), 'colors.bad: "ansi_red" is not a colour'),
        (GOOD.replace('"#ff0000"', "3"), "colors.bad: must be a string, not 3"),
        (GOOD.replace('"mine"', '" "'), "name: is empty"),
        (
            GOOD.replace('"#ffffff"', '"#404040"'),
            'colors.text: "#404040" on "#000000" has a contrast of 2.0:1 and cannot be read; '
            "take one of at least 3:1",
        ),
        (GOOD.replace('"#ff0000"', '"#500000"'), "colors.bad: "),
        ("name = ", "is not valid TOML"),
    ],
)
def test_a_broken_theme_is_skipped_with_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "themes", text)
    found, errors = themes.load(tmp_path / "themes")
    assert len(found) == 4
    assert len(errors) == 1 and words in errors[0] and errors[0].startswith(str(path))
    assert "\n" not in errors[0]


def test_textuals_own_themes_get_our_variables_too() -> None:
    for theme in BUILTIN_THEMES.values():
        found = themes.variables_of(theme)
        assert {"quiet", "faint", "fine", "bad", "accent-muted", "cursor-ground"} <= found.keys()


def test_in_sixteen_colours_nothing_disappears_into_the_ground(tmp_path: Path) -> None:
    from rich.color import ColorSystem

    for theme in themes.load(tmp_path)[0]:
        named = themes.variables_of(theme)
        colours = {
            "background": theme.background or "",
            "surface": theme.surface or "",
            "text": theme.foreground or "",
            "accent": theme.accent or "",
            "warning": theme.warning or "",
            **{
                n: named[n]
                for n in ("quiet", "faint", "fine", "bad", "accent-muted", "cursor-ground")
            },
        }
        palette = Palette(colours, sixteen=True, dark=theme.dark)
        for role in SIXTEEN:
            for ground in ("", "surface", "cursor-ground"):
                style = palette.style(role, ground)
                assert style.color and style.bgcolor
                drawn = style.color.downgrade(ColorSystem.STANDARD).number
                under = style.bgcolor.downgrade(ColorSystem.STANDARD).number
                assert drawn != under, (theme.name, role, ground)
