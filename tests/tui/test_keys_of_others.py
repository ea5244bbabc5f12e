"""docs/keys.md: its column for bitwatch is the table of keys, and each row does what it says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.command import CommandPalette

from bitwatch.tui import keys, remap
from bitwatch.tui.key_names import key_of
from bitwatch.tui.screens.help import Help
from bitwatch.tui.screens.logs import Logs
from bitwatch.tui.screens.signal import SignalDialog
from bitwatch.tui.screens.themes import Themes
from tests.tui.conftest import Open, Stage

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "keys.md"
IDS = {
    "help": ["help"],
    "filter": ["filter"],
    "sort, next column": ["sort"],
    "sort, previous column": ["sort-back"],
    "sort the other way round": ["reverse"],
    "kill": ["signal"],
    "tree": ["tree"],
    "tag": ["tag"],
    "take all tags away": ["untag"],
    "pause": ["pause"],
    "quit": ["detach"],
    "suspend, until `fg`": ["suspend"],
    "palette": ["palette"],
    "theme": ["theme"],
    "logs": ["logs"],
    "follow, in the logs": ["logs-follow"],
    "move": ["list-up", "list-down"],
}


def rows() -> dict[str, list[str]]:
    """What the document says, by what it is for: the keys as Textual names them."""
    found = {}
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 7 and cells[1] not in ("for", "---"):
            found[cells[1]] = [key_of(name) for name in re.findall(r"`([^`]+)`", cells[2])]
    return found


def test_the_document_and_the_table_agree() -> None:
    assert rows() == {
        row: [name for id in ids for name in keys.get(id).all] for row, ids in IDS.items()
    }


def test_the_example_of_a_users_file_is_taken_as_it_is() -> None:
    example = re.search(r"\n    \[keys\]\n((?:    .*\n)+)", DOCUMENT.read_text())
    assert example
    given = tomllib.loads(example[1])
    assert len(remap.given(given, "config.toml")) == len(given) > 3


def pressed(row: str) -> list[str]:
    return rows()[row]


@pytest.mark.parametrize("key", pressed("help"))
async def test_help(stage: Open, key: str) -> None:
    async with stage() as at:
        await at.press(key)
        assert isinstance(at.app.screen, Help)


@pytest.mark.parametrize("key", pressed("filter"))
async def test_filter(stage: Open, key: str) -> None:
    async with stage() as at:
        await at.press(key, *"worker 1", "enter")
        assert "/worker 1" in at.text() and "worker 0 ·" not in at.text()
        await at.press("escape")
        assert "worker 0 ·" in at.text()


async def test_sort(stage: Open) -> None:
    async with stage() as at:
        panel = at.dashboard.processes
        seen = []
        for key in [*pressed("sort, next column"), *pressed("sort, previous column")]:
            await at.press(key)
            seen.append(panel.sort)
        assert seen[0] != seen[1] and seen[2] == seen[0] and not panel.as_tree
        for key in pressed("sort the other way round"):
            before = panel.backwards
            await at.press(key)
            assert panel.backwards is not before


@pytest.mark.parametrize("key", pressed("kill"))
async def test_kill(stage: Open, key: str) -> None:
    async with stage() as at:
        await at.press("4", "down", "down", key)
        assert isinstance(at.app.screen, SignalDialog)
        await at.press("enter")
        assert at.commands.signals == []
        await at.press(key, "down", "enter")
        await at.until(lambda: at.commands.signals)


async def test_k_only_moves(stage: Open) -> None:
    async with stage() as at:
        await at.press("4", "j", "j")
        panel = at.dashboard.processes
        here = panel.selection
        for up, down in zip(pressed("move")[:2], pressed("move")[2:], strict=True):
            await at.press(up)
            assert panel.selection != here
            await at.press(down)
            assert panel.selection == here
        assert at.app.screen is at.dashboard


@pytest.mark.parametrize("key", pressed("tree"))
async def test_tree(stage: Open, key: str) -> None:
    async with stage() as at:
        await at.press(key)
        assert "└─" not in at.text()
        await at.press(key)
        assert "└─" in at.text()


@pytest.mark.parametrize("key", pressed("take all tags away"))
async def test_tag(stage: Open, key: str) -> None:
    async with stage() as at:
        await at.press("4", *pressed("tag"), *pressed("tag"))
        assert len(at.dashboard.processes.tagged) == 2
        await at.press(key)
        assert not at.dashboard.processes.tagged


@pytest.mark.parametrize("key", pressed("pause"))
async def test_pause(stage: Open, key: str) -> None:
    async with stage() as at:
        await at.press(key)
        assert at.dashboard.paused
        await at.press(key)
        assert not at.dashboard.paused


@pytest.mark.parametrize("key", pressed("quit"))
async def test_quit(stage: Open, key: str) -> None:
    async with stage() as at:
        await at.press(key)
        assert at.app._exit and at.commands.asked == []


Row = tuple[str, Callable[[Stage], bool]]
PAGES: list[Row] = [
    ("palette", lambda at: isinstance(at.app.screen, CommandPalette)),
    ("theme", lambda at: isinstance(at.app.screen, Themes)),
    ("logs", lambda at: isinstance(at.app.screen, Logs)),
]


@pytest.mark.parametrize(("row", "opened"), PAGES, ids=[row for row, _ in PAGES])
async def test_pages(stage: Open, row: str, opened: Callable[[Stage], bool]) -> None:
    async with stage() as at:
        for key in pressed(row):
            await at.press(key)
            assert opened(at)
            await at.press("escape")
            await at.until(lambda: at.app.screen is at.dashboard)


@pytest.mark.parametrize("key", pressed("follow, in the logs"))
async def test_follow(stage: Open, key: str) -> None:
    async with stage() as at:
        log = at.source.run.logs(1) / "rank0.log"
        log.write_text("".join(f"line {n}\n" for n in range(500)))
        await at.press("l")
        await at.until(lambda: "line 499" in at.text())
        await at.press("home")
        await at.until(lambda: "line 499" not in at.text())
        await at.press(key)
        await at.until(lambda: "line 499" in at.text())
        with log.open("a") as more:
            more.write("and on\n")
        await at.until(lambda: "and on" in at.text())
        assert "line 499" in at.text()
