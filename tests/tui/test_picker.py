"""The page that asks which run."""

from __future__ import annotations

import time
from pathlib import Path

from bitwatch.attach.choose import Choice
from bitwatch.record import rundir
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.screens.picker import Picker
from bitwatch.tui.themes import load
from tests.conftest import PATIENCE_S
from tests.tui import recorded


async def test_a_run_has_one_line_in_a_terminal_of_any_width(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "second")
    choice = Choice(run, "failed", step=1059, steps=1200, loss=0.2439, age_s=1508.0)
    app = Bitwatch(
        None, recorded.Remembered(), load()[0], choose=lambda: Picker(lambda: iter([[choice]]))
    )
    async with app.run_test(size=(60, 15)) as pilot:
        for columns, shown in (
            (60, ("25 m 08 s ago",)),
            (80, ("1,059/1,200", "25 m 08 s ago")),
            (200, ("1,059/1,200", "loss 0.2439", "25 m 08 s ago")),
            (120, ("1,059/1,200", "loss 0.2439", "25 m 08 s ago")),
        ):
            await pilot.resize_terminal(columns, 40)
            line, deadline = "", time.monotonic() + PATIENCE_S  # another thread finds the runs
            while not all(words in line for words in (run.id, *shown)):
                assert time.monotonic() < deadline, line
                await pilot.pause(0.02)
                strips = app.screen._compositor.render_strips(app.size)
                line = "\n".join(strip.text for strip in strips if run.id in strip.text)
            assert "\n" not in line
