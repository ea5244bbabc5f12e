"""The GPU panel: every field unknown by itself, lost GPUs, and machines without any."""

from __future__ import annotations

import msgspec

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.tui import draw
from bitwatch.tui.widgets.gpus import GpuPanel
from tests.tui import gpu_views, views


def lines(view: View, width: int = 80, height: int = 8, now: float = views.NOW) -> list[str]:
    panel = GpuPanel()
    panel.show(view, now)
    return [line.text for line in panel.draw(width, height)]


def roles(view: View, text: str) -> set[str]:
    panel = GpuPanel()
    panel.show(view, views.NOW)
    spans = [span for line in panel.draw(80, 8) for span in line.spans]
    return {role for found, role in spans if text in found}


def inside(view: View, now: float) -> set[str]:
    """Roles of what stands inside the frame."""
    panel = GpuPanel()
    panel.show(view, now)
    framed = panel.draw(80, 6)[1:-1]
    return {role for line in framed for text, role in line.spans[1:-1] if text.strip()}


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
    assert "2 L4 ✗ does not answer" in drawn[3]
    assert "18.9" in drawn[4]
    view.gpus.gpus[2] = events.Gpu(
        index=2, name="NVIDIA L4", lost=True, error="GPU is lost", memory_total_mib=23034.0
    )
    assert "2 L4 ✗ lost  22.5 GiB  GPU is lost" in lines(view)[3]


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


def test_the_sparkline_comes_from_the_record() -> None:
    before = lines(views.on_l4s(), width=100)[1]
    after = lines(views.on_l4s(gpu_history=gpu_views.gpu_history()), width=100)[1]
    assert not set(before) & set(draw.SPARKS) and len(set(after) & set(draw.SPARKS)) >= 2
    assert len(before) == len(after) == 100


def test_an_old_sample_says_its_age_and_is_dimmed() -> None:
    assert "61 s old" in lines(views.on_l4s(), now=views.NOW + 60.5)[-1]
    assert "2 h 00 m old" in lines(views.on_l4s(), now=views.NOW + 7200)[-1]
    assert "old" not in lines(views.on_l4s())[-1]
    (one,) = lines(views.on_l4s(), height=1, now=views.NOW + 60.5)
    assert one.startswith(" 1 GPUs  61 s old  4 × L4")
    assert inside(views.on_l4s(), views.NOW + 60.5) <= {"quiet", "faint"}
    assert "accent" in inside(views.on_l4s(), views.NOW)
    assert inside(views.on_cpu(), views.NOW + 60) <= {"quiet", "faint"}


def test_where_nvml_does_not_answer_the_last_known_values_stay_dimmed() -> None:
    view = views.on_l4s(gpu_history=gpu_views.gpu_history())
    assert view.gpus
    view.gpu_history.answered = msgspec.structs.replace(view.gpus, t=views.NOW - 75)
    silent = [events.Gpu(index=gpu.index, uuid=gpu.uuid, error="does not answer")
              for gpu in view.gpus.gpus]  # fmt: skip
    silent[1].lost = True
    note = "NVML does not answer: a call of the driver hangs"
    for gpus in (silent, []):
        view.gpus = events.Gpus(note=note, gpus=gpus, t=views.NOW)
        drawn = lines(view, width=100)
        assert "15.9/22.5 GiB" in drawn[1] and "18.9/22.5 GiB" in drawn[4]
        assert ("✗ lost" in drawn[2]) == bool(gpus)
        assert f"75 s old · {note}" in drawn[-1]
        assert inside(view, views.NOW) <= {"quiet", "faint"}
    view.gpus = msgspec.structs.replace(
        view.gpu_history.answered, note="driver 550.54", t=views.NOW
    )
    assert "accent" in inside(view, views.NOW)
    view = views.on_l4s(gpus=events.Gpus(note=note, t=views.NOW))
    assert any(note in row for row in lines(view))


def test_gpus_that_the_run_does_not_use_are_dimmed_and_say_little() -> None:
    view = gpu_views.eight_gpus()
    drawn = lines(view, height=10)
    assert ["not used" in row for row in drawn[1:9]] == [True, True, False, True] + [False] * 4
    assert "70°" not in drawn[1] and "69 W" not in drawn[1] and "┼" not in drawn[1]
    assert "70°" in drawn[5] and "69 W" in drawn[5] and "┼" in drawn[5]
    panel = GpuPanel()
    panel.show(view, views.NOW)
    framed = panel.draw(80, 10)
    assert {role for _, role in framed[1].spans[2:-2]} <= {"quiet", "faint"}
    assert framed[1].text.index("/22.5") == framed[5].text.index("/22.5")
    (one,) = lines(view, width=100, height=1)
    assert "8 × L4  ✗ 1 lost  4 used  15.8/22.5 GiB" in one


def test_a_slow_gpu_says_why_in_a_word_and_the_power_limit_is_normal() -> None:
    drawn = lines(gpu_views.large())
    assert "▼ heat" in drawn[4] and not any("▼" in row for row in drawn[1:4])
    assert "warning" in roles(gpu_views.large(), "▼ heat")
    view = gpu_views.large()
    assert view.gpus
    view.gpus.gpus[0].throttle = ["power cap", "clock setting"]
    view.gpus.gpus[2].throttle = ["hardware slowdown"]
    view.gpus.gpus[2].clock_sm_mhz = 2000.0
    assert not any("▼" in row for row in lines(view)[1:4])
    view.gpus.gpus[2].clock_sm_mhz = 900.0
    assert "▼ hardware" in lines(view)[3]
    view.gpus.gpus[1].throttle = ["hardware \x1b[31m power brake"]
    assert "▼ brake" in lines(view)[2] and "\x1b" not in "".join(lines(view))
    narrow = lines(gpu_views.large(), width=40)
    assert all(len(row) <= 40 for row in narrow) and "18.9" in narrow[4]
    (one,) = lines(gpu_views.large(), height=1)
    assert "▼ heat" in one


def test_heat_is_judged_by_the_gpus_own_threshold() -> None:
    view = gpu_views.large()
    assert view.gpus
    view.gpus.gpus[0].slowdown_c = 72.0
    view.gpus.gpus[1].slowdown_c = 70.0
    assert roles(view, "71°") == {"warning"} and roles(view, "70°") == {"bad"}


def test_a_run_on_the_cpu_beside_gpus_shows_its_ranks() -> None:
    view = views.on_cpu(gpus=views.gpus())
    drawn = lines(view, height=4)
    assert "rank 0" in drawn[1] and "the 4 GPUs are not used" in drawn[-1]
    (one,) = lines(view, height=1)
    assert "on the CPU  2 ranks  cpu 201 %" in one
    view.processes = []
    assert "not used" in lines(view)[1]


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
