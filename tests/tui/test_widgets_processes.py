"""The process tree: its rows, its columns, and a cursor that stays with its process."""

from __future__ import annotations

import msgspec
import pytest

from bitwatch.record.view import View
from bitwatch.tui import family
from bitwatch.tui.rows import SORTS, Row
from bitwatch.tui.sections import Heading
from bitwatch.tui.widgets.columns import age
from bitwatch.tui.widgets.processes import ProcessPanel
from tests.tui import views


def panel_of(view: View, width: int = 120, height: int = 40) -> ProcessPanel:
    panel = ProcessPanel()
    panel.show(view, views.NOW)
    panel.draw(width, height)
    return panel


def lines(view: View, width: int = 120, height: int = 40) -> list[str]:
    return [line.text for line in panel_of(view).draw(width, height)]


def test_the_tree_hangs_workers_below_their_rank() -> None:
    drawn = lines(views.on_l4s())
    whole = "\n".join(drawn)
    assert "├─ rank 0" in whole and "└─ rank 3" in whole
    assert "│  ├─ worker 0 · shard 0" in whole and "   └─ worker 3" in whole


def test_numbers_stand_in_columns() -> None:
    drawn = lines(views.on_l4s())
    head = drawn[1]
    for name in ("age", "cpu", "mem", "gpu"):
        end = head.index(name) + len(name)
        cells = [row[end - 4 : end] for row in drawn[2:24]]
        assert all(cell.strip() for cell in cells), (name, cells)
    assert "15.8 G" in drawn[4] and "2.9 G" in drawn[4] and "2h04" in drawn[4]


def test_a_state_is_a_word_and_a_workers_own_word_says_more() -> None:
    whole = "\n".join(lines(views.on_l4s()))
    assert "sleeping" in whole and "running" in whole and "reading" in whole and "idle" in whole
    view = views.on_l4s()
    view.processes[2].state = "D"
    view.processes[3].state = "Z"
    whole = "\n".join(lines(view))
    assert "defunct" in whole and "blocked" in whole


def test_a_worker_that_had_nothing_to_read_and_was_ended_is_no_casualty() -> None:
    view = views.on_l4s()
    idle = {(r.pid, r.starttime) for r in view.readers if r.state == "idle"}
    for process in view.processes:
        process.state = "Z" if process.key in idle else process.state
    drawn = "\n".join(lines(view))
    assert idle and "defunct" not in drawn
    assert drawn.count(" ended ") == len(idle)


def test_what_is_dead_has_no_age_and_no_memory_and_is_not_counted() -> None:
    view = views.on_l4s()
    lives = len(view.processes)
    assert f"{lives} ours" in lines(view)[-1]
    worker = next(process for process in view.processes if process.role == "worker")
    worker.state = "Z"
    gone = msgspec.structs.replace(view, supervisor="gone")
    drawn = lines(gone)
    row = next(line for line in drawn if " gone " in line)
    assert row.split()[3:8] == ["gone", "–", "–", "–", "–"]
    dead = next(line for line in drawn if f" {worker.pid} " in line)
    assert " defunct " in dead and dead.count("–") >= 3
    assert f"{lives - 2} ours" in drawn[-1]
    summed = panel_of(gone).summary(120).text
    assert "supervisor" not in summed and "15 workers" in summed
    beside = msgspec.structs.replace(views.with_leftovers(), supervisor="gone")
    heading = next(line for line in lines(beside) if "our run" in line)
    assert f"{len(beside.processes) - 1} processes" in heading


def test_workers_share_a_line_only_when_space_is_short() -> None:
    assert "×2" not in "\n".join(lines(views.on_l4s(), height=30))
    whole = "\n".join(lines(views.on_l4s(), height=21))
    assert "worker 2, 3 · idle ×2" in whole and "worker 0 · shard 0" in whole
    whole = "\n".join(lines(views.on_l4s(), height=14))
    assert "worker 0–3 · 2 reading, 2 idle" in whole


def test_what_lies_outside_is_said() -> None:
    drawn = lines(views.many_readers(), height=14)
    assert "1–11 of 130" in drawn[0] and "1090 ours" in drawn[-1]


def test_leftovers_stand_in_the_same_panel_with_their_key() -> None:
    drawn = lines(views.with_leftovers())
    at = next(i for i, row in enumerate(drawn) if "leftovers of attempt 1" in row)
    assert "5 processes, 3.1 GiB of GPU memory" in drawn[at]
    assert drawn[at].rstrip("│ ").endswith("[c] clean up")
    assert "38803" in drawn[at + 1] and "worker 0 of rank 2" in drawn[at + 2]
    (one,) = lines(views.with_leftovers(), width=80, height=1)
    assert "✗ 5 leftovers" in one


def test_leftovers_are_never_out_of_sight_and_the_selection_stays() -> None:
    view = views.with_leftovers()
    panel = panel_of(view)
    select(panel, 38804)
    drawn = [line.text for line in panel.draw(120, 12)]
    assert "leftovers of attempt 1" in drawn[-2]
    assert panel.selection == (38804, 501)
    panel.draw(120, 40)
    assert panel.selection == (38804, 501)


def test_a_run_that_has_ended_has_no_processes() -> None:
    assert any("nothing of this run is left" in row for row in lines(views.ended()))
    assert any("no sample of processes yet" in row for row in lines(views.preparing()))


def roles_of(panel: ProcessPanel, words: str) -> dict[str, str]:
    """In which role each word of a row is drawn."""
    line = next(line for line in panel.draw(120, 40) if words in line.text)
    spans = [(text, role.removeprefix("@surface ")) for text, role in line.spans]  # the selected
    return {word: role for text, role in spans for word in text.split()}


def test_of_a_run_without_supervisor_it_is_gone_and_the_rest_is_dim() -> None:
    panel = ProcessPanel()
    view = views.on_l4s(sampled=views.NOW)
    panel.show(view, views.NOW)
    assert roles_of(panel, "supervisor")["sleeping"] == "quiet"
    rank, worker = roles_of(panel, "─ rank 0"), roles_of(panel, "worker 0 · shard 0")
    assert "text" in rank.values() and worker["reading"] == "fine"
    panel.show(msgspec.structs.replace(view, supervisor="gone"), views.NOW + 1)
    assert roles_of(panel, "supervisor")["gone"] == "bad"
    rank, worker = roles_of(panel, "─ rank 0"), roles_of(panel, "worker 0 · shard 0")
    borders = {"│", "╭", "╰"}
    assert {role for word, role in rank.items() if word not in borders} <= {"quiet", "faint"}
    assert worker["reading"] == "quiet"
    panel.show(view, views.NOW + 2)  # it only seemed so
    assert roles_of(panel, "supervisor")["sleeping"] == "quiet"
    assert roles_of(panel, "worker 0 · shard 0")["reading"] == "fine"
    panel.now = views.NOW + 11  # of an old sample the supervisor may live
    assert roles_of(panel, "supervisor")["sleeping"] == "quiet"
    assert roles_of(panel, "worker 0 · shard 0")["reading"] == "quiet"


# ---------------------------------------------------------------------------------------
# The cursor


def select(panel: ProcessPanel, pid: int) -> None:
    row = next(row for row in panel._rows if isinstance(row, Row) and row.process.pid == pid)
    panel._select(panel._rows.index(row), 1)


def test_the_selection_follows_the_process_not_the_row() -> None:
    view = views.on_l4s()
    panel = panel_of(view)
    select(panel, views.pid_of(2))
    key = panel.selection
    before = panel._at
    view = views.on_l4s()
    view.processes = [row for row in view.processes if row.rank != 0]  # five rows above it are gone
    panel.show(view, views.NOW + 1)
    panel.draw(120, 40)
    assert panel.selection == key and panel._at == before - 5
    chosen = panel.selected()
    assert chosen is not None and chosen.role == "rank 2"


def test_the_selection_survives_sorting_flat_and_collapsing() -> None:
    panel = panel_of(views.on_l4s())
    select(panel, views.pid_of(1, 3))
    key = panel.selection
    panel.as_tree, panel.sort = False, "cpu"
    panel.draw(120, 40)
    assert panel.selection == key
    panel.as_tree = True
    panel.draw(120, 12)
    assert panel.selection == key
    chosen = panel.selected()
    assert chosen is not None and chosen.process.pid == views.pid_of(1, 3)


def test_a_reused_pid_is_another_process() -> None:
    panel = panel_of(views.on_l4s())
    select(panel, views.pid_of(1))
    key = panel.selection
    view = views.on_l4s()
    view.processes = [
        msgspec.structs.replace(row, starttime=1) if row.pid == views.pid_of(1) else row
        for row in view.processes
    ]
    panel.show(view, views.NOW)
    panel.draw(120, 40)
    assert panel.selection != key


def test_when_the_process_ends_the_cursor_stays_in_its_place() -> None:
    panel = panel_of(views.on_l4s())
    select(panel, views.pid_of(3, 3))
    at = panel._at
    view = views.on_l4s()
    view.processes = view.processes[:-1]
    panel.show(view, views.NOW)
    panel.draw(120, 40)
    assert panel.selection is not None and panel._at == at - 1


def test_moving_never_lands_on_a_heading() -> None:
    panel = panel_of(views.with_leftovers())
    panel.action_move_to(-1)
    for _ in range(40):
        panel.action_move(-1)
        panel.draw(120, 40)
        assert panel.selected() is not None
    assert isinstance(panel._rows[0], Heading) and panel._at == 1 and panel._offset == 0


def test_the_cursor_is_always_in_sight() -> None:
    panel = panel_of(views.many_readers(), height=12)
    for move in (7, 50, -20, 2000, -3000):
        panel.action_move(move)
        panel.draw(120, 12)
        assert panel._offset <= panel._at < panel._offset + panel._room


# ---------------------------------------------------------------------------------------
# Rows


def test_a_filter_keeps_what_stands_above_a_match() -> None:
    rows = family.rows(views.on_l4s(), text="worker 3")
    assert [row.role for row in rows][:4] == ["supervisor", "agent", "rank 0", "worker 3"]
    assert family.rows(views.on_l4s(), text="nothing like it") == []


@pytest.mark.parametrize("sort", SORTS)
def test_every_column_sorts_flat(sort: str) -> None:
    rows = family.rows(views.on_l4s(), tree=False, sort=sort)
    assert len(rows) == 22
    reverse = family.rows(views.on_l4s(), tree=False, sort=sort, backwards=True)
    assert reverse[0].keys != rows[0].keys


def test_a_process_whose_parent_is_unknown_is_a_root() -> None:
    view = views.on_l4s()
    view.processes = view.processes[2:]
    rows = family.rows(view)
    assert rows[0].role == "rank 0" and rows[0].guides == ""


def test_a_process_that_is_its_own_parent_does_no_harm() -> None:
    view = views.on_l4s()
    view.processes[0].ppid = view.processes[0].pid
    assert len(family.rows(view)) == 22


def test_ages_are_short() -> None:
    assert [age(s) for s in (-3, 5, 65, 7440, 200_000)] == ["0s", "5s", "1m", "2h04", "2d07h"]


def _changed(view: View, pid: int, **fields: object) -> View:
    rows = [
        msgspec.structs.replace(row, **fields) if row.pid == pid else row for row in view.processes
    ]
    return msgspec.structs.replace(view, processes=rows)


@pytest.mark.parametrize("height", (12, 40))
@pytest.mark.parametrize("sort", ("tree", "cpu"))
def test_what_changes_is_drawn_as_if_all_were_drawn_anew(sort: str, height: int) -> None:
    """Only the rows that have changed are made again: nobody may see that."""
    view = views.on_l4s()
    rank, worker = views.pid_of(0), views.pid_of(1, 0)
    readers = [msgspec.structs.replace(one, state="idle", shards=[]) for one in view.readers]
    seen = [
        view,
        view := _changed(view, rank, cpu_percent=3.0, rss_mib=70_000.0),
        view := _changed(view, worker, state="Z"),
        view := _changed(view, worker, state="D", cpu_percent=55.0),
        view := _changed(view, rank, command="python another"),
        view := msgspec.structs.replace(view, readers=readers),
        view := msgspec.structs.replace(view, gpus=None),
        view := _changed(view, worker, ppid=views.pid_of(2)),
        msgspec.structs.replace(view, processes=view.processes[:-1]),
    ]
    panel, fresh = ProcessPanel(), ProcessPanel()
    panel.as_tree = fresh.as_tree = sort == "tree"
    panel.sort = fresh.sort = "pid" if sort == "tree" else sort
    for later, each in enumerate(seen):
        panel.show(each, views.NOW + later)
        fresh._own, fresh._own_of = {}, None
        fresh._arranged = fresh._columns = None
        fresh.show(each, views.NOW + later)
        assert panel.draw(120, height) == fresh.draw(120, height)
