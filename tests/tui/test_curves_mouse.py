"""The mouse in the panel of curves: the wheel zooms, a drag pans, the pointer reads out."""

from __future__ import annotations

import itertools
import time

import pytest
from textual import events as textual_events
from textual.geometry import Region

from tests.tui.conftest import Open, Stage
from tests.tui.test_curves import chart, falling, shown, told


async def wheel(at: Stage, x: int, y: int, *, up: bool) -> None:
    kind = textual_events.MouseScrollUp if up else textual_events.MouseScrollDown
    await at.pilot._post_mouse_events([kind], at.dashboard.loss, (x, y), button=0)
    await at.pilot.pause()


async def test_the_wheel_zooms_at_the_pointer(stage: Open) -> None:
    async with stage() as at:
        await shown(at, told(falling(1000)))
        panel = at.dashboard.loss
        assert panel.chart is not None
        x = panel.origin[0] + panel.chart.margin + panel.chart.width // 2
        under = panel._x(panel._column(x, 5))
        for _ in range(4):
            await wheel(at, x, 5, up=True)
        assert panel.chart.window.span < 500
        now = panel._x(panel._column(x, 5))
        assert under is not None and now is not None and abs(now - under) < 10
        for _ in range(9):
            await wheel(at, x, 5, up=False)
        assert panel.zoom.window is None


async def test_a_drag_moves_what_is_shown(stage: Open) -> None:
    async with stage() as at:
        await shown(at, told(falling(1000)))
        await at.press("3", "plus", "plus")
        panel = at.dashboard.loss
        assert panel.chart is not None
        before = panel.chart.window
        await at.pilot.mouse_down(panel, offset=(20, 5))
        await at.pilot.hover(panel, offset=(30, 5))
        await at.pilot.mouse_up(panel, offset=(40, 5))
        await at.until(lambda: panel.chart and panel.chart.window.first < before.first)
        moved = (before.first - panel.chart.window.first) / before.span * panel.chart.width
        assert 15 <= moved <= 25
        assert panel._held is None


async def test_the_mouse_reads_out_and_repaints_only_the_lines_that_changed(
    stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage() as at:
        await shown(at, told(falling(300)))
        panel = at.dashboard.loss
        painted: list[Region] = []
        refresh = panel.refresh
        monkeypatch.setattr(
            panel, "refresh", lambda *regions, **more: painted.extend(regions) or refresh(*regions, **more)
        )  # fmt: skip
        assert await at.pilot.hover(panel, offset=(30, 5))
        await at.until(lambda: "step" in chart(at).splitlines()[0])
        await at.until(lambda: painted)
        painted.clear()
        read = []
        follow = panel._follow_mouse
        monkeypatch.setattr(
            panel, "_follow_mouse", lambda: read.append(time.monotonic()) or follow()
        )
        for x in range(31, 61):  # faster than it may read out
            await at.pilot.hover(panel, offset=(x, 5))
        await at.until(lambda: panel._pointed == (60, 5) and not panel._waits)
        assert all(later - before >= 0.045 for before, later in itertools.pairwise(read))
        lines = {region.y for region in painted}
        assert all(region.height == 1 for region in painted)
        assert lines
        rows_of_chart = lines - {0, panel.size.height - 2}  # the readout, and the axis
        assert len(rows_of_chart) < panel.chart.rows / 2  # those that the mark was and is on
        assert await at.pilot.hover(at.dashboard.gpus)
        await at.until(lambda: panel.zoom.pointer is None)
        assert "◆" not in chart(at)
