"""The screen of a training that bitwatch did not start, and how it is chosen."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from bitwatch.attach.choose import Offered
from bitwatch.record.rundir import RunDir, list_runs
from bitwatch.sense.processes import read_stat
from bitwatch.sense.training import Member, Training
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.screens.end_left import EndLeft
from bitwatch.tui.screens.picker import Picker
from bitwatch.tui.themes import load
from tests.conftest import PATIENCE_S, until
from tests.tui import recorded
from tests.tui.beside import other
from tests.tui.conftest import Open


async def test_c_asks_before_it_ends_what_such_a_training_has_left(stage: Open) -> None:
    async with stage(ended=True) as at:
        run = at.source.run.id
        view = msgspec.structs.replace(at.source.view, foreign=True, run=run)
        left = [
            other(pid, "confirm", run=run, role="worker", rank=1, worker=pid - 70)
            for pid in (70, 71)
        ]
        beside = other(99, "confirm", run="another", role="worker")
        at.source.give(view, others=[*left, beside])
        await at.pilot.pause()
        await at.press("c")
        assert isinstance(at.app.screen, EndLeft)
        text = at.text()
        assert "End 2 processes?" in text and "pid 70" in text and "pid 99" not in text
        await at.press("enter")  # Cancel has the focus
        assert not isinstance(at.app.screen, EndLeft) and at.commands.ended == []
        await at.press("c")
        at.source.give(view, others=[left[0]])  # the answer is about those that were asked about
        await at.press("right", "enter")
        await at.until(lambda: at.commands.ended)
        assert at.commands.ended == [[one.key for one in left]]
        assert at.commands.asked == []
        for key, words in (("S", "stopped where it was started"), ("R", "relaunched where")):
            await at.press(key)
            assert any(words in toast for toast in at.toasts())


async def test_c_says_what_still_trains_and_leaves_alone_what_is_in_no_role(stage: Open) -> None:
    async with stage(ended=True) as at:
        run, last = at.source.run.id, at.source.view.last
        view = msgspec.structs.replace(at.source.view, foreign=True, run=run)
        why = "in the session of rank 70 of attempt 1"
        rank = other(70, "confirm", run=run, role="rank", rank=0, why="recorded while watching")
        tracker = other(71, "confirm", run=run, role="other", why=why, command="wandb-service")
        assert last is not None
        at.source.give(view, last.t + 3.0, others=[rank, tracker])
        await at.pilot.pause()
        await at.press("c")
        text = at.text()
        assert "End 1 process?" in text and "recorded while watching" in text
        assert f"They still train: step {last.step} was taken 3.0 s ago" in text
        assert "1 other process of it: left alone unless tagged" in text and why not in text
        await at.press("escape")
        at.app.screen.processes.tagged.add(tracker.key)
        at.source.give(view, last.t + 90.0, others=[rank, tracker])
        await at.pilot.pause()
        await at.press("c")
        text = at.text()
        assert "End 2 processes?" in text and "wandb-service" in text and why in text
        assert "They still train" not in text and "Their last step" in text
        await at.press("right", "enter")
        await at.until(lambda: at.commands.ended)
        assert at.commands.ended == [[rank.key, tracker.key]]


async def test_a_training_that_was_found_is_offered_with_its_evidence_and_made_a_run(
    tmp_path: Path,
) -> None:
    stat = read_stat(os.getpid())
    assert stat is not None
    member = Member(stat, "rank", "python \x1b[31mtrain.py", rank=0)
    found = Training(
        stat.key, member.command, "/", time.time(), (member,), 1, (), ("it holds a GPU",)
    )
    offer = Offered(tmp_path / "runs", found)
    opened: list[RunDir] = []

    def open_run(run: RunDir) -> recorded.Fixed:
        opened.append(run)
        shown = recorded.make(tmp_path / "shown", ended=True)
        return recorded.Fixed(shown, recorded.seen(shown))

    app = Bitwatch(
        None,
        recorded.Remembered(),
        load()[0],
        choose=lambda: Picker(lambda: iter([[offer]])),
        open_run=open_run,
    )
    async with app.run_test(size=(120, 30)) as pilot:
        text, deadline = "", time.monotonic() + PATIENCE_S
        while "it holds a GPU" not in text and time.monotonic() < deadline:
            await pilot.pause(0.02)
            rows = app.screen._compositor.render_strips(app.size)
            text = "\n".join(strip.text for strip in rows)
        assert f"pid {os.getpid()}: " in text and "training, 1 rank, 0 workers" in text
        assert "\x1b" not in text
        await pilot.press("enter")
        await pilot.pause()
        until(lambda: opened, "the run to be opened")
    (run,) = list_runs(tmp_path / "runs")
    assert opened[0].path == run.path and run.identity().root == stat.key
