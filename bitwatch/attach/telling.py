"""Pictures of a run, and the thread that makes them and hands them over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

import msgspec

from bitwatch.attach.others import Other
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View

Mode = Literal["live", "reconnecting", "ended"]


class Snapshot(msgspec.Struct, frozen=True):
    """One picture. `text` is a sentence about what stands in the way of reading, if anything;
    `filled` is the share of the history that has been read. `others` are the processes beside
    the live attempt, from the second picture on."""

    view: View
    now: float
    mode: Mode = "live"
    text: str = ""
    filled: float = 1.0
    others: tuple[Other, ...] = ()


class Telling:
    """`latest` is the newest picture; `listen` names who is told, in the thread that makes them,
    that there is a new one. What is not needed for the first waits for `go_on`, so that nothing
    stands between the beginning and the screen."""

    def __init__(self, run: RunDir, work: Callable[[], None], name: str) -> None:
        """`work` is done in the thread, until `close`."""
        self.run = run
        self.latest: Snapshot | None = None
        self._told: Callable[[Snapshot], object] | None = None
        self._closed = threading.Event()
        self._go_on = threading.Event()
        self._thread = threading.Thread(target=work, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def listen(self, told: Callable[[Snapshot], object]) -> None:
        self._told = told
        if self.latest is not None:
            told(self.latest)

    def go_on(self) -> None:
        self._go_on.set()

    def close(self) -> None:
        """Returns at once: the thread ends soon, or with the process."""
        self._closed.set()
        self._go_on.set()

    def _hand_over(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        if self._told is not None and not self._closed.is_set():
            self._told(snapshot)
