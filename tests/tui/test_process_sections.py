"""What stands beside the live attempt: its sections, its words, and what is found and sorted."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
import pytest
from rich.cells import cell_len
from textual import events

from bitwatch.attach.others import Other
from bitwatch.record.view import View
from bitwatch.tui.rows import SORTS, Row
from bitwatch.tui.sections import Heading, beside, sections
from bitwatch.tui.targets import targets_of
from bitwatch.tui.widgets.filter_line import FilterLine
from bitwatch.tui.widgets.processes import ProcessPanel
from tests.tui import views
from tests.tui.beside import EVIL, GRACE, SUSPECT, TMUX, all_kinds, leftover, other


def panel_of(
    others: Sequence[Other], view: View | None = None, width: int = 160, height: int = 60
) -> ProcessPanel:
    panel = ProcessPanel()
    panel.others = others
    panel.show(view or views.on_l4s(), views.NOW)
    panel.draw(width, height)
    return panel


def drawn(panel: ProcessPanel, width: int = 160, height: int = 60) -> list[str]:
    return [line.text for line in panel.draw(width, height)]


def line_with(rows: list[str], words: str) -> str:
    return next(row for row in rows if words in row)


def pids(panel: ProcessPanel) -> list[int]:
    return [row.process.pid for row in panel._rows if isinstance(row, Row)]


def test_every_section_has_a_heading_with_its_count_and_its_gpu_memory() -> None:
    panel = panel_of(all_kinds())
    headings = [row for row in panel._rows if isinstance(row, Heading)]
    assert [heading.title for heading in headings] == [
        "our run",
        "leftovers of attempt 1 and another run",
        "ask first",
        "suspects",
        "other GPU users",
    ]
    counted = [heading.words.partition(" · ")[0] for heading in headings]
    assert counted == [
        "22 processes, 66.0 GiB of GPU memory",
        "3 processes, 3.1 GiB of GPU memory",
        "1 process",
        "1 process, 1.0 GiB of GPU memory",
        "2 processes, 2.5 GiB of GPU memory",
    ]
    assert line_with(drawn(panel), "leftovers of").rstrip("│ ").endswith("[c] clean up")
    assert pids(panel)[22:] == [501, 502, 503, 601, 701, 801, 911]


def test_with_nothing_beside_our_run_there_is_no_heading() -> None:
    panel = panel_of(())
    assert not any(isinstance(row, Heading) for row in panel._rows)
    assert "our run" not in "\n".join(drawn(panel))


def test_a_row_says_role_state_proof_user_and_memory() -> None:
    rows = drawn(panel_of(all_kinds(), width=200), 200)
    rank = line_with(rows, "  501 ")
    assert "rank 2" in rank and "recorded" in rank and "900 M" in rank and "10 M" in rank
    assert "3.1 G" in rank and "sleeping" in rank
    far = line_with(rows, "  503 ")
    assert "worker 0 of rank 2 · demo-3236" in far and "leader dead" in far and "2d02h" in far
    assert "blocked" in line_with(rows, "  701 ") and "none" in line_with(rows, "  701 ")
    assert "tmux" in line_with(rows, "  601 ")[:40]
    grace = line_with(rows, "  801 ")
    assert " grace " in grace and "of another user (grace) · python serve.py" in grace
    assert "known to the driver alone" in line_with(rows, "  911 ")


def test_what_cannot_be_signalled_is_dimmed_and_says_why_in_every_width() -> None:
    panel = panel_of(all_kinds(), width=76)
    line = next(line for line in panel.draw(76, 60) if " 801 " in line.text)
    assert "of another user" in line.text
    roles = {role for text, role in line.spans if text.strip(" │")}
    assert roles <= {"quiet", "faint"}


def test_a_leftover_of_the_journal_and_of_the_scan_is_one_row() -> None:
    view = views.with_leftovers()
    known = view.leftovers[1]
    seen = leftover(known.pid, starttime=known.starttime, rank=2, worker=0)
    panel = panel_of((seen,), view)
    assert pids(panel).count(known.pid) == 1
    assert line_with(drawn(panel), "leftovers of attempt 1").count("5 processes") == 1
    (one,) = drawn(panel, 120, 1)
    assert "✗ 5 leftovers" in one


def test_what_became_a_leftover_is_no_more_shown_in_the_run() -> None:
    view = views.on_l4s()
    rank = view.processes[2]
    gone = leftover(rank.pid, starttime=rank.starttime, role="rank", worker=None, attempt=2)
    panel = panel_of((gone,), view)
    assert pids(panel).count(rank.pid) == 1
    assert pids(panel)[-1] == rank.pid


@pytest.mark.parametrize(
    ("text", "expected"),
    [("grace", [801]), ("601", [601]), ("SPAWN_MAIN", [501, 502, 503, 701]), ("tmux", [601])],
)
def test_a_filter_finds_user_pid_command_and_role(text: str, expected: list[int]) -> None:
    panel = panel_of(all_kinds())
    panel.filter.text = text
    panel.draw(160, 60)
    assert [pid for pid in pids(panel) if pid < 1000] == expected


def test_a_filter_that_finds_nothing_says_so_literally() -> None:
    panel = panel_of(all_kinds())
    panel.filter.text = "\x1b[31mnothing"
    assert "no process contains" in "\n".join(drawn(panel))
    assert "\x1b" not in "\n".join(drawn(panel))


def test_what_is_typed_is_shown_at_its_end_and_can_be_taken_back() -> None:
    line = FilterLine()
    line.add("words " * 50 + "\nnext line")
    assert len(line.text) == 200
    assert line.line(60).width == 60 and "keeps" in line.line(60).text
    assert line.line(12).width <= 12
    for key in ("ctrl+w", "backspace"):
        before = line.text
        assert line.take(events.Key(key, None)) and len(line.text) < len(before)
    assert not line.take(events.Key("tab", "\t"))
    assert line.take(events.Key("ctrl+u", None)) and line.text == ""


@pytest.mark.parametrize("sort", SORTS)
def test_sections_stay_apart_however_they_are_sorted(sort: str) -> None:
    rows = beside(views.on_l4s(), all_kinds(), views.NOW)
    for backwards in (False, True):
        found = sections(views.on_l4s(), rows, tree=False, sort=sort, backwards=backwards)
        groups = [section.heading.group for section in found]
        assert groups == ["ours", "leftover", "confirm", "suspect", "gpu"]
        assert {row.process.pid for row in found[1].rows} == {501, 502, 503}
    by_memory = sections(views.on_l4s(), rows, tree=False, sort="mem")[1].rows
    assert by_memory[0].process.pid == 501


def test_an_arrow_says_which_way_is_down() -> None:
    panel = panel_of(())
    panel.sort_on("cpu")
    assert "cpu▾" in drawn(panel)[1]
    panel.reverse()
    assert "cpu▴" in drawn(panel)[1]
    panel.sort_on("pid")
    assert "pid▴" in drawn(panel)[1] and not panel.backwards


def test_the_selection_is_an_identity_through_sections_filters_and_restarts() -> None:
    panel = panel_of(all_kinds())
    panel._select(panel._rows.index(next(r for r in panel._rows if _is(r, 701))), 1)
    key = SUSPECT.key
    assert panel.selection == key
    for change in (
        lambda: panel.sort_on("mem"),
        lambda: setattr(panel.filter, "text", "worker"),
        lambda: setattr(panel, "as_tree", True),
        lambda: setattr(panel.filter, "text", ""),
    ):
        change()
        panel.draw(160, 60)
        assert panel.selection == key
    for text in ("grace", ""):  # which it does not match: then it goes on to what does
        panel.filter.text = text
        panel.draw(160, 60)
        assert panel.selection == GRACE.key
    panel._select(panel._rows.index(next(r for r in panel._rows if _is(r, 701))), 1)
    moved = msgspec.structs.replace(SUSPECT, group="leftover")
    panel.others = (*(o for o in all_kinds() if o.key != key), moved)
    panel.show(views.on_l4s(), views.NOW + 1)
    panel.draw(160, 60)
    assert panel.selection == key
    panel.show(View(), views.NOW + 2)
    panel.others = ()
    panel.show(views.on_l4s(), views.NOW + 3)
    panel.draw(160, 60)
    assert panel.selection != key and panel.selection is not None


def test_another_process_with_the_same_pid_does_not_inherit_a_tag_or_the_selection() -> None:
    panel = panel_of((SUSPECT,))
    panel.selection = SUSPECT.key
    panel.tag()
    assert [row.process.pid for row in panel.chosen()] == [SUSPECT.pid]
    panel.others = (msgspec.structs.replace(SUSPECT, starttime=1),)
    panel.show(views.on_l4s(), views.NOW)
    panel.draw(160, 60)
    assert panel.tagged_rows() == []
    assert not any(line.startswith("│ ▌") for line in drawn(panel))


def test_workers_in_one_line_are_all_meant_and_each_is_named() -> None:
    panel = panel_of((), height=14)
    joined = next(row for row in panel._rows if isinstance(row, Row) and row.members)
    panel.selection = joined.keys[0]
    targets = targets_of(panel.chosen())
    assert [target.key for target in targets] == list(joined.keys) and len(targets) == 4
    assert "worker 3 of rank 0, pid 51305" in targets[3].name


def test_a_target_says_what_its_end_would_mean() -> None:
    rows = beside(views.on_l4s(), all_kinds(), views.NOW)
    told = {target.key: target for target in targets_of(rows)}
    assert "perhaps somebody's" in told[TMUX.key].means
    assert "its parent is gone" in told[SUSPECT.key].means
    assert told[GRACE.key].barred == "of another user (grace)"
    assert told[(911, 0)].barred
    assert "attempt 1, which has ended" in told[(502, 7502)].means


def test_of_somebody_elses_training_a_target_names_no_launcher_and_promises_nothing() -> None:
    panel = panel_of((), height=14)
    rows = panel.every_row()
    assert any("torchrun" in target.means for target in targets_of(rows))
    for target in targets_of(rows, foreign=True):
        assert "torchrun" not in target.means and "brings it back" not in target.means


@pytest.mark.parametrize("size", [(40, 8), (76, 20), (120, 12), (200, 60)])
def test_words_of_processes_break_nothing(size: tuple[int, int]) -> None:
    evil = other(
        66, "suspect", role=EVIL, run=EVIL, user=EVIL, state="?", words=EVIL, proof=EVIL,
        barred=EVIL, why=EVIL * 100, command=EVIL * 300,
    )  # fmt: skip
    long = other(67, "confirm", command="\u202e" + "a" * 10_000 + "漢" * 10_000)
    panel = panel_of((evil, long), width=size[0], height=size[1])
    for _ in range(2):
        lines = drawn(panel, *size)
        assert all(cell_len(line) <= size[0] for line in lines)
        assert not any(c in "".join(lines) for c in "\x1b\x07\r\n\x9b\u202e")
        panel.action_move_to(-1)
    assert targets_of(panel.chosen())[0].name.isprintable()


def test_headings_stay_in_sight_where_there_is_no_room() -> None:
    panel = panel_of(all_kinds(), height=12)
    lines = "\n".join(drawn(panel, 160, 12))
    for title in ("leftovers of", "ask first", "suspects", "other GPU users"):
        assert title in lines
    assert "supervisor" in lines and len(drawn(panel, 160, 12)) == 12


def test_many_others_cost_no_more_than_what_is_seen_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [leftover(10_000 + at, command="x y " * 2500) for at in range(500)]
    panel = panel_of(many, width=120, height=40)
    painted = []
    line = panel._line
    monkeypatch.setattr(panel, "_line", lambda *given: painted.append(1) or line(*given))
    began = time.thread_time()  # of this thread alone: the machine may be busy
    panel.draw(120, 40)
    assert len(painted) <= 40
    assert time.thread_time() - began < 1.0


def _is(row: Heading | Row, pid: int) -> bool:
    return isinstance(row, Row) and row.process.pid == pid
