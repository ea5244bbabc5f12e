"""What is on the screen, and gone before a key is pressed: nothing raises, nothing else is meant."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bitwatch import lines
from bitwatch.attach.gone import GONE
from bitwatch.record import events
from bitwatch.tui.screens.details import Details
from bitwatch.tui.screens.signal import SignalDialog
from bitwatch.tui.start import Left, farewell
from tests.tui import gpu_views, plans, recorded, views
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


async def test_without_its_folder_a_run_is_offered_neither_stop_nor_relaunch(stage: Open) -> None:
    async with stage(120, 40) as at:
        assert " S stop " in at.text() and "R relaunch" not in at.text()
        view = msgspec.structs.replace(at.source.view, plan=plans.as_json(plans.incident()))
        at.source.give(view)
        await at.pilot.pause()
        assert " S stop " in at.text() and "R relaunch" in at.text()
        at.source.give(msgspec.structs.replace(view, gone=GONE), mode="reconnecting")
        await at.pilot.pause()
        assert " S stop " not in at.text() and "relaunch" not in at.text()
        await at.press("S", "R")
        assert at.app.screen is at.dashboard and at.commands.asked == []
        assert at.toasts() == [f"it cannot be stopped: {GONE}", f"it cannot be relaunched: {GONE}"]
        at.source.give(msgspec.structs.replace(view, gone=GONE, state="lost", cause="it is gone"))
        await at.press("w")
        assert "bitwatch report" not in at.text() and "it is gone" in at.text()


def test_the_last_line_promises_no_way_back_to_a_run_whose_folder_is_gone(tmp_path: Path) -> None:
    run = recorded.make(tmp_path / "runs")
    seen = recorded.seen(run)
    assert f"bitwatch attach {run.id}" in farewell(Left(run, seen))
    run.identity_file.unlink()  # what processes of it make anew has none
    ended = msgspec.structs.replace(
        seen, state="stopped", gone="its folder was deleted; it stopped"
    )
    line = farewell(Left(run, ended))
    assert line == f"{run.id}: its folder was deleted; it stopped ({run.path})"
    assert farewell(Left(run, None)) == f"{run.id}: {GONE} ({run.path})"
    assert any("--resume" in line for line in lines.summary(seen))
    assert not any("--resume" in line for line in lines.summary(ended))
