"""The dashboard at every size: what must be seen, what a resize does, and two pictures."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bitwatch.attach.gone import with_alert
from bitwatch.record import events
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.themes import load
from tests.tui import recorded
from tests.tui.conftest import Open


async def test_120x40_has_everything(stage: Open) -> None:
    async with stage(120, 40) as at:
        text = at.text()
        for words in ("1 GPUs", "2 Readers", "3 Loss", "4 Processes", "RUNNING", "400/800"):
            assert words in text
        assert "2 of 4 readers have nothing to read" in text
        assert "worker 0" in text


async def test_80x24_has_state_alert_loss_and_gpus(stage: Open) -> None:
    async with stage(80, 24) as at:
        rows = at.text().splitlines()
        assert "RUNNING" in rows[0] and "400/800" in rows[1]
        assert "2 of 4 readers" in rows[2]
        assert "rank 0" in rows[3] and "rank 1" in rows[4]
        assert "2 Readers" in rows[5]
        assert at.dashboard.loss.size.height >= 8
        assert "4 Processes" in rows[-2]
        assert "q detach" in rows[-1]


async def test_60x15_has_header_alert_loss_and_one_line_for_gpus(stage: Open) -> None:
    async with stage(60, 15) as at:
        text = at.text()
        for words in ("RUNNING", "2 of 4 readers", "1 GPUs", "3 Loss"):
            assert words in text
        assert "4 Processes" not in text
        assert at.dashboard.gpus.size.height == 1


@pytest.mark.parametrize("size", [(20, 5), (39, 30), (200, 9), (10, 3), (2, 1)])
async def test_too_small_is_a_sentence(stage: Open, size: tuple[int, int]) -> None:
    async with stage(*size) as at:
        if size[0] >= 20:
            assert "toosmall:needs60x15" in at.text().replace(" ", "").replace("\n", "")
        await at.press("q")
        assert at.app._exit


async def test_a_resize_storm_raises_nothing(stage: Open) -> None:
    sizes = random.Random(7)
    async with stage() as at:
        for turn in range(40):
            await at.pilot.resize_terminal(sizes.randint(1, 300), sizes.randint(1, 80))
            if turn % 5 == 0:
                await at.press(
                    sizes.choice(["1", "2", "3", "4", "escape", "t", "y", "w", "escape"])
                )
        await at.press("escape", "escape")
        await at.pilot.resize_terminal(120, 40)
        await at.pilot.pause()
        assert "RUNNING" in at.text()


async def test_what_stands_in_the_way_of_reading_is_on_the_screen(stage: Open) -> None:
    async with stage(80, 24) as at:
        text = "the folder of this run has been deleted or moved; its last picture stays"
        seen = with_alert(at.source.view, "record-unreadable", text, at.source.run, recorded.NOW)
        at.source.give(seen, mode="reconnecting")
        await at.pilot.pause()
        assert "the folder of this run has been deleted" in at.text()
        assert "reconnecting" in at.text()
        at.source.give(at.source.view, mode="ended")
        await at.pilot.pause()
        assert "reconnecting" not in at.text()


async def test_words_from_outside_are_shown_literally_and_break_no_column(stage: Open) -> None:
    evil = "\x1b[2J\x1b]0;x\x07[red]漢字\u202e e\u0301[/red]\r\n\x9b1m"
    async with stage() as at:
        view = at.source.view
        rows = [msgspec.structs.replace(row, command=evil) for row in view.processes]
        alert = events.Alert(id="x", severity="error", text=evil, evidence=[evil], next=evil)
        at.source.give(
            msgspec.structs.replace(view, name=evil, processes=rows, alerts=[alert], note=evil)
        )
        await at.pilot.pause()
        assert "\\x1b[2J\\x1b]0;x\\x07[red]漢字\\u202e" in at.text()
        strips = at.app.screen._compositor.render_strips(at.app.size)
        assert {strip.cell_length for strip in strips} == {120}
        await at.press("w")
        assert "\\x1b[2J" in at.text()
        assert "\x1b" not in at.text()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("ended", [False, True], ids=["live", "ended"])
def test_the_picture(
    snap_compare: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
    ended: bool,
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    run = recorded.make(tmp_path, ended=ended)
    liveness = recorded.Liveness() if ended else recorded.LIVE
    source = recorded.Fixed(run, recorded.seen(run, liveness))
    app = Bitwatch(source, recorded.Remembered(), load(tmp_path)[0])
    assert snap_compare(app, terminal_size=size)
