"""A second run, read for its curves beside the one that is on the screen.

In a thread of its own: the newest first, then its history in pieces, then what is written from
now on. What can happen to it meanwhile is a sentence; its last curves stay.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from bitwatch.attach.gone import trouble_with
from bitwatch.record.follow import Follower, Liveness
from bitwatch.record.rundir import RunDir
from bitwatch.record.series import Series
from bitwatch.record.view import View, view

LOOK_S = 1.0  # between two looks at its files
FILL_S = 0.01  # of history at a stretch; the screen's thread runs in between
BREATH_S = 0.01
SHOWN_S = 0.5  # between two pictures while history is read


class Beside(msgspec.Struct, frozen=True):
    """What is known of it: a view with its curves alone. `filled` is the share of its history
    that has been read, `text` what stands in the way, if anything."""

    run: str
    view: View
    filled: float = 1.0
    text: str = ""


class Companion:
    """Reads one run until `close`. `told` is called in the reading thread."""

    def __init__(self, run: RunDir, told: Callable[[Beside], object]) -> None:
        self.run = run
        self._told = told
        self._closed = threading.Event()
        self._last = View()
        self._thread = threading.Thread(target=self._read, name="beside", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Returns at once; nothing is told after it."""
        self._closed.set()

    def _read(self) -> None:
        follower = Follower(self.run, newest_first=True)
        said = ""
        while not self._closed.is_set():
            try:
                text = trouble_with(self.run)
                if text:
                    if text != said:
                        self._say(Beside(self.run.id, self._last, text=text))
                elif said:  # it is back, and may be another one
                    follower = Follower(self.run, newest_first=True)
                said = text
                if not text and (follower.poll() or follower.history):
                    self._fill(follower)
            except Exception as error:  # whatever it is: a sentence on the screen
                said = f"it cannot be read ({type(error).__name__}: {error})"
                self._say(Beside(self.run.id, self._last, text=said))
            self._closed.wait(LOOK_S)

    def _fill(self, follower: Follower) -> None:
        """Shows what there is, then all that lies behind it."""
        behind = len(follower.history)
        while not self._closed.is_set():
            left = follower.history
            share = 1 - (len(left) - (left[0].share if left else 0.0)) / behind if behind else 1.0
            self._last = _picture(follower)
            self._say(Beside(self.run.id, self._last, filled=share))
            if not left:
                return
            shown = time.monotonic()
            while left and time.monotonic() - shown < SHOWN_S:
                began = time.monotonic()
                while left and time.monotonic() - began < FILL_S:
                    left[0].piece()
                    if left[0].done:
                        left.pop(0)
                if self._closed.wait(BREATH_S):
                    return

    def _say(self, beside: Beside) -> None:
        if not self._closed.is_set():
            self._told(beside)


def _picture(follower: Follower) -> View:
    """The curves of a run at this moment, which nobody changes any more."""
    seen = view(follower.state, time.time(), Liveness())

    def copied(curves: list[tuple[int, Series]]) -> list[tuple[int, Series]]:
        return [(attempt, series.copy()) for attempt, series in curves]

    return View(
        run=seen.run or follower.run.id,
        name=seen.name,
        attempt=seen.attempt,
        started=seen.started,
        evaluations=list(seen.evaluations),
        loss=copied(seen.loss),
        curves={name: copied(curves) for name, curves in seen.curves.items()},
    )
