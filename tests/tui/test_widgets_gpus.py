"""The GPU panel: every field unknown by itself, lost GPUs, and machines without any."""

from __future__ import annotations

import msgspec

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.tui.widgets.gpus import HISTORY, GpuPanel
from tests.tui import views


def lines(view: View, width: int = 80, height: int = 8, now: float = views.NOW) -> list[str]:
    panel = GpuPanel()
    panel.show(view, now)
    return [line.text for line in panel.draw(width, height)]


def roles(view: View, text: str) -> set[str]:
    panel = GpuPanel()
    panel.show(view, views.NOW)
    spans = [span for line in panel.draw(80, 8) for span in line.spans]
    return {role for found, role in spans if text in found}


def test_a_line_a_gpu_with_aligned_numbers() -> None:
    drawn = lines(views.on_l4s())
    assert drawn[0].startswith("╭─ 1 GPUs ")
    rows = drawn[1:5]
    assert [row[2:6] for row in rows] == ["0 L4", "1 L4", "2 L4", "3 L4"]
    assert {row.index("/22.5 GiB") for row in rows} == {rows[0].index("/22.5 GiB")}
    assert {row.index(" %") for row in rows} == {rows[0].index(" %")}
    assert "70 W" in rows[0] and "71°" in rows[0]


def test_unknown_fields_are_not_available_and_cost_no_other() -> None:
    view = views.on_l4s()
    assert view.gpus
    view.gpus.gpus[1] = events.Gpu(index=1, temperature_c=55.0)
    whole = lines(view)
    assert "n/a" in whole[2] and "55°" in whole[2] and "15.8" not in whole[2]
    assert "15.9/22.5 GiB" in whole[1] and "15.8/22.5 GiB" in whole[3]
    for name in ("memory_used_mib", "memory_total_mib", "utilization_percent", "power_w", "name"):
        view = views.on_l4s()
        assert view.gpus
        view.gpus.gpus[0] = msgspec.structs.replace(view.gpus.gpus[0], **{name: None})
        assert len(lines(view)) == 8


def test_a_lost_gpu_keeps_its_line() -> None:
    view = views.on_l4s()
    assert view.gpus
    view.gpus.gpus[2] = events.Gpu(index=2, name="NVIDIA L4", error="does not answer")
    drawn = lines(view)
    assert "2 L4 ✗ lost  does not answer" in drawn[3]
    assert "18.9" in drawn[4]


def test_heat_and_a_full_memory_have_a_colour_besides_their_number() -> None:
    assert roles(views.on_l4s(), "71°") == {"quiet"}
    assert roles(views.on_l4s(), "81°") == {"warning"}
    view = views.on_l4s()
    assert view.gpus
    view.gpus.gpus[0].memory_used_mib = 22.4 * 1024
    assert "bad" in roles(view, "━")


def test_leftovers_are_seen_in_the_bar_they_fill() -> None:
    assert "bad" not in roles(views.on_l4s(), "━")
    assert "bad" in roles(views.with_leftovers(), "━")


def test_the_prediction_is_a_mark_in_the_bar() -> None:
    drawn = lines(views.on_l4s())
    assert all("┼" in row or "╋" in row for row in drawn[1:5])
    assert "┼ predicted 17.6 GiB · NVML" in drawn[-1]


def test_the_sparkline_keeps_one_value_a_sample() -> None:
    panel = GpuPanel()
    for at in range(5):
        view = views.on_l4s(gpus=views.gpus(views.NOW + at))
        panel.show(view, views.NOW + at)
        panel.show(view, views.NOW + at + 0.5)
    assert [len(values) for values in panel._history.values()] == [5, 5, 5, 5]
    for at in range(5, HISTORY + 50):
        panel.show(views.on_l4s(gpus=views.gpus(views.NOW + at)), views.NOW + at)
    assert {len(values) for values in panel._history.values()} == {HISTORY}


def test_an_old_sample_says_its_age() -> None:
    assert "61 s old" in lines(views.on_l4s(), now=views.NOW + 60.5)[-1]
    assert "old" not in lines(views.on_l4s())[-1]


def test_without_a_driver_the_ranks_stand_in() -> None:
    drawn = lines(views.on_cpu(), height=4)
    assert "rank 0" in drawn[1] and "101 % cpu" in drawn[1] and "2.90 GiB" in drawn[1]
    assert "no GPU: ranks' CPU and memory" in drawn[-1]


def test_more_gpus_than_lines_end_in_a_summary() -> None:
    view = views.on_l4s()
    assert view.gpus
    view.gpus.gpus = [views.gpu(index, 10 + index, 50, 60) for index in range(16)]
    drawn = lines(view, height=7)
    assert "10 more × L4" in drawn[-1] and "25.0/22.5 GiB" in drawn[-1]
    (one,) = lines(view, height=1)
    assert one.startswith(" 1 GPUs  16 × L4")


def test_as_many_lines_as_gpus_leave_the_frame_out() -> None:
    drawn = lines(views.on_l4s(), height=4)
    assert [row.strip()[:4] for row in drawn] == ["0 L4", "1 L4", "2 L4", "3 L4"]


def test_gpus_that_are_expected_and_not_sampled_are_said_to_be() -> None:
    assert any("no sample of the GPUs yet" in row for row in lines(views.on_l4s(gpus=None)))
    assert any("no sample yet" in row for row in lines(views.preparing()))
