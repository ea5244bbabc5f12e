"""The GPU panel over the whole screen: every fact of every GPU, its past, and its keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from bitwatch.record import events
from bitwatch.record.gpu_history import GpuHistory
from bitwatch.record.series import Series
from bitwatch.record.view import View
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.gpu_graph import area, recent_values, whole_values
from bitwatch.tui.themes import load
from bitwatch.tui.widgets.gpus import GpuPanel
from tests.tui import gpu_views, recorded, views
from tests.tui.conftest import Open

SIZES = [(56, 11), (76, 20), (120, 36), (200, 54), (300, 78)]


def panel(view: View, *, now: float = views.NOW, whole_run: bool = False) -> GpuPanel:
    made = GpuPanel()
    made.large, made.whole_run = True, whole_run
    made.show(view, now)
    return made


def lines(view: View, width: int = 120, height: int = 36, **more: Any) -> list[str]:
    return [line.text for line in panel(view, **more).draw(width, height)]


def text(view: View, width: int = 120, height: int = 36, **more: Any) -> str:
    return "\n".join(lines(view, width, height, **more))


def one(**fields: Any) -> View:
    """A run on one GPU, of which these fields are different."""
    view = gpu_views.large(ranks=1, processes=views.family(1, 4, 2))
    assert view.gpus
    view.gpus.gpus = [msgspec.structs.replace(view.gpus.gpus[0], **fields)]
    return view


def test_a_block_says_everything_about_its_gpu() -> None:
    block = lines(gpu_views.large())[25:33]
    for words, row in zip(
        (
            "3 L4  rank 3  ▼ held down: thermal slowdown, power cap",
            "18.9 of 22.5 GiB   84 %  plan 17.6, 1.8 less",
            "ours 15.8  leftovers  0.0  others  3.0 (pid 77123)  driver  0.1 GiB",
            "allocated 14.2  reserved 15.4  peak 15.0 GiB",
            "88 % busy    81° of  85°    80 of  72 W  fan n/a",
            "SM 1,290 of 2,040 MHz  memory 6,251 MHz  ECC 3 corrected",
            "PCIe 4×16 in 3.25 out 3.05 GiB/s  NVLink n/a",
        ),
        block,
        strict=False,
    ):
        assert words in row


def test_a_line_that_says_nothing_costs_no_other() -> None:
    bare = events.Gpu(index=0)
    for name in bare.__struct_fields__:
        if name in ("index", "lost", "error"):
            continue
        for width, height in SIZES:
            drawn = panel(one(**{name: None})).draw(width, height)
            assert {line.width for line in drawn} == {width}, name
    view = one()
    assert view.gpus
    view.gpus.gpus = [bare]
    assert text(view).count("n/a") >= 15
    assert "n/a" in text(one(fan_percent=None)) and "fan  35 %" in text(one(fan_percent=35.0))


def test_the_plan_stands_beside_what_was_measured() -> None:
    assert "plan 17.6, 1.8 less" in text(one())
    ours = [(views.pid_of(0), 19.9 * 1024)]
    assert "plan 17.6, 2.3 more" in text(one(processes=ours))
    assert "plan 17.6, as measured" in text(one(processes=[(views.pid_of(0), 17.6 * 1024)]))
    assert "plan" not in text(gpu_views.large(plan={}))
    unknown = one(processes=None, memory_used_mib=None)
    assert "plan 17.6 measured n/a" in text(unknown)


def test_uncorrected_errors_are_bad_and_none_is_said_as_zero() -> None:
    drawn = panel(one(ecc_uncorrected=2, ecc_corrected=7)).draw(120, 36)
    spans = [span for line in drawn for span in line.spans]
    assert ("2", "strong bad") in spans
    assert "ECC 2 uncorrected, 7 corrected" in text(one(ecc_uncorrected=2, ecc_corrected=7))
    assert "ECC 0" in text(one()) and "ECC n/a" in text(
        one(ecc_uncorrected=None, ecc_corrected=None)
    )


def test_a_guess_is_said_to_be_one() -> None:
    assert "0 L4  rank 0  at its power cap" in text(gpu_views.large())
    assert "0 L4  rank 0 by its number" in text(gpu_views.large(processes=[]))


def test_of_mig_instances_is_said_that_they_are_not_told_apart() -> None:
    view = gpu_views.large(processes=[], ranks=1, visible_devices="MIG-0a1b2c3d")
    assert view.gpus
    for gpu in view.gpus.gpus:
        gpu.mig, gpu.processes, gpu.utilization_percent = gpu.index in (1, 2), None, None
    said = text(view)
    # It is an instance of one of the two, and nobody says of which.
    for index in (1, 2):
        assert f"{index} L4  MIG: its instances are not told apart  at its power cap" in said
    assert "0 L4  not used by this run" in said and "by its number" not in said
    small = GpuPanel()
    small.show(view, views.NOW)
    rows = [line.text for line in small.draw(80, 8)][1:5]
    assert ["not used" in row for row in rows] == [True, False, False, True]
    assert ["MIG" in row for row in rows] == [False, True, True, False]


def test_lost_and_unused_gpus_are_short_and_quiet() -> None:
    drawn = panel(gpu_views.eight_gpus()).draw(200, 54)
    rows = [line.text for line in drawn]
    lost = next(line for line in drawn if "2 L4  ✗ lost  22.5 GiB  GPU is lost" in line.text)
    unused = next(line for line in drawn if "0 L4  not used by this run" in line.text)
    for line in (lost, unused):
        assert {role for text, role in line.spans[1:-1] if text.strip()} <= {"quiet", "faint"}
    assert sum("not used by this run" in row for row in rows) == 3
    assert sum("allocator" in row for row in rows) == 4
    view = gpu_views.large()
    assert view.gpus
    view.gpus.gpus[1] = events.Gpu(index=1, name="NVIDIA L4", lost=True, error="GPU is lost")
    lost = next(line for line in panel(view).draw(120, 36) if "✗ lost" in line.text)
    assert "strong bad" in {role for _, role in lost.spans}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [gpu_views.large, gpu_views.eight_gpus, gpu_views.full_house,
                                  gpu_views.on_cpu_with_past, views.with_leftovers])  # fmt: skip
def test_every_size_is_filled_exactly(make: Callable[[], View], size: tuple[int, int]) -> None:
    for whole_run in (False, True):
        drawn = panel(make(), whole_run=whole_run).draw(*size)
        assert {line.width for line in drawn} == {size[0]} and len(drawn) == size[1]


def test_eight_gpus_fit_a_large_screen() -> None:
    rows = lines(gpu_views.full_house(), 200, 54)
    assert sum("PCIe" in row for row in rows) == 8 and "more" not in rows[-1]
    assert any("NVLink in 50.0 out 47.7 GiB/s" in row for row in rows)


def test_what_is_old_is_dimmed_with_its_age() -> None:
    drawn = panel(gpu_views.large(), now=views.NOW + 90).draw(120, 36)
    roles = {role for line in drawn[1:-1] for text, role in line.spans[1:-1] if text.strip()}
    assert roles <= {"quiet", "faint"} and "90 s old" in drawn[-1].text


# -- graphs ----------------------------------------------------------------------------------


def test_a_graph_shows_a_pause_a_gap_and_no_value_before_the_first() -> None:
    times = [1000.0 + second for second in range(300) if not 100 <= second < 160]
    busy: list[float | None] = [0.0 if t < 1050 else 90.0 for t in times]
    values = recent_values(times, busy, 1300.0, 60)  # ten seconds a dot
    assert values[:29] == [None] * 29 and values[30] == 0.0
    assert values[36] == 90.0 and values[-1] == 90.0
    assert None in values[40:47], "a minute without a sample is a gap"
    (row,) = area([0.0, 100.0, None, 50.0], 100.0, 2, 1, "accent")
    assert [ord(cell) - 0x2800 for cell in row.text] == [0x40 | 0x20 | 0x80 | 0x10, 0x80 | 0x20]


def test_a_graph_moves_by_whole_dots() -> None:
    times = [1000.0 + second for second in range(600)]
    busy: list[float | None] = [float(second % 37) for second in range(600)]
    at = [recent_values(times, busy, 1600.0 + second, 60) for second in (0, 1, 9.9, 10, 10.1)]
    assert at[1] == at[2] == at[3]
    assert at[4][:-2] == at[3][1:-1]


def test_samples_that_come_slowly_are_no_gaps() -> None:
    times = [1000.0 + 20 * at for at in range(31)]
    assert None not in recent_values(times, [50.0] * 31, 1600.0, 120)[5:]
    series = Series(limit=512)
    for minute in range(60):
        series.add(60 * minute, 75.0)
    assert whole_values(series, 0, 3600.0, 200).count(None) == 0


def test_the_whole_run_begins_with_its_first_record() -> None:
    history = gpu_views.gpu_history()
    ramp = panel(gpu_views.large(), whole_run=True)
    rows = [line.text for line in ramp.draw(120, 36)]
    assert "graphs: all of 2 h 04 m" in rows[-1]
    assert history.whole[0].memory_mib.starts[0] == int(views.NOW - 7440)
    assert "graphs: last 10 minutes" in lines(gpu_views.large())[-1]
    unknown = text(gpu_views.large(gpu_history=GpuHistory()), whole_run=True)
    assert "15.9 of 22.5 GiB" in unknown and "⣿" not in unknown


# -- without GPUs ----------------------------------------------------------------------------


def test_without_gpus_the_run_and_each_rank_have_a_block() -> None:
    drawn = text(gpu_views.on_cpu_with_past())
    assert "all of the run  8 processes" in drawn and "no GPU: ranks' CPU and memory" in drawn
    assert "rank 0  pid 41251" in drawn and "rank 1  pid 41252" in drawn
    assert "2 workers     34 % cpu    0.78 GiB" in drawn
    assert "7.71 GiB  most 7.71 GiB" in drawn
    whole = text(gpu_views.on_cpu_with_past(), whole_run=True)
    assert "most 8.79 GiB" in whole and "rank 0  pid 41251  last 10 minutes" in whole


# -- keys ------------------------------------------------------------------------------------


async def test_the_panel_fills_the_screen_before_any_gpu_or_rank_is_known(stage: Open) -> None:
    async with stage(120, 30) as at:
        for view in (views.preparing(), gpu_views.large(), views.watched(gpus=None, processes=[])):
            at.source.give(view, now=views.NOW)
            await at.press("1")
            if not at.dashboard.gpus.large:
                await at.press("1")
            assert at.dashboard.gpus.large and "1 GPUs" in at.text()
            await at.press("escape")


async def test_keys_scroll_and_change_the_graphs(stage: Open) -> None:
    async with stage(80, 24) as at:
        at.source.give(gpu_views.large(), now=views.NOW)
        await at.press("1", "1")
        assert "0 L4  rank 0" in at.text() and "↑↓ 2 more" in at.text()
        assert "g 10 min/whole" in at.text()
        await at.press("down")
        assert "0 L4" not in at.text() and "1 L4  rank 1" in at.text()
        await at.press("up")
        assert "0 L4  rank 0" in at.text()
        await at.press("pagedown", "pagedown")
        assert "3 L4  rank 3" in at.text() and "1 L4" not in at.text()
        at.source.give(gpu_views.large(), now=views.NOW + 1)
        await at.pilot.pause()
        assert "3 L4  rank 3" in at.text() and "1 L4" not in at.text()
        await at.press("g")
        assert "graphs: all of 2 h 04 m" in at.text()
        await at.pilot.resize_terminal(200, 60)
        await at.pilot.pause()
        assert all(f"{index} L4  rank {index}" in at.text() for index in range(4))
        row = next(y for y, line in enumerate(at.text().splitlines()) if "g 10 min" in line)
        await at.pilot.click(offset=(at.text().splitlines()[row].index("g 10 min"), row))
        await at.until(lambda: "graphs: last 10 minutes" in at.text())
        await at.press("1")
        assert "graphs:" not in at.text()
        gone = gpu_views.large(gpus=events.Gpus(t=views.NOW), processes=[])
        at.source.give(gone, now=views.NOW)
        await at.press("1", "1", "down", "pagedown", "g")
        assert "no sample of the GPUs yet" in at.text()


@pytest.mark.parametrize(("size", "theme"), [((120, 40), "dark"), ((80, 24), "light")])
def test_the_picture_of_the_gpus(
    snap_compare: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
    theme: str,
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    source = recorded.Fixed(recorded.make(tmp_path), gpu_views.large())
    app = Bitwatch(source, recorded.Remembered(), load(tmp_path)[0])

    async def shown(pilot: Pilot[None]) -> None:
        app.theme = theme
        source.give(gpu_views.large(), now=views.NOW)
        await pilot.press("1", "1")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=shown)


def test_a_driver_that_names_no_processes_is_not_another_pid_namespace() -> None:
    unknown = text(one(processes=None))
    assert "PID namespace" not in unknown
    assert "whose" in unknown and "ours  n/a" in unknown
    assert "PID namespace" in text(one(processes=[(9_000_001, 16_000.0)]))
