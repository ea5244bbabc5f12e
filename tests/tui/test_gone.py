"""What is on the screen, and gone before a key is pressed: nothing raises, nothing else is meant."""

from __future__ import annotations

import msgspec
import pytest

from bitwatch.record import events
from bitwatch.tui.screens.details import Details
from bitwatch.tui.screens.signal import SignalDialog
from tests.tui import gpu_views, views
from tests.tui.conftest import Open
from tests.tui.test_process_keys import pids, select


@pytest.mark.parametrize(("key", "page"), [("K", SignalDialog), ("enter", Details)])
async def test_a_row_is_updated_and_removed_before_the_next_picture(
    stage: Open, key: str, page: type
) -> None:
    async with stage(120, 40) as at:
        view = at.source.view
        await at.press("4")
        await select(at, 103)
        await at.press(key)
        assert isinstance(at.app.screen, page)
        busier = [
            msgspec.structs.replace(row, cpu_percent=99.0) if row.pid == 103 else row
            for row in view.processes
        ]
        for rows in (busier, [row for row in busier if row.pid != 103], []):
            at.source.give(msgspec.structs.replace(view, processes=rows))
        await at.pilot.pause()
        assert pids(at) == []
        await at.press("escape")
        assert at.app.screen is at.dashboard
        await at.press("K", "enter", "space", "down", "up")  # on nothing
        assert at.app.screen is at.dashboard and at.commands.signals == []


async def test_gpus_disappear_one_by_one_and_come_back(stage: Open) -> None:
    whole = gpu_views.large()
    assert whole.gpus is not None and len(whole.gpus.gpus) == 4
    async with stage(80, 24) as at:
        for press in ((), ("1", "1", "pagedown")):
            await at.press(*press)
            for left in (4, 2, 0, 4):
                gpus = events.Gpus(gpus=whole.gpus.gpus[:left], t=whole.gpus.t)
                at.source.give(msgspec.structs.replace(whole, gpus=gpus), now=views.NOW)
                await at.pilot.pause()
                await at.press("down", "up")
            assert "0 L4" in at.text()
