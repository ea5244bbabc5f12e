"""The page of themes: each is seen on the real screen before it is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Key
from textual.widgets import Static

from bitwatch import config as configuration
from bitwatch.tui import start
from bitwatch.tui.kept import NAME, Keeping, read
from bitwatch.tui.looks import Looks, Wishes
from bitwatch.tui.palette import SIXTEEN
from bitwatch.tui.screens.themes import SWATCHES, Themes
from bitwatch.tui.themes import load
from tests.tui.conftest import Open, Stage
from tests.tui.test_themes import GOOD


def ground(at: Stage) -> str:
    """What the header is painted on, wherever the page lies over it."""
    strip = at.app.screen._compositor.render_strips(at.app.size)[0]
    style = next(s.style for s in strip if "demo" in s.text)
    assert style is not None and style.bgcolor is not None
    triplet = style.bgcolor.triplet
    assert triplet is not None
    return triplet.hex


def backgrounds() -> dict[str, str]:
    return {theme.name: str(theme.background) for theme in load()[0]}


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_moving_previews_on_the_screen_behind(stage: Open, size: tuple[int, int]) -> None:
    async with stage(*size) as at:
        await at.press("T")
        assert isinstance(at.app.screen, Themes)
        for name, colour in backgrounds().items():
            assert f"▸ {name}" in at.text()
            assert at.app.theme == name and ground(at) == colour
            await at.press("j")
        assert "RUNNING" in at.text() and "q detach" in at.text()


async def test_enter_keeps_and_escape_gives_the_old_one_back(stage: Open, tmp_path: Path) -> None:
    keeping = Keeping(tmp_path)
    async with stage(keeping=keeping) as at:
        for back in ("escape", "q", "T"):
            await at.press("T", "down", "down")
            assert at.app.theme == "high-contrast"
            await at.press(back)
            assert at.app.screen is at.dashboard and at.app.theme == "dark"
            assert ground(at) == backgrounds()["dark"]
        keeping.close()
        assert read(tmp_path / NAME).theme == ""
        await at.press("T", "up", "enter")
        assert at.app.screen is at.dashboard and at.app.theme == "light"
        assert ground(at) == backgrounds()["light"]
        keeping.close()
        assert read(tmp_path / NAME).theme == "light"
        assert at.toasts() == []


async def test_keys_that_come_at_once_leave_the_old_one_too(stage: Open) -> None:
    async with stage() as at:
        await at.press("T")
        for name in ("down", "escape"):  # as one packet: nothing is handled between them
            at.app._driver.process_message(Key(name, None))
        await at.until(lambda: at.app.screen is at.dashboard)
        await at.pilot.pause()
        assert at.app.theme == "dark" and ground(at) == backgrounds()["dark"]


async def test_a_click_takes_one(stage: Open) -> None:
    async with stage() as at:
        await at.press("T")
        await at.pilot.click("#themes", offset=(4, 3))
        await at.until(lambda: at.app.screen is at.dashboard)
        assert at.app.theme == "light"


async def test_the_palette_leads_to_it(stage: Open) -> None:
    async with stage() as at:
        await at.press("ctrl+p", *"theme")
        await at.until(lambda: "Other colours" in at.text())
        titles = {command.title: command for command in at.app.get_system_commands(at.dashboard)}
        assert "Theme" in titles and "Theme: light" in titles
        await at.press("escape")
        await titles["Theme"].callback()
        await at.until(lambda: isinstance(at.app.screen, Themes))


async def test_a_theme_that_the_users_file_overrules_says_so(stage: Open, tmp_path: Path) -> None:
    async with stage(theme="dark", keeping=Keeping(tmp_path)) as at:
        await at.press("T", "up", "enter")
        assert at.app.theme == "light"
        assert any('names the theme "dark" for the next time' in toast for toast in at.toasts())


async def test_a_file_written_meanwhile_is_there_and_a_broken_one_is_said(
    stage: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = configuration.user_file().parent / "themes"
    async with stage() as at:
        folder.mkdir(parents=True)
        (folder / "mine.toml").write_text(GOOD)
        bad = folder / "bad.toml"
        bad.write_text(GOOD.replace('"mine"', '"bad"').replace('"#ff0000"', '"#300000"'))
        await at.press("T")
        assert "mine" in at.text()
        (said,) = [
            str(one.content) for one in at.app.screen.query("#complaints Static").results(Static)
        ]
        assert said.startswith(f"{bad}: colors.bad: ") and "contrast" in said
        assert "cannot be read; take" in at.text() and at.toasts() == []
        await at.press("up", "enter")
        assert at.app.theme == "mine" and ground(at) == "#000000"


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_many_broken_files_are_one_toast_and_all_said_on_the_page(
    stage: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = configuration.user_file().parent / "themes"
    folder.mkdir(parents=True)
    for name in "abcd":
        (folder / f"{name}.toml").write_text("[not a theme")
    async with stage(*size, complaints=load()[1]) as at:
        assert at.toasts() == ["4 themes are not right: T says why"]
        await at.press("T")
        assert at.toasts() == [] and "▸ dark" in at.text()
        below = at.app.screen.query_one("#complaints")
        # Not by what stands on the screen: where a line ends depends on the folder of the test.
        assert all("is not valid TOML" in str(said.render()) for said in below.children)
        assert len(below.children) == 4 and below.region.bottom < at.app.size.height
        assert at.app.screen.focused is at.app.screen.query_one("#themes")


async def test_with_sixteen_colours_it_shows_those(
    stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "linux")
    for name in ("COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    async with stage() as at:
        assert at.app.console.color_system == "standard"
        await at.press("T", "down")
        assert "Theme · 16 colours" in at.text()
        rows = at.app.screen._compositor.render_strips(at.app.size)
        row = next(row for row in rows if "▸ colour-blind" in row.text)
        drawn = [s.style.color.triplet for s in row if s.style and s.style.color and "██" in s.text]
        assert [tuple(each or ()) for each in drawn] == [SIXTEEN[role][0] for role in SWATCHES]


@pytest.mark.parametrize(("term", "greys"), [("dumb", True), ("", True), ("xterm", False)])
def test_a_terminal_without_colours_gets_greys(
    monkeypatch: pytest.MonkeyPatch, term: str, greys: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", "")  # what is set from here on does not outlive the test
    monkeypatch.delenv("NO_COLOR")
    start.greys_if_dumb()
    assert Looks(load()[0], "dark", Wishes()).no_color is greys
