"""Every screen, state, alert, theme and layout as a picture, with a clock that stands still."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from bitwatch.record import events
from bitwatch.tui import screens
from bitwatch.tui.screens.curve_keys import CurveKeys
from bitwatch.tui.screens.dialog import Page
from bitwatch.tui.screens.over import Over
from bitwatch.tui.screens.process_keys import ProcessKeys
from bitwatch.tui.screens.run_keys import RunKeys
from bitwatch.tui.themes import load
from tests.conftest import PATIENCE_S
from tests.tui import alert_ids, every_alert, picture_answers, views
from tests.tui.pictures import LARGE, PANE, PICTURES, WIDE, Picture, app_of
from tests.tui.recorded import Fixed

IN_PARTS = {CurveKeys, Over, Page, ProcessKeys, RunKeys}  # what screens are made of


@pytest.mark.parametrize("one", PICTURES, ids=[one.name for one in PICTURES])
def test_it_looks_as_it_did(
    one: Picture, snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("COLORTERM", "truecolor"), ("TERM", "xterm-256color"), ("TZ", "UTC")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/ada/.config")
    time.tzset()
    picture_answers.stand_still(monkeypatch, tmp_path)
    app = app_of(one, tmp_path)

    async def prepare(pilot: Pilot[None]) -> None:
        if isinstance(app.source, Fixed):
            app.source.give(app.source.view, now=views.NOW, mode=one.mode, others=one.others)
        await until_said(pilot, one.before)
        await pilot.pause()
        for key in one.press:
            await pilot.press(key)
        for field in app.screen.query(Input):
            field.cursor_blink = False
        await app.workers.wait_for_complete()  # type: ignore[no-untyped-call]
        await until_said(pilot, one.after)
        await pilot.pause()
        assert type(app.screen) is one.shows

    try:
        same = snap_compare(app, terminal_size=one.size, run_before=prepare)
        assert app.crash is None  # or its empty screen could become the picture
        assert same
    finally:
        if app.source is not None:
            app.source.close()
        monkeypatch.undo()
        time.tzset()  # or all tests after this one would be in that time zone


async def until_said(pilot: Pilot[None], words: str) -> None:
    """Looks only where there is something to wait for: a page that is asked for its text before it
    was painted forgets what lies behind it."""
    if not words:
        return
    deadline = time.monotonic() + PATIENCE_S
    while words not in (text := said(pilot.app)):
        assert time.monotonic() < deadline, f"{words} was never said:\n{text}"
        await pilot.pause(0.02)


def said(app: App[None]) -> str:
    rows = app.screen._compositor.render_strips(app.size)
    return "\n".join(strip.text for strip in rows)


def test_every_screen_has_a_picture() -> None:
    made: set[type] = set()
    for module in pkgutil.iter_modules(screens.__path__):
        name = f"{screens.__name__}.{module.name}"
        for each in vars(importlib.import_module(name)).values():
            if isinstance(each, type) and issubclass(each, Screen) and each.__module__ == name:
                made.add(each)
    assert made - IN_PARTS == {one.shows for one in PICTURES}


def test_every_state_of_a_run_has_a_picture() -> None:
    of_runs = [one.view().state for one in PICTURES if one.of is None]
    assert set(of_runs) == set(get_args(events.State))


def test_every_alert_has_a_picture() -> None:
    shown = {re.sub(r"-\d+$", "", alert.id) for alert in every_alert.view().alerts}
    assert shown == alert_ids.all_ids()


def test_every_theme_and_every_layout_has_a_picture() -> None:
    assert {theme.name for theme in load(Path("/nowhere"))[0]} == {one.theme for one in PICTURES}
    assert {PANE, (80, 24), WIDE, LARGE} <= {one.size for one in PICTURES}
    filled = {one.press[0] for one in PICTURES if one.press[:1] == one.press[1:2] != ()}
    assert filled == {"1", "2", "3", "4"}
