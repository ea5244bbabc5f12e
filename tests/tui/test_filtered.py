"""What a filter finds is what keys are meant for; what else it shows is only where that stands."""

from __future__ import annotations

from bitwatch.tui.rows import Row
from bitwatch.tui.screens.details import Details
from bitwatch.tui.screens.signal import SignalDialog
from bitwatch.tui.widgets.processes import ProcessPanel
from tests.tui import views
from tests.tui.conftest import Open, Stage


def panel_of() -> ProcessPanel:
    panel = ProcessPanel()
    panel.show(views.on_l4s(), views.NOW)
    panel.draw(120, 40)
    return panel


def find(panel: ProcessPanel, text: str) -> None:
    panel.filter.text = text
    panel.draw(120, 40)


def key_of(pid: int) -> tuple[int, int]:
    return next(row.key for row in views.on_l4s().processes if row.pid == pid)


def meant(panel: ProcessPanel) -> list[str]:
    return [row.role for row in panel.chosen()]


async def choose(at: Stage, pid: int) -> None:
    panel = at.dashboard.processes
    while panel.selection is None or panel.selection[0] != pid:
        await at.press("down")


async def test_after_a_filter_a_signal_is_meant_for_what_it_has_found(stage: Open) -> None:
    async with stage() as at:
        await at.press("4")
        assert at.dashboard.processes.selection == (100, 9)  # the supervisor
        await at.press("slash", *"107", "enter", "K")
        assert isinstance(at.app.screen, SignalDialog)
        assert "Signal 1 process" in at.text() and "pid 107" in at.text()
        assert "pid 100" not in at.text()
        await at.press("escape", "enter")
        assert isinstance(at.app.screen, Details) and "107" in at.text()


async def test_keys_that_come_in_one_go_with_the_filter_mean_what_it_finds(stage: Open) -> None:
    async with stage() as at:
        await at.press("4")
        await at.pilot.press("slash", *"106", "enter", "K", "down", "enter")
        await at.until(lambda: at.commands.signals)
        assert at.commands.signals == [("TERM", [(106, 9)])]


async def test_where_a_filter_finds_nothing_no_process_is_meant(stage: Open) -> None:
    async with stage() as at:
        await at.press("4", "slash", *"nothing\\", "enter")
        assert "no process contains 'nothing\\'" in at.text()
        await at.press("K", "enter")
        assert at.app.screen is at.dashboard and at.toasts() == ["no process is selected"]
        await at.press("space", "escape")
        assert at.dashboard.processes.tagged == set()


async def test_escape_takes_the_filter_away_from_every_panel(stage: Open) -> None:
    async with stage() as at:
        await at.press("slash", *"107", "enter", "3")
        assert at.app.focused is at.dashboard.loss and "/107" in at.text()
        await at.press("escape")
        assert not at.dashboard.processes.filter.text and "/107" not in at.text()


async def test_what_is_marked_is_meant_whatever_a_filter_finds(stage: Open) -> None:
    async with stage() as at:
        await at.press("4")
        await choose(at, 102)
        await at.press("space", "slash", *"107", "enter", "space")
        assert at.dashboard.processes.tagged == {(102, 9), (107, 9)}
        await at.press("K")
        assert "Signal 2 processes" in at.text()


async def test_a_click_on_what_stands_above_a_match_means_nothing(stage: Open) -> None:
    async with stage() as at:
        await at.press("4", "slash", *"107", "enter")
        lines = at.text().splitlines()
        y = next(y for y, line in enumerate(lines) if "rank 1" in line and "103" in line)
        await at.pilot.click(offset=(20, y), times=2)
        assert at.dashboard.processes.selection == (107, 9)
        assert at.app.screen is at.dashboard
        y = next(y for y, line in enumerate(lines) if "worker 1" in line and "107" in line)
        await at.pilot.click(offset=(20, y), times=2)
        await at.until(lambda: isinstance(at.app.screen, Details))


def test_the_selection_goes_to_the_first_match_and_stays_on_one_that_matches() -> None:
    panel = panel_of()
    find(panel, "worker 3")
    assert meant(panel) == ["worker 3"] and panel.selection == key_of(views.pid_of(0, 3))
    panel.action_move_to(-1)
    last = panel.selection
    find(panel, "worker")
    assert panel.selection == last
    find(panel, "")
    assert panel.selection == last


def test_moving_passes_over_what_stands_above_a_match() -> None:
    panel = panel_of()
    find(panel, "worker 3")
    seen = [meant(panel)]
    for by in (1, 1, 1, 1, -1, -30):
        panel.action_move(by)
        panel.draw(120, 40)
        seen.append(meant(panel))
    assert seen == [["worker 3"]] * 7
    assert panel.selection == key_of(views.pid_of(0, 3))
    panel.action_move(1)
    assert panel.selection == key_of(views.pid_of(1, 3))


def test_context_is_quiet_and_a_match_is_not() -> None:
    panel = panel_of()
    find(panel, "worker 0")
    rows = [row for row in panel._rows if isinstance(row, Row)]
    assert {row.role for row in rows if row.context} >= {"supervisor", "agent", "rank 0", "rank 3"}
    assert next(row.role for row in rows if not row.context).startswith("worker 0")

    def roles(words: str) -> set[str]:
        line = next(line for line in panel.draw(120, 40) if words in line.text)
        return {role for text, role in line.spans if text.strip(" │")}

    assert roles("─ rank 2") <= {"quiet", "faint"}
    assert "text" in roles(f"{views.pid_of(2, 0)}")
    find(panel, "")
    assert not any(row.context for row in rows)
    assert "text" in roles("─ rank 2")
    find(panel, "rank 2")
    panel.as_tree = False
    panel.draw(120, 40)
    assert not any(isinstance(row, Row) and row.context for row in panel._rows)


def test_a_selected_process_that_no_longer_matches_hands_its_place_to_nobody() -> None:
    """Only somebody's own keys move the selection: what matches may be another from second to
    second, and rows change their order."""
    panel = panel_of()
    find(panel, "running")
    panel.action_move(1)
    key = panel.selection
    assert key == key_of(views.pid_of(1))
    view = views.on_l4s()
    for process in view.processes:
        process.state = "S" if process.key == key else process.state
    panel.show(view, views.NOW + 1)
    panel.draw(120, 40)
    assert panel.selection == key and panel.chosen() == []
    panel.show(views.on_l4s(), views.NOW + 2)
    panel.draw(120, 40)
    assert panel.selection == key and meant(panel) == ["rank 1"]
    panel.as_tree, panel.sort, panel.backwards = False, "cpu", True
    panel.draw(120, 40)
    assert panel.selection == key and meant(panel) == ["rank 1"]


def test_what_stands_above_the_first_match_comes_into_sight_with_it() -> None:
    panel = ProcessPanel()
    panel.show(views.many_readers(), views.NOW)
    panel.filter.text = "worker 1"
    panel.as_tree = True
    for move in (50, -1000, 1000, -1000):
        panel.action_move(move)
        panel.draw(120, 12)
        assert panel._offset <= panel._at < panel._offset + panel._room
    assert panel._offset == 0 and panel._at > 0
