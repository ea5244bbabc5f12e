"""The keys and the mouse in the process panel: filter, sort, tags, details, signals."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from textual.widgets import OptionList, Static

from bitwatch.attach.others import Other
from bitwatch.record.rundir import RunDir
from bitwatch.sense.processes import read_stat, send_signal
from bitwatch.tui.rows import Row
from bitwatch.tui.screens.details import Details
from bitwatch.tui.screens.signal import SignalDialog
from tests.conftest import until
from tests.tui.beside import EVIL, SUSPECT, all_kinds, leftover, other
from tests.tui.conftest import Open, Stage


@pytest.fixture
def sleeper() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two real processes that wait until they are signalled."""
    ours = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    yield ours
    for process in ours:
        process.kill()
        process.wait()


def seen(process: subprocess.Popen[bytes], **fields: object) -> Other:
    stat = read_stat(process.pid)
    assert stat is not None
    values = {"starttime": stat.starttime, "role": "worker", "command": "sleep 600", **fields}
    return other(process.pid, "suspect", **values)


async def give(at: Stage, others: Sequence[Other]) -> None:
    at.source.give(at.source.view, others=others)
    await at.pilot.pause()


def pids(at: Stage) -> list[int]:
    return [row.process.pid for row in at.dashboard.processes._rows if isinstance(row, Row)]


async def select(at: Stage, pid: int) -> None:
    """With one key press, however far it is."""
    panel = at.dashboard.processes
    at_row = next(
        y for y, r in enumerate(panel._rows) if isinstance(r, Row) and r.process.pid == pid
    )
    panel._select(at_row - 1, -1)
    await at.press("down")
    if panel.selection is None or panel.selection[0] != pid:
        await at.press("down")
    assert panel.selection is not None and panel.selection[0] == pid


async def test_slash_filters_as_one_types_and_no_key_does_anything_else(stage: Open) -> None:
    async with stage() as at:
        await give(at, all_kinds())
        await at.press("slash", *"Sqt")
        assert at.commands.asked == [] and not at.app._exit
        assert "/ Sqt▏" in at.text() and "no process contains 'Sqt'" in at.text()
        await at.press("backspace", "backspace", "backspace", *"tmux")
        assert pids(at) == [601]
        await at.press("enter")
        assert pids(at) == [601] and "/tmux" in at.text() and "▏" not in at.text()
        await at.press("escape")
        assert len(pids(at)) == 15
        await at.press("slash", *"tmux", "escape")
        assert len(pids(at)) == 15 and at.app.screen is at.dashboard


async def test_slash_opens_the_panel_where_it_is_only_a_line(stage: Open) -> None:
    async with stage(80, 24) as at:
        await at.press("slash", *"rank 1", "enter")
        assert "rank 1" in at.text() and "3 Loss" not in at.text()
        assert pids(at) == [100, 101, 103]
        await at.press("escape", "escape")
        assert "3 Loss" in at.text()


async def test_full_stop_and_comma_sort_by_the_next_and_the_previous_column(stage: Open) -> None:
    async with stage() as at:
        await at.press("4")
        assert "└─" in at.text()
        heads = []
        for _ in range(4):
            await at.press("full_stop")
            panel = at.dashboard.processes
            heads.append(panel.sort)
        assert heads == ["role", "state", "age", "cpu"]
        assert "└─" not in at.text() and "cpu▾" in at.text() and "by cpu" in at.text()
        assert pids(at)[:2] == [102, 103]
        await at.press("I")
        assert "cpu▴" in at.text() and pids(at)[-1] == 102
        await at.press("comma")
        assert "age▴" in at.text()
        await at.press("t")
        assert "└─" in at.text() and "▴" not in at.text()
        await at.press(*["full_stop"] * 8)
        assert at.dashboard.processes.sort == "age"  # round, past what no process has


async def test_space_tags_and_u_takes_all_tags_away(stage: Open) -> None:
    async with stage() as at:
        await give(at, all_kinds())
        await at.press("space")
        assert at.dashboard.processes.tagged == set()  # the first only goes there
        await select(at, 502)
        await at.press("space", "space")
        assert at.dashboard.processes.tagged == {(502, 7502), (601, 7601)}
        assert "2 tagged" in at.text() and "u untag" in at.text()
        await at.press("up", "space")
        assert at.dashboard.processes.tagged == {(502, 7502)}
        assert "1 tagged" in at.text()
        await give(at, [o for o in all_kinds() if o.pid != 502])
        assert "1 tagged" not in at.text()
        await at.press("u")
        assert at.dashboard.processes.tagged == set()


async def test_enter_shows_all_that_is_known_and_waits_for_nothing(
    stage: Open, sleeper: list[subprocess.Popen[bytes]]
) -> None:
    async with stage() as at:
        first, _ = sleeper
        await give(at, [seen(first, why="its parent is gone")])
        await at.press("4")
        await select(at, first.pid)
        await at.press("enter")
        assert isinstance(at.app.screen, Details)
        await at.until(lambda: "works in" in at.text())
        for words in ("sleep 600", os.getcwd()[:30], "its parent is gone", "resident", "threads"):
            assert words in at.text()
        await at.press("enter")
        assert at.app.screen is at.dashboard
        first.kill()
        first.wait()
        await at.press("enter")
        await at.until(lambda: "It has ended." in at.text())


async def test_details_of_what_only_the_driver_knows_and_of_evil_words(
    stage: Open, sleeper: list[subprocess.Popen[bytes]]
) -> None:
    async with stage() as at:
        evil = subprocess.Popen(
            [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)", EVIL, "a" * 9000],
            stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            assert evil.stdout and evil.stdout.readline()
            await give(at, [seen(evil, role=EVIL, why=EVIL), *all_kinds()])
            await at.press("4")
            await select(at, 911)
            await at.press("enter")
            assert "Only the driver of the GPU knows it" in at.text()
            await at.press("escape")
            await select(at, evil.pid)
            await at.press("enter")
            await at.until(lambda: "works in" in at.text())
            statics = at.app.screen.query("#scroll Static").results(Static)
            assert any("more characters" in str(static.content) for static in statics)
            assert "\\x1b[2J" in at.text() and "[red]" in at.text()
            assert not any(c in at.text() for c in "\x1b\x07\u202e")
        finally:
            evil.kill()
            evil.communicate()


async def test_a_signal_asks_with_cancel_in_front(stage: Open) -> None:
    async with stage() as at:
        await at.press("4")
        await select(at, 103)
        for key, answer in (("K", "enter"), ("f9", "escape"), ("K", "q"), ("K", "n")):
            await at.press(key)
            assert isinstance(at.app.screen, SignalDialog)
            assert "rank 1, pid 103" in at.text()
            assert "torchrun ends the whole attempt" in at.text()
            options = at.app.screen.query_one(OptionList)
            assert options.has_focus and options.highlighted == 0
            await at.press(answer)
            assert at.app.screen is at.dashboard
        assert at.commands.signals == []
        await at.press("f9", "down", "enter")
        await at.until(lambda: at.commands.signals)
        assert at.commands.signals == [("TERM", [(103, 9)])]
        await at.until(lambda: "TERM sent to 1" in at.toasts())


async def test_signals_go_to_the_tagged_and_never_to_what_is_barred(stage: Open) -> None:
    async with stage(80, 24) as at:
        await give(at, all_kinds())
        await at.press("K")  # only a line: the first press shows what it would be about
        assert at.app.screen is at.dashboard
        for pid in (701, 801, 502):
            await select(at, pid)
            await at.press("space")
        await at.press("K")
        assert "Signal 2 processes, 1 left alone" in at.text()
        await at.press("down", "down", "enter")
        await at.until(lambda: at.commands.signals)
        ((name, targets),) = at.commands.signals
        assert name == "KILL" and set(targets) == {(502, 7502), SUSPECT.key}
        await at.press("u")
        await select(at, 801)
        await at.press("K")
        assert "Nothing here can be signalled" in at.text()
        assert "of another user (grace)" in at.text()
        assert at.app.screen.query_one(OptionList).option_count == 1
        await at.press("enter")
        assert len(at.commands.signals) == 1


async def test_a_signal_reaches_what_was_chosen_whatever_has_come_in_its_place(
    stage: Open, sleeper: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sleeper

    def really(run: RunDir, targets: Sequence[tuple[int, int]], name: str) -> str:
        number = getattr(__import__("signal"), f"SIG{name}")
        return f"reached {sum(send_signal(*key, number) for key in targets)}"

    async with stage() as at:
        monkeypatch.setattr(at.commands, "signal", really)
        before, after = seen(first), seen(second)
        await give(at, [before])
        await at.press("4")
        await select(at, first.pid)
        await at.press("K")
        await give(at, [leftover(2), after])  # under the dialog the rows move, one takes its place
        assert first.pid not in pids(at)
        await at.press("down", "enter")
        await at.until(lambda: "reached 1" in at.toasts())
        until(lambda: first.poll() is not None, "the signal to arrive")
        assert second.poll() is None
        # The same pid, and another start: the process that was meant is gone.
        stale = msgspec.structs.replace(after, starttime=after.starttime - 1)
        await give(at, [stale])
        await select(at, second.pid)
        await at.press("K")
        await give(at, [after])
        await at.press("down", "down", "enter")
        await at.until(lambda: "reached 0" in at.toasts())
        assert second.poll() is None


async def test_the_mouse_selects_opens_scrolls_and_sorts(stage: Open) -> None:
    async with stage() as at:
        await give(at, all_kinds())
        panel = at.dashboard.processes
        row = panel._rows[panel._offset + 2]
        await at.pilot.click("#processes", offset=(20, 4))
        assert isinstance(row, Row) and panel.selection in row.keys
        assert at.app.focused is panel and at.app.screen is at.dashboard
        at_row = panel._at
        await at.pilot._post_mouse_events([_wheel()], "#processes", offset=(20, 5))
        await at.pilot.pause()
        assert panel._at > at_row
        await at.pilot.click("#processes", offset=(20, 4), times=2)
        await at.until(lambda: isinstance(at.app.screen, Details))
        await at.press("escape")
        head = next(line for line in at.text().splitlines() if "state" in line and "cpu" in line)
        await at.pilot.click("#processes", offset=(head.index("mem") + 1, 1))
        assert panel.sort == "mem" and "mem▾" in at.text()
        await at.pilot.click("#processes", offset=(head.index("mem") + 1, 1))
        assert "mem▴" in at.text()


async def test_a_click_means_the_line_that_was_there(stage: Open) -> None:
    """The focus gives every worker its own line, which moves what is below."""
    async with stage(120, 28) as at:
        panel = at.dashboard.processes
        lines = at.text().splitlines()
        y = next(y for y, line in enumerate(lines) if "rank 1" in line and "103" in line)
        await at.pilot.click(offset=(20, y))
        assert panel.selection == (103, 9) and at.app.focused is panel


async def test_the_footer_names_these_keys_where_they_do_something(stage: Open) -> None:
    async with stage() as at:
        await give(at, all_kinds())
        assert "/ filter" not in at.text() and "c clean up" in at.text()
        await at.press("4")
        footer = at.text().splitlines()[-1]
        for words in ("/ filter", ". sort", "space tag", "enter details", "K signal", "t tree"):
            assert words in footer
        await at.press("1")
        assert "/ filter" not in at.text()


async def test_a_panel_that_fills_the_screen_has_all_of_it(stage: Open) -> None:
    async with stage() as at:
        for key, panel in (("4", at.dashboard.processes), ("3", at.dashboard.loss)):
            await at.press(key, key)
            assert panel.size.height > 30 and panel.size.width == 120
            await at.press("escape")


def _wheel() -> type:
    from textual.events import MouseScrollDown

    return MouseScrollDown


async def test_when_the_tagged_have_ended_nothing_else_is_meant(stage: Open) -> None:
    async with stage(120, 40) as at:
        await give(at, all_kinds())
        at.dashboard.processes.focus()
        await select(at, 502)
        await at.press("space")
        await give(at, [one for one in all_kinds() if one.pid != 502])
        await at.press("K")
        assert at.app.screen is at.dashboard and not at.dashboard.processes.tagged
        assert at.toasts() == ["the marked processes have ended"]
        await at.press("K")
        assert isinstance(at.app.screen, SignalDialog)


async def test_while_paused_keys_are_about_what_is_on_the_screen(stage: Open) -> None:
    async with stage(120, 40) as at:
        shown = at.dashboard.view
        await at.press("p")
        at.source.give(msgspec.structs.replace(shown, attempt=7, state="failed"))
        await at.pilot.pause()
        await at.press("S")
        assert f"attempt {shown.attempt}?" in at.text()
        await at.press("escape", "p")
        assert at.dashboard.view.attempt == 7


async def test_what_a_filter_hides_is_counted_where_a_key_acts_on_it(stage: Open) -> None:
    async with stage(200, 60) as at:
        await give(at, all_kinds())
        await at.press("slash", *"501", "enter")
        assert "1 of 3 processes" in at.text()
