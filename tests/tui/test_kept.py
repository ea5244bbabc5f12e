"""How the screen was left is how the next one begins."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bitwatch import config as configuration
from bitwatch.record import rundir
from bitwatch.tui import start
from bitwatch.tui.kept import NAME, Keeping, Kept, read
from tests.tui.conftest import Open, Stage


def changed(at: Stage) -> dict[str, Any]:
    board = at.dashboard
    return {
        "theme": at.app.theme,
        "log": board.loss.log_scale,
        "smoothing": board.loss.smoothing,
        "tree": board.processes.as_tree,
        "sort": board.processes.sort,
        "backwards": board.processes.backwards,
        "maximised": board.kept()[0],
    }


async def test_what_was_chosen_is_there_again(stage: Open, tmp_path: Path) -> None:
    keeping = Keeping(tmp_path)
    async with stage(keeping=keeping) as at:
        before = changed(at)
        await at.press("y", "m", "full_stop", "full_stop", "I", "4", "4", "T", "down", "enter")
        wanted = changed(at)
        assert all(wanted[name] != before[name] for name in before)
        await at.press("q")
    keeping.close()
    async with stage(keeping=Keeping(tmp_path), theme=read(tmp_path / NAME).theme) as at:
        assert changed(at) == wanted
        assert at.dashboard.processes.has_focus
        assert "log ─" not in at.text() and "4 Processes" in at.text() and "3 Loss" not in at.text()
        await at.press("escape")
        assert "smoothed" in at.text()


async def test_a_change_is_kept_while_the_screen_is_still_open(stage: Open, tmp_path: Path) -> None:
    async with stage(keeping=Keeping(tmp_path)) as at:
        await at.press("y")
        at.source.give(at.source.view)
        await at.until((tmp_path / NAME).exists)
        assert read(tmp_path / NAME).panels["loss"]["log_scale"] is True


async def test_who_only_looks_writes_nothing(stage: Open, tmp_path: Path) -> None:
    async with stage(keeping=(keeping := Keeping(tmp_path))) as at:
        await at.press("q")
    keeping.close()
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"theme": 3}', '{"panels": {"loss": 1}}', '{"maximised": "moon"}',
        '{"panels": {"loss": {"log_scale": "yes"}, "processes": {"sort": "moon", "as_tree": 7}}}',
        "[" * 5000, "\x00\xff", '{"theme": "no-such", "later": {"version": 9}}',
    ],
)  # fmt: skip
async def test_a_broken_file_is_the_defaults(stage: Open, tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_bytes(text.encode("latin-1"))
    async with stage(keeping=Keeping(tmp_path)) as at:
        board = at.dashboard
        assert not board.loss.log_scale and board.processes.as_tree is True
        assert board.processes.sort == "pid" and board.kept()[0] == ""
        assert "RUNNING" in at.text()


def test_two_viewers_change_what_they_changed_and_nothing_else(tmp_path: Path) -> None:
    one, other = Keeping(tmp_path), Keeping(tmp_path)
    one.note(Kept(theme="light"))
    one.close()
    other.note(Kept(maximised="loss", panels={"loss": {"smooth": True}}))
    other.close()
    assert read(tmp_path / NAME) == Kept("light", "loss", {"loss": {"smooth": True}})
    one.note(Kept(theme="dark"))
    one.close()
    assert read(tmp_path / NAME) == Kept("dark", "loss", {"loss": {"smooth": True}})


WRITER = """
import sys
from pathlib import Path
from bitwatch.tui.kept import Keeping, Kept
me = sys.argv[2]
keeping = Keeping(Path(sys.argv[1]))
for turn in range(200):
    keeping.note(Kept("x" * (turn * 7 % 50), panels={me: {"turn": turn}}))
    keeping.close()
"""


def test_viewers_at_once_never_leave_half_a_file(tmp_path: Path) -> None:
    viewers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "abc"
    ]
    seen = 0
    while any(viewer.poll() is None for viewer in viewers):
        with contextlib.suppress(FileNotFoundError):
            msgspec.json.decode((tmp_path / NAME).read_bytes(), type=Kept)
            seen += 1
    assert seen > 0 and [viewer.returncode for viewer in viewers] == [0, 0, 0]
    assert 199 in [panel["turn"] for panel in read(tmp_path / NAME).panels.values()]
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path / "none")
    keeping.note(Kept("light"))
    keeping.close()
    assert not (tmp_path / "none").exists()


def test_the_file_is_no_run(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "demo")
    (tmp_path / NAME).write_text(json.dumps({"theme": "light"}))
    assert [found.id for found in rundir.list_runs(tmp_path)] == [run.id]
    with pytest.raises(rundir.RunDirError, match="no such run"):
        rundir.find(tmp_path, "screen")


def look_with(folder: Path, file: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> start.Look:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("BITWATCH_HOME", str(folder / "runs"))
    own = configuration.user_file()
    own.parent.mkdir(parents=True)
    own.write_text(file)
    (folder / "runs").mkdir()
    (folder / "runs" / NAME).write_text(kept)
    return start.look()


@pytest.mark.parametrize(
    ("file", "kept", "theme"),
    [
        ("", '{"theme": "light"}', "light"),
        ('theme = "high-contrast"', '{"theme": "light"}', "high-contrast"),
        ("", '{"theme": "gone"}', "dark"),
        ("", "{", "dark"),
    ],
)
def test_the_users_file_wins_then_what_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, kept: str, theme: str
) -> None:
    assert look_with(tmp_path, file, kept, monkeypatch).wanted == theme
