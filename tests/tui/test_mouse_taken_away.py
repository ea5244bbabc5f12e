"""The mouse, on what is being taken away from the screen at that moment."""

from __future__ import annotations

import pytest
from textual import events
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from tests.tui.conftest import Open, Stage


def shown(at: Stage) -> list[Widget]:
    return [block for block in at.app.screen.query("#scroll Static") if block.region.area]


def mouse(kind: type[events.MouseEvent], x: int, y: int) -> events.MouseEvent:
    return kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y)


async def test_a_press_on_what_was_just_taken_away_does_nothing(stage: Open) -> None:
    """It stands on the screen until the next layout, and has no place in the tree any more."""
    async with stage(120, 40) as at:
        await at.press("s")
        await at.until(lambda: "asked at" in at.text())
        block = shown(at)[0]
        x, y = block.region.offset
        await block.remove()
        assert at.app.screen.get_widget_at(x, y)[0] is block and block.parent is None
        for kind in (events.MouseDown, events.MouseMove, events.MouseUp):
            await at.app.on_event(mouse(kind, x, y))
        await at.pilot.pause()
        assert block not in shown(at)


async def test_its_release_is_no_click_on_what_was_pressed_before(
    stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may be what comes to light where the press was."""
    async with stage(120, 40) as at:
        below, block = Static("below"), Static("over it")
        screen: Screen[None] = Screen()
        told: list[type[events.Event]] = []
        forward = Screen._forward_event
        monkeypatch.setattr(
            Screen, "_forward_event", lambda s, e: told.append(type(e)) or forward(s, e)
        )
        await at.app.push_screen(screen)
        await screen.mount(below)
        await at.until(lambda: screen.get_widget_at(1, 0)[0] is below)
        for kind in (events.MouseDown, events.MouseUp):
            await at.app.on_event(mouse(kind, 1, 0))
        await screen.mount(block, before=below)
        await at.until(lambda: screen.get_widget_at(1, 0)[0] is block)
        await block.remove()
        await at.app.on_event(mouse(events.MouseDown, 1, 0))
        await at.until(lambda: screen.get_widget_at(1, 0)[0] is below)
        await at.app.on_event(mouse(events.MouseUp, 1, 0))
        assert told == [events.MouseDown, events.MouseUp, events.Click, events.MouseUp]
