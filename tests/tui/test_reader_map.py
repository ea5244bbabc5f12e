"""What a plan would have every reader do, from one reader to a thousand."""

from __future__ import annotations

import msgspec
import pytest

from bitwatch.plan.result import DataPlan
from bitwatch.tui import comparison, reader_grid, reader_map
from bitwatch.tui.comparison import Side
from bitwatch.tui.draw import Line, first_sentence, flowing, folded
from bitwatch.tui.reader_grid import Cell
from tests.tui import plans


def lines(data: DataPlan, width: int = 80, height: int = 20) -> list[Line]:
    found = msgspec.to_builtins(data)
    return [*reader_map.head(found, width), *reader_map.lines(found, width, height)]


def text(data: DataPlan, width: int = 80, height: int = 20) -> str:
    return "\n".join(line.text for line in lines(data, width, height))


def roles(data: DataPlan) -> set[tuple[str, str]]:
    return {span for line in lines(data) for span in line.spans}


def test_the_incident_is_told_in_a_head_and_a_grid() -> None:
    drawn = text(plans.data(2, 4, 4), 120)
    assert drawn.splitlines()[0] == (
        "2 shards · 4×4 readers · 8 busy · 8 idle · every rank reads everything 4× · "
        "about 120 steps an epoch"
    )
    assert drawn.count("● s0") == drawn.count("● s1") == 4
    assert drawn.count("○ idle") == 8


def test_what_is_wrong_is_in_the_colour_of_a_warning_and_what_is_right_is_fine() -> None:
    wrong = roles(plans.data(2, 4, 4))
    assert {("8", "strong warning"), ("4×", "strong warning"), ("○", "warning")} <= wrong
    right = roles(plans.indexed(4, 4))
    assert {("16", "fine"), ("0", "fine"), ("once", "fine"), ("●", "fine")} <= right
    assert not any("warning" in role for _, role in right)


def test_in_an_index_every_reader_is_busy_with_any_sequence() -> None:
    drawn = text(plans.indexed(2, 3))
    assert drawn.count("● any") == 6
    assert reader_map.ANY_SEQUENCE in drawn


def test_row_groups_are_counted_as_such_and_named_by_their_run() -> None:
    drawn = text(plans.reshard(2, 2))
    assert "1,802 row groups" in drawn and "● [0:9]" in drawn and "● [3:9]" in drawn


def test_row_groups_that_nobody_looked_at_are_not_counted() -> None:
    unknown = DataPlan(num_shards=2, ranks=2, workers_per_rank=2, readers=4, mode="reshard")
    assert text(unknown).splitlines()[0] == "2 shards · 2×2 readers"


def test_without_a_split_every_row_is_trained_on_again() -> None:
    drawn = text(plans.data(2, 4, 2, copies=4, read_amplification=4))
    assert "each row is trained on 4× an epoch" in drawn


def test_ranks_apart_and_an_epoch_without_a_step_are_said() -> None:
    drawn = lines(plans.data(4, 4, 1, imbalance_percent=34.2, steps_per_epoch=0))
    spans = {span for line in drawn for span in line.spans}
    assert {("34 %", "strong warning"), ("0", "strong bad")} <= spans


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (1, 1), (4, 4), (8, 2), (64, 16), (3, 40)])
@pytest.mark.parametrize("width", [20, 46, 60, 80, 120, 200])
@pytest.mark.parametrize("height", [4, 20, 70])
def test_every_size_fits_and_idle_readers_are_seen(
    ranks: int, workers: int, width: int, height: int
) -> None:
    data = plans.data(2, ranks, workers)
    drawn = lines(data, width, height)
    assert all(line.width <= width for line in drawn)
    shapes = "".join(line.text for line in drawn)
    assert ("○" in shapes) == bool(data.readers_idle)
    if ranks * max(1, workers) == 1024 and (width, height) == (200, 70):
        assert (shapes.count("●"), shapes.count("○")) == (data.readers_busy, data.readers_idle)


@pytest.mark.parametrize("height", [0, 1, 2, 5, 13, 14, 40])
def test_ranks_without_room_for_a_mark_are_counted_with_their_worst(height: int) -> None:
    grid = {rank: [Cell("reading"), Cell("reading")] for rank in range(100)}
    grid[99] = [Cell("reading"), Cell("stuck")]
    drawn = reader_grid.drawn(grid, 15, height, [])
    assert len(drawn) <= height and all(line.width <= 15 for line in drawn)
    shapes = "".join(line.text for line in drawn)
    assert ("▲" in shapes) == (height > 0)
    marks = shapes.count("●") + shapes.count("▲")
    if height < 14:  # 8 ranks a line, and a line of words
        assert marks == (8 * (height - 1) + 1 if height else 0)
        whole = reader_grid.by_rank(grid, 60, 2)[-1].text
        assert whole == "▲ the worst of 52 more ranks"
    else:
        assert marks == 100


def test_a_plan_that_does_not_say_who_reads_what_says_so() -> None:
    assert reader_map.lines({}, 40, 10)[0].text == "who will read what is not known"
    assert reader_map.lines({"ranks": 2, "mode": "indexed"}, 20, 10)[0].width <= 20


# ---------------------------------------------------------------------------------------
# Two of them


def both(width: int) -> list[str]:
    plan = plans.as_json(plans.incident())
    old = Side(comparison.heading("old:", "as-is"), plan["data"], lambda _: [Line("below old")])
    new = Side(
        comparison.choice("new:", ["indexed", "reshard"], 0),
        plan["corrections"][2]["data"],
        lambda room: comparison.said("why", "because", room),
    )
    return [line.text for line in comparison.lines(old, new, width, 20)]


def test_two_plans_stand_beside_each_other_and_begin_at_the_same_lines() -> None:
    drawn = both(120)
    assert "old: as-is" in drawn[0] and "new: ▸indexed " in drawn[0]
    row = next(line for line in drawn if "rank 3" in line)
    assert "○ idle" in row and "● any" in row
    below = next(line for line in drawn if "below old" in line)
    assert "why      because" in below
    assert len({line.index("│") for line in drawn}) == 1


def test_in_a_narrow_terminal_they_stand_under_each_other() -> None:
    drawn = both(80)
    assert drawn[0].strip() == "old: as-is"
    assert drawn.index("below old") < next(at for at, row in enumerate(drawn) if "new:" in row)
    assert not any("│" in line for line in drawn)


def test_sentences_are_folded_between_words_and_indented_alike() -> None:
    rows = folded("one two 日本語日本語 threethreethree", 12, lead=Line("▲ "))
    assert [row.text for row in rows] == ["▲ one two", "  日本語日…", "  threethre…"]
    assert all(row.width <= 12 for row in rows)
    assert [row.text for row in flowing([Line("aa"), Line("bb"), Line("cc")], 8)] == [
        "aa · bb",
        "cc",
    ]


def test_the_first_sentence_ends_at_a_full_stop_and_not_in_a_number() -> None:
    assert first_sentence("0.5 rows a rank: a.parquet. More of it.") == "0.5 rows a rank: a.parquet"
    assert first_sentence("no stop") == "no stop"
