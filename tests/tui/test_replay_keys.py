"""The keys of a replay, on a screen, with a clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from textual.pilot import Pilot

from bitwatch.attach.playing import Place, Played
from bitwatch.attach.replay import REFUSED, Refusing, Replay
from bitwatch.tui import keys, start
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.looks import Wishes
from bitwatch.tui.screens.replay import REFUSES, ReplayDashboard
from bitwatch.tui.themes import load
from tests.attach import played
from tests.attach.played import AGAIN, BEGAN, DONE, FAILED, SILENCE, Clock
from tests.conftest import PATIENCE_S


class Stage:
    """A replay on a screen."""

    def __init__(self, app: Bitwatch, pilot: Pilot[None], replay: Replay, clock: Clock) -> None:
        self.app, self.pilot, self.replay, self.clock = app, pilot, replay, clock

    @property
    def dashboard(self) -> ReplayDashboard:
        return next(s for s in self.app.screen_stack if isinstance(s, ReplayDashboard))

    @property
    def place(self) -> Place:
        shown = self.dashboard.shown
        assert isinstance(shown, Played)
        return shown.place

    async def until(self, what: str, *words: str, at: float | None = None) -> str:
        """Until these words stand on the screen, and the picture is of that time."""
        deadline = time.monotonic() + PATIENCE_S
        while not (all(word in self.text() for word in words) and at in (None, self.place.at)):
            assert time.monotonic() < deadline, f"{what}: {self.place}\n{self.text()}"
            await self.pilot.pause(0.02)
        return self.text()

    def text(self) -> str:
        rows = self.app.screen._compositor.render_strips(self.app.size)
        return "\n".join(strip.text for strip in rows)

    def toasts(self) -> list[str]:
        return [str(note.message) for note in self.app._notifications]


class Open(Protocol):
    def __call__(
        self, width: int = 120, height: int = 40
    ) -> AbstractAsyncContextManager[Stage]: ...


@pytest.fixture
def stage(tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opened(width: int = 120, height: int = 40) -> AsyncIterator[Stage]:
        clock = Clock()
        replay = Replay(played.make(tmp_path / "runs"), 60.0, clock)
        app = Bitwatch(
            replay,
            Refusing(),
            load()[0],
            dashboard=lambda run, host, first: ReplayDashboard(replay, host, first),
        )
        replay.start()
        try:
            async with app.run_test(size=(width, height)) as pilot:
                made = Stage(app, pilot, replay, clock)
                await made.until("the beginning", "REPLAY 60x", at=BEGAN)
                yield made
        finally:
            replay.close()

    return opened


async def test_p_holds_the_clock_and_lets_it_go_on(stage: Open) -> None:
    async with stage() as at:
        at.clock.now += 1
        await at.until("a minute later", "▶ REPLAY", "RUNNING", at=BEGAN + 60)
        await at.pilot.press("p")
        await at.until("the pause", "‖ REPLAY paused")
        at.clock.now += 5
        await at.pilot.press("right")
        await at.until("a minute on, by key alone", "paused", at=BEGAN + 120)
        await at.pilot.press("p")
        await at.until("no pause", "▶ REPLAY")
        at.clock.now += 0.5
        text = await at.until("half a minute later", at=BEGAN + 150)
        assert "paused" not in text


async def test_faster_and_slower(stage: Open) -> None:
    async with stage() as at:
        await at.pilot.press(">", ">")
        await at.until("four times", "REPLAY 240x")
        await at.pilot.press("<", "<", "<")
        await at.until("half", "REPLAY 30x")
        at.clock.now += 1
        text = await at.until("half a minute", at=BEGAN + 30)
        assert "REPLAY 30x" in text


async def test_jumps_by_a_minute_by_a_tenth_and_to_both_ends(stage: Open) -> None:
    async with stage() as at:
        await at.pilot.press("right", "right", "left")
        await at.until("a minute", at=BEGAN + 60)
        await at.pilot.press("end")
        text = await at.until(
            "the end", "DONE", "100 %", "it is over; home plays it again", at=DONE
        )
        assert "■ REPLAY" in text
        at.clock.now += 50
        await at.pilot.press("p", "p")
        await at.until("still the end", "DONE", at=DONE)
        await at.pilot.press("left_square_bracket")
        await at.until("a tenth before it", "STALLED", "90 %")
        for _ in range(4):
            await at.pilot.press("left_square_bracket")
        await at.until("in the second attempt", "attempt 2", "50 %")
        await at.pilot.press("home")
        await at.until("the beginning", "STARTING", at=BEGAN)
        await at.pilot.press("right_square_bracket")
        await at.until("a tenth on", "attempt 1", "10 %")


async def test_the_night_is_jumped_over_and_said(stage: Open) -> None:
    async with stage() as at:
        at.clock.now += (FAILED - BEGAN) / 60
        await at.until("the end of attempt 1", "FAILED", "out of memory", at=FAILED)
        at.clock.now += 2.5
        text = await at.until("the morning", SILENCE, "attempt 2", at=AGAIN)
        assert played.moment(AGAIN) in text


async def test_nothing_can_be_done_to_what_is_over(stage: Open) -> None:
    async with stage() as at:
        at.clock.now += 1
        await at.until("its alert", "1 reader is idle", at=BEGAN + 60)
        for number, key in enumerate(("S", "s", "c", "R", "K", "f9", "space"), start=1):
            await at.pilot.press(key)
            await at.pilot.pause()
            assert at.app.screen is at.dashboard
            assert at.toasts() == [REFUSED] * number
        await at.pilot.press("4", "down", "enter")
        await at.pilot.pause()
        assert at.app.screen is at.dashboard
        assert at.toasts()[7:] and set(at.toasts()) == {REFUSED}
        await at.pilot.press("ctrl+c")
        await at.pilot.pause()
        assert at.toasts()[-1] == "q leaves the replay"


async def test_the_footer_names_what_can_be_done_and_nothing_else(stage: Open) -> None:
    async with stage(200, 60) as at:
        at.clock.now += 1
        await at.until("running", "RUNNING")
        footer = at.text().splitlines()[-1]
        assert footer.startswith(" q detach  p pause  > faster  < slower")
        for label in ("stop", "clean up", "relaunch", "stacks", "signal"):
            assert label not in footer
        offered = {command.title for command in at.app.get_system_commands(at.app.screen)}
        refused = {key.label.capitalize() for key in keys.KEYS if key.id in REFUSES}
        assert "Faster" in offered and not {"Stop", "Relaunch"} & offered
        assert not refused & offered


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 60)])
async def test_the_moment_and_the_share_are_on_every_screen(
    stage: Open, size: tuple[int, int]
) -> None:
    async with stage(*size) as at:
        await at.pilot.press("end")
        text = await at.until("the end", "REPLAY 60x", "100 %", at=DONE)
        assert played.moment(DONE, wide=size[0] >= 100) in text


async def test_a_key_is_named_only_where_it_is_the_clocks(stage: Open) -> None:
    async with stage(200, 60) as at:
        await at.pilot.press("end")
        await at.until("the end", "it is over; home plays it again", "home begin", at=DONE)
        for panel, kept in (("4", "→ min on"), ("3", "← read")):
            await at.pilot.press(panel)
            text = await at.until("the focus", "it is over ", kept)
            assert "home begin" not in text and "plays it again" not in text
            assert "end last" not in text
            await at.pilot.press("home")
            await at.pilot.pause()
            assert at.place.at == DONE
        assert "min back" not in at.text() and "min on" not in at.text()
        column = at.text().splitlines()[-1].index("← read")
        await at.pilot.click("KeyFooter", offset=(column, 0))
        await at.pilot.pause()
        assert at.place.at == DONE
        await at.pilot.press("1")
        await at.until("nothing in its way", "home begin", "it is over; home plays it again")
        column = at.text().splitlines()[-1].index("home begin")
        await at.pilot.click("KeyFooter", offset=(column, 0))
        await at.until("the beginning", at=BEGAN)


async def test_a_click_does_what_stands_there_whatever_the_key_means_elsewhere(
    stage: Open,
) -> None:
    async with stage(200, 60) as at:
        await at.pilot.press("end", "4")
        await at.until("the end", "it is over", at=DONE)
        at.dashboard.footer.show_keys([("home", "begin")])
        await at.pilot.click("KeyFooter", offset=(1, 0))
        await at.until("the beginning", at=BEGAN)
        assert "it is over" not in at.text()


def test_the_users_keys_and_a_terminal_without_colours_count_in_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "")
    seen: list[str] = []

    async def press(app: Bitwatch) -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("f5")
            seen.append(str(keys.given().get("help")))
            seen.append(type(app.screen).__name__)
        assert app.wishes.keeping is None  # what it is left with is not that of a living run

    def run(app: Bitwatch) -> None:
        asyncio.run(press(app))

    monkeypatch.setattr(start, "_run", run)
    chosen = start.Look(load()[0], "", [], Wishes(keys={"help": "f5"}))
    start.replay(Replay(played.make(tmp_path / "runs"), 60.0, Clock()), chosen)
    assert seen == ["f5", "Help"]
    assert os.environ["NO_COLOR"] == "1"
