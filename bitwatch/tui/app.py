"""The application around the dashboard: pictures of a run, keys that need it, the way out.

It shows what a feed hands over and asks for what a person wants done; it opens no file and
looks into no /proc itself. Whatever may take time runs in a thread that nobody waits for, so
that leaving is always immediate.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from textual.message import Message
from textual.screen import Screen
from textual.theme import Theme

from bitwatch.attach.telling import Snapshot
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.text import sentence
from bitwatch.tui import keys
from bitwatch.tui.host import Commands, Host
from bitwatch.tui.kept import Kept, Value
from bitwatch.tui.looks import Looks, Wishes
from bitwatch.tui.screens.dashboard import Dashboard
from bitwatch.tui.themes import DEFAULT

LEAVE_S = 3.0  # that a terminal has to take the last lines


class Source(Protocol):
    """Who gives pictures of a run: `attach.follow.Feed`, or a test."""

    run: RunDir
    latest: Snapshot | None

    def listen(self, told: Callable[[Snapshot], object]) -> None: ...
    def go_on(self) -> None: ...
    def close(self) -> None: ...


class Bitwatch(Looks):
    TITLE = "bitwatch"
    CSS_PATH = "bitwatch.tcss"
    BINDINGS = [keys.INTERRUPT]
    ESCAPE_TO_MINIMIZE = False

    class Arrived(Message):
        """A new picture, from the reading thread. Only the newest waits."""

        def __init__(self, snapshot: Snapshot) -> None:
            super().__init__()
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Bitwatch.Arrived)

    class Done(Message):
        """A command in the background has something to say."""

        def __init__(self, text: str, *, bad: bool) -> None:
            super().__init__()
            self.text = text
            self.bad = bad

    def __init__(
        self,
        source: Source | None,
        commands: Commands,
        themes: list[Theme],
        theme: str = DEFAULT,
        complaints: Iterable[str] = (),
        choose: Callable[[], Screen[Any]] | None = None,
        open_run: Callable[[RunDir], Source] | None = None,
        dashboard: Callable[[RunDir, Host, Snapshot | None], Dashboard] = Dashboard,
        wishes: Wishes | None = None,
    ) -> None:
        """Without a `source`, `choose` makes the screen that asks for a run, and `open_run`
        gives the source of the answer. Without `open_run` the answer is all that is wanted.
        `wishes` are those of the user's file."""
        super().__init__(themes, theme, wishes or Wishes())
        self.source = source
        self.commands = commands
        self.crash: BaseException | None = None
        self.answer: Any = None
        self.seen: View | None = None
        self._handlers: dict[int, Any] = {}  # of signals, as they were before
        self._complaints = list(complaints)
        self._choose = choose
        self._open_run = open_run
        self._made = dashboard

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not in the main thread
                # Not the loop's own: it stands still with a terminal that takes nothing.
                before = signal.signal(number, lambda *_: self._told_to_leave(loop))
                self._handlers[number] = before
        if self.source is not None:
            self.complain(self._complaints)
            self._follow(self.source)
        elif self._choose is not None:
            self.push_screen(self._choose(), self._chosen)

    def on_unmount(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _told_to_leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """By a signal. A terminal that takes nothing any more (ctrl+s, a stalled connection)
        must not hold a viewer that somebody wants gone."""
        threading.Thread(target=_leave_anyway, name="leaving", daemon=True).start()
        loop.call_soon_threadsafe(self.detach)

    def _chosen(self, answer: Any) -> None:
        self.answer = answer
        if answer is None or self._open_run is None:
            self.exit()
            return
        self.source = self._open_run(answer)
        self.push_screen(self._dashboard(answer, None))
        self.complain(self._complaints)
        self._follow(self.source)

    def get_default_screen(self) -> Screen[Any]:
        """With a picture that is there already, it is the first thing painted."""
        if self.source is None:
            return super().get_default_screen()
        return self._dashboard(self.source.run, self.source.latest)

    def _dashboard(self, run: RunDir, first: Snapshot | None) -> Dashboard:
        made = self._made(run, self, first)
        if self.wishes.keeping is not None:
            made.restore(self.wishes.keeping.before)
            self.wishes.keeping.begin(Kept(self.chosen_theme, *made.kept()))
        return made

    def _follow(self, source: Source) -> None:
        source.listen(lambda snapshot: self.post_message(self.Arrived(snapshot)))

    # -- pictures -------------------------------------------------------------------------

    def on_bitwatch_arrived(self, message: Arrived) -> None:
        self.seen = message.snapshot.view
        for screen in self.screen_stack:
            if isinstance(screen, Dashboard):
                screen.take(message.snapshot)
        self.keep()
        if self.source is not None:
            self.call_after_refresh(self.source.go_on)

    def standing(self) -> tuple[str, dict[str, dict[str, Value]]]:
        shown = (screen for screen in self.screen_stack if isinstance(screen, Dashboard))
        return next((screen.kept() for screen in shown), super().standing())

    # -- keys -----------------------------------------------------------------------------

    def action_interrupt(self) -> None:
        """ctrl+c means too many things to do any of them to a run. Before there is one it
        leaves."""
        if self.source is None and self._open_run is None:
            self.detach()
            return
        shown = next((s for s in self.screen_stack if isinstance(s, Dashboard)), None)
        self.notify(shown.leaving() if shown else Dashboard.leaving(), timeout=4, markup=False)

    def detach(self) -> None:
        self.keep()
        if self.source is not None:
            self.source.close()
        self.exit()

    async def action_quit(self) -> None:
        self.detach()

    def in_background(self, work: Callable[[], str]) -> None:
        """Runs it in a thread that an exit does not wait for, and shows what it says."""

        def body() -> None:
            try:
                text, bad = work(), False
            except Exception as error:  # whatever it is: a sentence on the screen
                text, bad = sentence(error), True
            self.post_message(self.Done(text, bad=bad))

        threading.Thread(target=body, name="command", daemon=True).start()

    def on_bitwatch_done(self, message: Done) -> None:
        text = keys.in_words(message.text)
        self.notify(
            text, severity="error" if message.bad else "information", timeout=10, markup=False
        )

    # -- the end --------------------------------------------------------------------------

    def _fatal_error(self) -> None:
        """Instead of Textual's traceback over the shell: whoever started us writes a file."""
        self.crash = self._exception
        self._close_messages_no_wait()


def _leave_anyway() -> None:
    time.sleep(LEAVE_S)
    os._exit(0)
