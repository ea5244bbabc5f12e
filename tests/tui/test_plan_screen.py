"""The page before a launch: what it shows at every size, and what its keys answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from textual.pilot import Pilot

from bitwatch.plan.result import Plan
from bitwatch.tui import start
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.screens.plan import AS_IS, PlanScreen
from bitwatch.tui.themes import load
from tests.tui import plans
from tests.tui.recorded import Remembered


def app_of(plan: Plan, blocked: bool = False, theme: str = "dark") -> Bitwatch:
    return Bitwatch(
        None, Remembered(), load()[0], theme, choose=lambda: PlanScreen("1b21", plan, blocked)
    )


class Page:
    def __init__(self, app: Bitwatch, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def text(self) -> str:
        rows = self.app.screen._compositor.render_strips(self.app.size)
        return "\n".join(strip.text for strip in rows)


Opened = Callable[..., AbstractAsyncContextManager[Page]]


@pytest.fixture
def page() -> Opened:
    @asynccontextmanager
    async def opened(
        size: tuple[int, int] = (120, 40), plan: Plan | None = None, blocked: bool = False
    ) -> AsyncIterator[Page]:
        app = app_of(plan or plans.incident(blocked=blocked), blocked)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield Page(app, pilot)

    return opened


async def test_it_shows_both_plans_the_problem_the_cost_and_the_keys(page: Opened) -> None:
    async with page() as at:
        text = at.text()
        for words in (
            *("1b21", "as configured: as-is", "corrected: ▸indexed   reshard"),
            *("8 idle", "○ idle", "● any", "▲ 8 of 16 readers will be idle"),
            *("recommended: the text is written once", "514.0 MiB are written in about 11 s"),
            *('data.sharding = "indexed"', "begins a new epoch"),
            *("enter launch corrected", "a as configured", "esc cancel", "another correction"),
        ):
            assert words in text
        assert "It does not hang" not in text  # the first sentence is enough here
        assert "more-files" not in text  # nobody can launch that


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["enter"], "indexed"),
        (["down", "enter"], "reshard"),
        (["tab", "tab", "enter"], "indexed"),
        (["up", "enter"], "reshard"),
        (["a"], AS_IS),
        (["escape"], None),
        (["q"], None),
        (["ctrl+c"], None),
    ],
)
async def test_a_key_answers(page: Opened, keys: list[str], answer: str | None) -> None:
    async with page() as at:
        await at.press(*keys)
        assert at.app.answer == answer
        assert at.app._exit


async def test_another_correction_shows_what_it_would_do(page: Opened) -> None:
    async with page() as at:
        await at.press("down")
        assert "1,802 row groups" in at.text() and "● [15:9]" in at.text()
        assert 'data.sharding = "reshard"' in at.text()
        assert "nothing needs to be prepared" in at.text()


async def test_what_cannot_be_launched_is_not_offered(page: Opened) -> None:
    async with page(blocked=True) as at:
        text = at.text()
        assert "cannot be launched as configured" in text
        assert "■ There is no text for rank 3: 0.5 rows a rank. That ends the run." in text
        assert 'this helps: data.sharding = "indexed"' in text
        assert "a as configured" not in text
        await at.press("a")
        assert not at.app._exit
        await at.press("enter")
        assert at.app.answer == "indexed"


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_a_low_terminal_scrolls_and_keeps_its_keys(
    page: Opened, size: tuple[int, int]
) -> None:
    async with page(size) as at:
        footer = at.text().splitlines()[-1]
        assert "enter launch corrected" in footer and "esc cancel" in footer
        assert "as configured: as-is" in at.text()
        assert "in about 11 s" not in at.text()
        await at.press(*["space"] * 4)
        assert "in about 11 s" in at.text()


async def test_the_keys_are_clickable(page: Opened) -> None:
    async with page() as at:
        footer = at.text().splitlines()[-1]
        await at.pilot.click("KeyFooter", offset=(footer.index("another"), 0))
        await at.pilot.pause()
        assert "1,802 row groups" in at.text()
        await at.pilot.click("KeyFooter", offset=(footer.index("as configured"), 0))
        await at.pilot.pause()
        assert at.app.answer == AS_IS


@pytest.mark.parametrize("size", [(10, 3), (40, 12), (300, 80)])
async def test_any_size_and_any_number_of_readers_is_drawn(
    page: Opened, size: tuple[int, int]
) -> None:
    for ranks, workers in ((1, 1), (64, 16)):
        async with page(size, plans.incident(ranks, workers)) as at:
            assert at.text()
            await at.press("enter")
            assert at.app.answer == "indexed"


def test_without_a_correction_nobody_is_asked() -> None:
    plan = plans.incident()
    plan.corrections = plan.corrections[:1]
    assert start.ask("demo", plan, False, None) == AS_IS
    assert start.ask("demo", plan, True, None) is None
