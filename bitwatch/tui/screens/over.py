"""What lies over a screen and goes away again. Textual's `dismiss` takes away whatever is on
top: a second escape, or a second click, that was on its way when the first one closed a page,
must not close what lies under it."""

from __future__ import annotations

import contextlib
from typing import TypeVar

from textual.app import AwaitComplete
from textual.command import CommandPalette
from textual.screen import ModalScreen

Answer = TypeVar("Answer")


class Over(ModalScreen[Answer]):
    """A page or a question. Only while it is on top it can be answered, and only once."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Palette(CommandPalette):
    """Commands by name."""

    def dismiss(self, result: object = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()  # type: ignore[arg-type]

    def _action_command_list(self, action: str) -> None:
        with contextlib.suppress(KeyError):  # by a page, before the list has any lines
            super()._action_command_list(action)
