"""The mouse, on what is being taken away from the screen at that moment."""

from __future__ import annotations

from textual import events
from textual.widget import Widget

from tests.tui.conftest import Open, Stage


def shown(at: Stage) -> list[Widget]:
    return [block for block in at.app.screen.query("#scroll Static") if block.region.area]


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
            event = kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y)
            await at.app.on_event(event)
        await at.pilot.pause()
        assert block not in shown(at)
