"""What a screen may ask for: of the run, and of the application around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bitwatch.record.rundir import RunDir


class Commands(Protocol):
    """What a person may have done to a run. Each takes its time, and says what it did."""

    def stop(self, run: RunDir, attempt: int) -> str: ...
    def clean(self, run: RunDir) -> str: ...
    def end_left(self, run: RunDir, targets: Sequence[tuple[int, int]]) -> str: ...
    def relaunch(self, run: RunDir, attempt: int, correction: str) -> str: ...
    def signal(self, run: RunDir, targets: Sequence[tuple[int, int]], name: str) -> str: ...


class Host(Protocol):
    """The application, as far as a dashboard needs it."""

    commands: Commands

    def detach(self) -> None: ...
    def in_background(self, work: Callable[[], str]) -> None: ...
