"""Another run's curve beside this one's: the page that asks which, and the thread that reads it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bitwatch.attach import beside
from bitwatch.attach.beside import Beside, Companion
from bitwatch.record import codec, events, rundir
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.tui.screens.compare import Compare
from tests.conftest import until
from tests.tui import recorded
from tests.tui.conftest import Open, Stage


def other(home: Path, name: str, losses: list[float]) -> RunDir:
    run = rundir.create(home, name)
    rundir.new_attempt(run)
    recorded.write(
        run.journal,
        [
            events.RunStarted(run=run.id, name=name, t=recorded.BEGAN, m=0.0),
            events.AttemptStarted(steps=len(losses), t=recorded.BEGAN),
            events.AttemptEnded(state="done", step=len(losses), t=recorded.BEGAN),
            events.RunEnded(state="done", t=recorded.BEGAN),
        ],
    )
    recorded.write(run.rank(1, 0), [step(at, loss) for at, loss in enumerate(losses, start=1)])
    return run


def step(at: int, loss: float) -> events.Step:
    return events.Step(step=at, loss=loss, tokens=64 * at, grad_norm=0.2, t=recorded.BEGAN + at)


def legend(at: Stage) -> str:
    return " | ".join(line.text for line in at.dashboard.loss.companions.legend())


async def listed(at: Stage, count: int) -> Compare:
    page = at.app.screen
    assert isinstance(page, Compare)
    await at.until(lambda: len(page._choices) == count and page._whole)
    await at.pilot.pause()
    return page


async def test_o_adds_another_run_and_o_again_takes_it_away(stage: Open) -> None:
    async with stage() as at:
        home = at.source.run.path.parent
        high = other(home, "high", [0.9] * 400)
        await at.press("o")
        await listed(at, 1)
        assert at.source.run.id not in at.text()  # not itself
        assert high.id in at.text()
        await at.press("enter")
        await at.until(lambda: legend(at) == f"A {high.id[11:]}")
        panel = at.dashboard.loss
        assert f"A {high.id[11:]}" in at.text()
        assert panel.chart is not None
        [(one, drawn)] = panel.chart.compared
        assert one.letter == "A" and drawn[0].columns[10].mean == 0.9
        await at.press("v", "v", "v", "3", "left")  # its gradient norm too
        assert "3 Gradient norm" in at.text()
        assert "A 0.2" in panel.draw(*panel.size)[0].text
        await at.press("o")
        await listed(at, 1)
        line = next(line for line in at.text().splitlines() if high.id in line)
        assert "●" in line.partition("done")[0]  # it is shown now
        await at.press("o")
        await at.until(lambda: legend(at) == "")
        assert panel.chart is not None and panel.chart.compared == []


async def test_three_runs_have_colours_of_their_own_and_a_fourth_is_refused(stage: Open) -> None:
    async with stage(120, 40) as at:
        home = at.source.run.path.parent
        runs = [other(home, name, [0.5, 0.6, 0.7]) for name in ("a", "b", "c", "d")]
        for run in runs:
            await at.press("o")
            page = await listed(at, 4)
            await at.press("slash", *[{"-": "minus"}.get(c, c) for c in run.id[-6:]])
            assert [one.id for one in page._choices if one.id in at.text()] == [run.id]
            await at.press("enter", "enter")
            await at.until(lambda: at.app.screen is at.dashboard)
        assert any("at most 3 runs" in toast for toast in at.toasts())
        panel = at.dashboard.loss
        await at.until(lambda: "reading" not in legend(at))
        assert panel.chart is not None
        assert [one.letter for one, _ in panel.chart.compared] == ["A", "B", "C"]
        assert len({one.role for one, _ in panel.chart.compared}) == 3
        # The one that goes leaves its letter to the next; the others keep theirs.
        at.dashboard._chosen(runs[1])
        at.dashboard._chosen(runs[3])
        await at.until(lambda: f"B {runs[3].id[11:]}" in legend(at))
        assert f"C {runs[2].id[11:]}" in legend(at)


async def test_a_run_has_one_line_in_a_wide_terminal(stage: Open) -> None:
    async with stage(120, 40) as at:
        run = other(at.source.run.path.parent, "wide", [1.0] * 1500)
        await at.press("o")
        await listed(at, 1)
        for columns in (200, 120):
            await at.pilot.resize_terminal(columns, 40)
            await at.pilot.pause()
            (line,) = [line for line in at.text().splitlines() if run.id in line]
            assert "1,500/1,500" in line


async def test_the_page_is_filtered_and_left(stage: Open) -> None:
    async with stage(80, 24) as at:
        home = at.source.run.path.parent
        other(home, "wide", [1.0])
        other(home, "deep", [1.0])
        await at.press("o")
        await listed(at, 2)
        await at.press("slash", *"deep")
        assert "-deep-" in at.text() and "-wide-" not in at.text()
        await at.press("x")
        assert "no run contains this" in at.text()
        page = at.app.screen
        await at.press("enter", "escape")
        assert at.app.screen is at.dashboard
        assert legend(at) == ""
        assert isinstance(page, Compare)
        page._show()  # as after a resize that came while the page was left


async def test_a_home_without_another_run_says_so(stage: Open) -> None:
    async with stage() as at:
        await at.press("o")
        await at.until(lambda: "there is no other run" in at.text())
        await at.press("enter", "escape")
        assert at.app.screen is at.dashboard


async def test_a_run_that_is_deleted_meanwhile_is_said_and_its_curve_stays(stage: Open) -> None:
    async with stage() as at:
        gone = other(at.source.run.path.parent, "gone", [0.9] * 400)
        at.dashboard._chosen(gone)
        await at.until(lambda: legend(at) == f"A {gone.id[11:]}")
        shutil.rmtree(gone.path)
        await at.until(lambda: any("deleted or moved" in toast for toast in at.toasts()))
        assert "not readable now" in legend(at)
        assert at.dashboard.loss.chart is not None and at.dashboard.loss.chart.compared


async def test_a_curve_that_the_other_run_does_not_have_is_no_curve(stage: Open) -> None:
    async with stage() as at:
        at.dashboard._chosen(other(at.source.run.path.parent, "plain", [0.9] * 40))
        await at.until(lambda: "reading" not in legend(at))
        await at.press("v", "v")  # validation
        assert at.dashboard.loss.chart is not None and at.dashboard.loss.chart.compared == []


def test_a_companion_reads_the_newest_first_then_all_then_what_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "LOOK_S", 0.1)
    run = other(tmp_path, "long", [0.5])
    count = 4000
    with open(run.rank(1, 0), "wb") as file:
        for at in range(1, count + 1):
            file.write(codec.encode(step(at, 1 / at)))
    seen: list[Beside] = []
    companion = Companion(run, seen.append)
    companion.start()
    until(lambda: seen and seen[-1].filled == 1, "the whole of it")
    assert seen[0].filled < 1
    assert seen[0].view.loss[0][1].last == (count, 1 / count)
    assert sum(seen[-1].view.loss[0][1].counts) == count
    writer = JournalWriter(run.rank(1, 0))
    writer.write(step(count + 1, 7.0))
    writer.close()
    until(lambda: seen[-1].view.loss[0][1].last == (count + 1, 7.0), "the newest step")
    moved = run.path.with_name("moved")
    os.rename(run.path, moved)
    until(lambda: seen[-1].text, "a sentence")
    assert seen[-1].view.loss
    os.rename(moved, run.path)
    until(lambda: not seen[-1].text and seen[-1].filled == 1, "it is back")
    companion.close()
    assert sum(seen[-1].view.loss[0][1].counts) == count + 1
