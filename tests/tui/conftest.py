"""The screen under a pilot, on runs that the test builds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import textual.pilot
from textual import _wait
from textual.notifications import Notification
from textual.pilot import Pilot

from bitwatch.tui import remap
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.kept import Keeping
from bitwatch.tui.looks import Wishes
from bitwatch.tui.screens.dashboard import Dashboard
from bitwatch.tui.themes import load
from tests.conftest import PATIENCE_S
from tests.tui import recorded
from tests.tui.recorded import Fixed, Remembered

# How long the pilot looks at the app, twice after each key, until it is found at rest (it has used
# a twentieth of that time). Textual's own 20 ms are a minute in these tests; two looks are still
# longer than the 17 ms between two pictures of a screen.
_wait.SLEEP_GRANULARITY, _wait.SLEEP_IDLE = 0.01, 0.01 / 20


async def at_rest(*limits: float) -> None:
    """On a busy machine an app that waits for the processor looks as if it were at rest: it is not
    while the loop has something to go on with."""
    await _wait.wait_for_idle(*limits)
    loop: Any = asyncio.get_running_loop()
    while loop._ready:
        await asyncio.sleep(_wait.SLEEP_GRANULARITY)


textual.pilot.wait_for_idle = at_rest  # type: ignore[attr-defined]
# However long a test takes, what it has been told stands on the screen until it has looked.
Notification.time_left = property(lambda _: PATIENCE_S)  # type: ignore[assignment,method-assign]


class Stage:
    """A screen that is up: its app, its dashboard, who feeds it, and what was asked of it."""

    def __init__(self, app: Bitwatch, pilot: Pilot[None], source: Fixed) -> None:
        self.app = app
        self.pilot = pilot
        self.source = source
        assert isinstance(app.commands, Remembered)
        self.commands = app.commands

    @property
    def dashboard(self) -> Dashboard:
        return next(s for s in self.app.screen_stack if isinstance(s, Dashboard))

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain:\n{self.text()}"
            await self.pilot.pause(0.02)
        await self.pilot.pause()  # what a thread has told need not stand on the screen yet

    def text(self) -> str:
        """What stands on the screen, line by line, by asking every widget for its lines."""
        size = self.app.size
        rows = self.app.screen._compositor.render_strips(size)
        return "\n".join(strip.text for strip in rows)

    def toasts(self) -> list[str]:
        return [str(note.message) for note in self.app._notifications]


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for every test, whatever the terminal of whoever runs them can do."""
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")


Open = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def stage(tmp_path: Path) -> Open:
    """`async with stage(80, 24)` gives a live demo run on a screen of that size."""

    @asynccontextmanager
    async def opened(
        width: int = 120,
        height: int = 40,
        *,
        ended: bool = False,
        given: Mapping[str, str] | None = None,
        keeping: Keeping | None = None,
        theme: str = "",
        complaints: Sequence[str] = (),
    ) -> AsyncIterator[Stage]:
        run = recorded.make(tmp_path / "runs", ended=ended)
        view = recorded.seen(run)
        source = Fixed(run, view)
        wishes = Wishes(theme, remap.given(given or {}, "config.toml"), keeping)
        app = Bitwatch(source, Remembered(), load()[0], theme, complaints, wishes=wishes)
        async with app.run_test(size=(width, height)) as pilot:
            made = Stage(app, pilot, source)
            await made.until(lambda: made.dashboard.snapshot is not None)
            await pilot.pause()
            yield made

    return opened
