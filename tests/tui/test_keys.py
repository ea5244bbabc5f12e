"""The one table of keys: what it binds, and how help, footer and palette show it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.widgets import OptionList

import bitwatch.tui
from bitwatch.tui import keys
from bitwatch.tui.actions import do
from bitwatch.tui.key_names import written
from bitwatch.tui.screens.confirm import ConfirmStop
from bitwatch.tui.screens.help import Help, lines, ordered
from bitwatch.tui.screens.logs import Logs
from bitwatch.tui.screens.signal import SignalDialog
from bitwatch.tui.screens.why import Why
from bitwatch.tui.where import bound, scopes
from tests.tui.conftest import Open

FOLDER = Path(bitwatch.tui.__file__).parent


def test_no_key_means_two_things_in_one_scope() -> None:
    held = Counter((key.scope, name) for key in keys.KEYS for name in key.keys.split(","))
    assert [each for each, times in held.items() if times > 1] == []


def test_every_action_has_a_plain_name_of_its_own_and_a_known_scope() -> None:
    ids = [key.id for key in keys.KEYS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id) for id in ids)
    assert {key.scope for key in keys.KEYS} <= set(keys.SCOPES)
    assert set(keys.NEEDED) | set(keys.OPENERS) | set(keys.PANELS) <= set(ids)


def test_nothing_is_bound_outside_the_table() -> None:
    """No module but the table makes a Binding, and every BINDINGS comes from it."""
    assert (FOLDER / "keys.py").exists()
    for path in FOLDER.rglob("*.py"):
        if path.name == "keys.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("Binding", "self.bind"), path
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BINDINGS":
                assert "'" not in re.sub(r"keys\.\w+\([^)]*\)", "", ast.unparse(node.value)), path


async def test_every_key_of_the_dashboard_is_bound_there(stage: Open) -> None:
    async with stage() as at:
        there = {each.key.id for each in bound(at.dashboard)}
        wanted = {key.id for key in keys.KEYS if key.scope in ("", "list", "curves", "gpus")}
        assert there == wanted


async def test_the_help_begins_with_the_place_where_one_is(stage: Open) -> None:
    async with stage(120, 55) as at:
        await at.press("?")
        assert at.text().index("On the dashboard") < at.text().index("In the list of processes")
        await at.press("?", "4", "f1")
        assert isinstance(at.app.screen, Help)
        assert at.text().index("In the list of processes") < at.text().index("On the dashboard")
        await at.press("escape")
        assert at.app.screen is at.dashboard


@pytest.mark.parametrize(
    ("press", "kind", "title"),
    [
        ("w", Why, "On every page"),
        ("l", Logs, "On the page of logs"),
        ("S", ConfirmStop, "In a question with buttons"),
        ("K", SignalDialog, "In a list to choose from"),
    ],
)
async def test_the_help_is_had_on_pages_and_in_questions(
    stage: Open, press: str, kind: type, title: str
) -> None:
    async with stage(120, 50) as at:
        await at.press(press)
        assert isinstance(at.app.screen, kind)
        await at.press("f1")
        assert isinstance(at.app.screen, Help)
        first = next(row for row in at.text().splitlines() if "name in the file" in row)
        assert title in first
        await at.press("f1")
        assert isinstance(at.app.screen, kind)
        assert at.commands.asked == [] and at.commands.signals == []


@pytest.mark.parametrize("width", [30, 52, 72, 93])
def test_the_help_names_every_key_at_any_width(width: int) -> None:
    drawn = lines(["list", ""], width)
    assert all(line.width <= width for line in drawn)
    whole = " ".join(line.text.strip() for line in drawn)
    words = re.sub(r"\s+", " ", whole)
    for key in keys.KEYS:
        assert written(key.keys.split(",")[0]) in whole
        if width >= 85:
            assert key.id in whole
    assert keys.get("stop").help.split()[0] in words
    assert ordered(["list", ""])[:2] == ["list", ""]
    assert len(ordered([])) == len({key.scope for key in keys.KEYS})


async def test_the_palette_has_every_action_with_its_keys(stage: Open) -> None:
    async with stage() as at:
        offered = list(at.app.get_system_commands(at.dashboard))
        texts = [command.help for command in offered]
        for key in keys.KEYS:
            if key.scope in ("", "list") and key.id != "palette":
                assert f"{key.written}: {key.help}" in texts
        titles = [command.title for command in offered]
        assert len(set(titles)) == len(titles)


async def test_the_palette_finds_by_a_few_letters_and_runs_it(stage: Open) -> None:
    async with stage() as at:
        await at.press("ctrl+p")
        assert isinstance(at.app.screen, CommandPalette)
        await at.press(*"smth")
        found = at.app.screen.query_one(OptionList)
        await at.until(lambda: found.option_count and "Smooth" in at.text())
        assert "m: Smoothing" in at.text()
        await at.press("enter")
        await at.until(lambda: at.dashboard.loss.smoothing)
        assert at.app.screen is at.dashboard


async def test_the_palette_runs_what_a_panel_does_on_that_panel(stage: Open) -> None:
    async with stage() as at:
        await at.press("1", "ctrl+p", *"last")
        await at.until(lambda: "The last process" in at.text())
        await at.press("enter")
        await at.until(lambda: at.dashboard.processes.has_focus)
        await at.until(lambda: (at.dashboard.processes.selection or (0,))[0] == 107)
        assert at.app.screen is at.dashboard and not at.dashboard.gpus.has_focus


async def test_what_was_chosen_on_a_page_that_is_left_is_not_done(stage: Open) -> None:
    async with stage() as at:
        await at.press("o")
        offered = [each for each in bound(at.app.screen) if each.node is at.app.screen]
        assert {"compare-choose", "compare-filter"} <= {each.key.id for each in offered}
        await at.press("escape")
        assert at.app.screen is at.dashboard
        for each in offered:
            await do(at.app, each)
        assert at.app.screen is at.dashboard


async def test_the_palette_over_a_page_has_the_actions_of_that_page(stage: Open) -> None:
    async with stage() as at:
        await at.press("w")
        titles = {command.title for command in at.app.get_system_commands(at.app.screen)}
        assert "Close" in titles and "Stop" not in titles
        await at.press("ctrl+p", *"close")
        await at.until(lambda: "Back to the dashboard" in at.text())
        await at.press("enter")
        await at.until(lambda: at.app.screen is at.dashboard)


async def test_a_place_knows_its_scopes(stage: Open) -> None:
    async with stage() as at:
        assert scopes(at.dashboard) == [""]
        await at.press("4")
        assert scopes(at.dashboard) == ["list", ""]
        await at.press("w")
        assert scopes(at.app.screen)[0] == "page"


async def test_ctrl_q_leaves_from_everywhere(stage: Open) -> None:
    for presses in ((), ("w",), ("S",), ("?",), ("T",), ("K",), ("4", "/")):
        async with stage() as at:
            await at.press(*presses, "ctrl+q")
            assert at.app._exit and at.source.closed
            assert at.commands.asked == []
