"""The grid of readers, from one to a thousand."""

from __future__ import annotations

import pytest

from bitwatch.record.view import View
from bitwatch.tui.readings import grid
from bitwatch.tui.widgets.readers import SHAPES, ReaderPanel
from tests.tui import views


def lines(view: View, width: int = 66, height: int = 14) -> list[str]:
    panel = ReaderPanel()
    panel.show(view, views.NOW)
    return [line.text for line in panel.draw(width, height)]


def test_every_reader_has_a_shape_and_a_word() -> None:
    drawn = "\n".join(lines(views.on_l4s()))
    assert "shards 2  readers 4×4  busy 8  idle 8  every rank reads 4×" in drawn
    assert drawn.count("● s0") == drawn.count("● s1") == 4
    assert drawn.count("○ idle") == 8


def test_shapes_alone_tell_the_states_apart() -> None:
    shapes = [shape for state, (shape, _) in SHAPES.items() if state != "dead"]
    assert len(set(shapes)) == len(shapes)


def test_rates_come_from_successive_accounts() -> None:
    panel = ReaderPanel()
    view = views.on_l4s()
    panel.show(view, views.NOW)
    assert "samples/s" not in "".join(line.text for line in panel.draw(66, 14))
    for reader in view.readers:
        reader.t += 2
        reader.samples += 250 if reader.state == "reading" else 0
    panel.show(view, views.NOW + 2)
    row = next(line.text for line in panel.draw(66, 14) if "rank 0" in line.text)
    assert row.split()[-4:-1] == ["250", "3", "%"]


def test_a_new_epoch_is_no_negative_rate() -> None:
    panel = ReaderPanel()
    view = views.on_l4s()
    panel.show(view, views.NOW)
    for reader in view.readers:
        reader.t += 2
        reader.samples = 0
    panel.show(view, views.NOW + 2)
    assert "-" not in "".join(line.text for line in panel.draw(66, 14)[3:-1]).replace("as-is", "")


def test_waiting_for_data_is_said_for_each_rank() -> None:
    drawn = lines(views.on_l4s())
    assert any("wait" in row for row in drawn)
    assert next(row for row in drawn if "rank 3" in row).rstrip(" │").endswith("11 %")
    assert next(row for row in drawn if "rank 0" in row).rstrip(" │").endswith("3 %")


def test_a_reader_that_failed_or_vanished_is_a_cross() -> None:
    view = views.on_l4s()
    view.readers[0].state = "failed"
    gone = view.readers[5]
    view.processes = [row for row in view.processes if row.pid != gone.pid]
    gone.t = views.NOW - 60
    states = [state for row in grid(view).values() for _, state, _ in row]
    assert states[0] == "failed" and states[5] == "dead"
    summary = lines(view)[1]
    assert "failed 1" in summary and "dead 1" in summary


def test_a_reader_that_tries_again_is_seen() -> None:
    view = views.on_l4s()
    view.readers[0].error = "ConnectionError: away; try 2 of 5 in 3 s"
    drawn = lines(view)
    assert "retrying 1" in drawn[1] and sum("↻" in line for line in drawn) == 1
    view.readers[0].error = ""
    assert not any("↻" in line for line in lines(view))


def test_row_groups_are_called_by_what_tells_them_apart() -> None:
    view = views.on_l4s()
    view.readers[0].shards = ["train-00000-of-00002.parquet[0:112]"]
    view.readers[1].shards = ["train-00000-of-00002.parquet[112:225]", "b.parquet[0:3]"]
    drawn = "\n".join(lines(view, width=100))
    assert "● [0:112]" in drawn and "● [112:225] +1" in drawn


def test_an_idle_worker_that_has_ended_is_not_dead() -> None:
    """PyTorch ends a worker that has nothing to read."""
    view = views.on_l4s()
    view.processes = [row for row in view.processes if row.worker not in (2, 3)]
    for reader in view.readers:
        reader.t = views.NOW - 1000 if reader.state == "idle" else views.NOW
    assert not any(state == "dead" for row in grid(view).values() for _, state, _ in row)


def test_readers_that_have_not_reported_are_starting_and_after_the_end_never_were() -> None:
    assert "starting 16" in lines(views.on_l4s(readers=[]))[1]
    assert "not started 16" in lines(views.ended(readers=[]))[1]
    assert "stopped 8" in lines(views.ended())[1]


def test_without_workers_the_rank_reads() -> None:
    view = views.on_l4s(workers=0, readers=views.readers(4, 1, 1))
    drawn = "\n".join(lines(view))
    assert "readers 4×1" in drawn and "each rank reads for itself" in drawn


@pytest.mark.parametrize(("width", "height"), [(20, 6), (46, 12), (60, 20), (120, 40), (300, 70)])
def test_a_thousand_readers_fit_and_the_failed_one_is_seen(width: int, height: int) -> None:
    drawn = lines(views.many_readers(), width, height)
    assert len(drawn) == height
    assert sum(row.count("✗") for row in drawn) >= 1 or height < 8
    if height >= 70:
        assert sum(row.count("●") for row in drawn) == 767


def test_marks_shrink_before_ranks_are_left_out() -> None:
    view = views.on_l4s()
    assert "rank 3  ● ● ○ ○" in "\n".join(lines(view, 34, 9))
    assert "rank 3  ● ● ○ ○  wait  11 %" in "\n".join(lines(view, 34, 7))
    assert "3 ●●○○" in "\n".join(lines(view, 24, 5))


def test_the_progress_of_shards_is_drawn_where_rows_are_known() -> None:
    drawn = "\n".join(lines(views.on_l4s(), 66, 16))
    assert "shard 0" in drawn and "63 %" in drawn
    view = views.on_l4s()
    del view.plan["data"]["assignment"]
    assert "63 %" not in "\n".join(lines(view, 66, 16))
