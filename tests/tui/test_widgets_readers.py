"""The grid of readers, from one to a thousand."""

from __future__ import annotations

import pytest

from bitwatch.record.readers import judged
from bitwatch.record.view import View
from bitwatch.tui.reader_grid import SHAPES
from bitwatch.tui.readings import Rates
from bitwatch.tui.widgets.readers import ReaderPanel
from tests.tui import views


def lines(view: View, width: int = 66, height: int = 14) -> list[str]:
    panel = ReaderPanel()
    panel.show(view, views.NOW)
    return [line.text for line in panel.draw(width, height)]


@pytest.fixture
def views_of_rank() -> tuple[View, Rates]:
    """Two readers of rank 0 that make 125 samples a second each."""
    view, rates = views.on_l4s(), Rates()
    for _ in range(2):
        rates.take(view, judged(view, views.NOW), views.NOW)
        for reader in view.readers:
            reader.t += 2
            reader.samples += 250 if reader.state == "reading" else 0
    return view, rates


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


def test_what_no_longer_reads_has_no_rate(views_of_rank: tuple[View, Rates]) -> None:
    view, rates = views_of_rank
    assert rates.samples(0) == 250
    view.readers[0].moved = views.NOW - 100
    rates.take(view, judged(view, views.NOW), views.NOW)
    assert (rates.samples(0), rates.of_reader((0, 0))) == (125, 0.0)
    view.readers[1].state = "done"
    rates.take(view, judged(view, views.NOW), views.NOW)
    assert (rates.samples(0), rates.text_bytes(0)) == (0, 0)


def test_of_who_has_read_far_ahead_and_waits_no_rate_is_said(
    views_of_rank: tuple[View, Rates],
) -> None:
    view, rates = views_of_rank
    for reader in view.readers:
        reader.state = "waiting"
    for later_s, made in ((3, 250), (30, None)):
        now = view.readers[0].t + later_s
        rates.take(view, judged(view, now), now)
        assert rates.samples(0) == made
    view.readers[0].t += 60  # one that tells seldom keeps its rate for longer
    view.readers[0].samples += 600
    now = view.readers[0].t + 50
    rates.take(view, judged(view, now), now)
    assert rates.samples(0) == pytest.approx(600 / 60)


def test_a_reader_in_blocks_has_the_rate_at_which_they_are_eaten() -> None:
    """It makes 30,000 samples within a second, every four minutes."""
    view, rates = views.on_l4s(), Rates()
    reader = view.readers[0]

    def told(later_s: float, state: str, samples: int) -> float | None:
        reader.t = reader.moved = start + later_s
        reader.state, reader.samples = state, samples  # type: ignore[assignment]
        rates.take(view, judged(view, reader.t), reader.t)
        return rates.samples(0)

    start = reader.t
    assert told(0, "waiting", 30_000) is None
    assert told(240, "reading", 30_000) is None
    assert told(241, "waiting", 60_000) == pytest.approx(30_000 / 241)
    later = reader.t + 230
    rates.take(view, judged(view, later), later)
    assert rates.samples(0) == pytest.approx(30_000 / 241)
    assert told(480, "reading", 60_000) == pytest.approx(30_000 / 241)
    assert told(481, "waiting", 90_000) == pytest.approx(30_000 / 240)
    later = reader.t + 500  # the rank has stopped eating: nobody knows any more
    rates.take(view, judged(view, later), later)
    assert rates.samples(0) is None and rates.text_bytes(0) is None


def test_a_new_attempt_has_rates_of_its_own(views_of_rank: tuple[View, Rates]) -> None:
    view, rates = views_of_rank
    view.attempt += 1
    view.workers, view.readers = 1, view.readers[:1]
    rates.take(view, judged(view, views.NOW), views.NOW)
    assert not rates.known()
    view.readers[0].t += 1
    view.readers[0].samples += 10
    rates.take(view, judged(view, views.NOW), views.NOW)
    assert (rates.samples(0), rates.of_reader((0, 1))) == (10, None)


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
    states = [one.state for one in judged(view, views.NOW).values()]
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


def test_a_reader_that_is_stuck_is_named_with_its_shard_and_since_when() -> None:
    view = views.on_l4s()
    view.readers[5].moved = views.NOW - 12
    drawn = "\n".join(lines(view, 120, 16))
    assert "stuck 1" in drawn and "▲ since 12 s" in drawn
    assert "▲ rank 1 worker 1 stuck in s1 since 12 s" in drawn
    narrow = "\n".join(lines(view, 54, 16))
    assert "▲ 12 s" in narrow and "since 12 s" in narrow


def test_of_an_attempt_that_is_over_nothing_is_since_longer_and_longer() -> None:
    view = views.on_l4s()
    view.readers[5].state, view.readers[5].moved = "failed", views.NOW - 12
    view.state, view.ended = "stopped", views.NOW
    panel = ReaderPanel()
    panel.listed = True
    for now in (views.NOW, views.NOW + 90_000):
        panel.show(view, now)
        drawn = "\n".join(line.text for line in panel.draw(160, 40))
        assert "rank 1 worker 1 failed in s1 since 12 s" in drawn and "25 h" not in drawn


def test_a_dead_reader_is_named_before_a_stuck_one() -> None:
    view = views.on_l4s()
    view.readers[0].moved = views.NOW - 12
    gone = view.readers[5]
    view.processes = [row for row in view.processes if row.pid != gone.pid]
    gone.t = views.NOW - 60
    drawn = lines(view, 120, 16)
    named = [row for row in drawn if "rank 1 worker 1" in row or "rank 0 worker 0" in row]
    assert "dead" in named[0] and "stuck" in named[1]


def test_a_reader_whose_blocks_wait_to_be_taken_is_well() -> None:
    view = views.on_l4s()
    for reader in view.readers[::4]:
        reader.state, reader.moved = "waiting", views.NOW - 600
    drawn = "\n".join(lines(view, 120, 14))
    assert drawn.count("◉ s0") == 4 and "busy 8  of them waiting 4" in drawn
    assert SHAPES["waiting"][1] == "fine"
    assert "stuck" not in drawn


def test_a_shard_that_several_ranks_read_is_in_the_colour_of_a_warning() -> None:
    def labels(view: View) -> set[str]:
        panel = ReaderPanel()
        panel.show(view, views.NOW)
        return {
            role for line in panel.draw(66, 14) for text, role in line.spans if text.strip() == "s0"
        }

    view = views.on_l4s()
    assert labels(view) == {"warning"}
    for reader in view.readers:
        if reader.rank:
            reader.shards = [f"b{reader.rank}"] if reader.shards else []
    assert labels(view) == {"text"}
    view = views.on_l4s()
    view.plan["data"]["mode"] = "indexed"
    assert labels(view) == {"text"}


def test_ranks_that_are_apart_are_named() -> None:
    view = views.on_l4s()
    drawn = "\n".join(lines(view, 66, 18))
    assert "only" not in drawn
    for reader in view.readers:
        if reader.rank == 2:
            reader.rows //= 2
    assert "rank 3 has read 32 % of its text, rank 2 only 16 %" in "\n".join(lines(view, 66, 18))


def test_the_list_has_a_line_a_reader_and_the_worst_first() -> None:
    view = views.on_l4s()
    view.readers[5].moved = views.NOW - 12
    view.readers[13].shards, view.readers[13].shard = [1, 2, 3], 2
    panel = ReaderPanel()
    panel.listed = True
    panel.show(view, views.NOW)
    for reader in view.readers:
        reader.t += 2
        reader.samples += 250
        reader.bytes += 3 * 2**20
    panel.show(view, views.NOW + 2)
    rows = [line.text.strip("│ ") for line in panel.draw(120, 40)]
    heading = next(at for at, row in enumerate(rows) if row.startswith("rank  worker"))
    first = rows[heading + 1].split()
    assert first[:6] == ["1", "1", "51319", "▲", "stuck", "s1"]
    assert first[6:] == ["14", "s", "632", "4,250", "3.0", "MiB", "0", "B"]
    listed = [row for row in rows[heading + 1 :] if row and row[0].isdigit()]
    assert len(listed) == 16
    assert [row.split()[4] for row in listed[1:9]] == ["idle"] * 8
    assert "no data" in listed[1] and "s2 of s1-3" in "\n".join(listed)
    panel.listed = False
    assert "rank  worker" not in "\n".join(line.text for line in panel.draw(120, 40))


def test_a_list_that_does_not_fit_says_how_many_more_there_are() -> None:
    panel = ReaderPanel()
    panel.listed = True
    panel.show(views.many_readers(), views.NOW)
    drawn = [line.text for line in panel.draw(300, 90)]
    heading = next(at for at, row in enumerate(drawn) if "rank  worker" in row)
    assert drawn[heading + 1].split()[1:3] == ["17", "3"]
    assert any("more, who need a look less" in row for row in drawn)


def test_text_a_second_stands_beside_samples_where_there_is_room() -> None:
    panel, view = ReaderPanel(), views.on_l4s()
    panel.show(view, views.NOW)
    for reader in view.readers:
        reader.t += 2
        reader.bytes += 2 * 2**20 if reader.state == "reading" else 0
    panel.show(view, views.NOW + 2)
    wide = [line.text for line in panel.draw(80, 14)]
    assert "2.0 MiB" in next(row for row in wide if "rank 0" in row)
    assert "text/s" in "".join(wide)
    narrow = "".join(line.text for line in panel.draw(54, 14))
    assert "text/s" not in narrow and "wait" in narrow


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
    assert not any(one.state == "dead" for one in judged(view, views.NOW).values())


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
