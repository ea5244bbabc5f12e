"""The question before a stop. It names the run and the attempt that it is about."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from bitwatch.record.view import View
from bitwatch.tui import keys
from bitwatch.tui.draw import plain
from bitwatch.tui.screens.over import Over


class ConfirmStop(Over[bool]):
    """True when the stop is wanted. Nothing is, unless it is said on purpose."""

    BINDINGS = keys.bindings("dialog", "buttons")
    AUTO_FOCUS = "#cancel"

    def __init__(self, run: str, attempt: int, view: View) -> None:
        super().__init__()
        self._words = Content.assemble(
            ("Stop ", "$foreground"),
            (plain(run), "bold $foreground"),
            (f", attempt {attempt}?\n\n", "$foreground"),
            (
                f"It is at step {view.step:,} of {view.steps:,}. The ranks write a checkpoint "
                "first, then end; `bitwatch run --resume` goes on from it.",
                "$quiet",
            ),
        )

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Stop the run"
            yield Static(self._words)
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Stop with a checkpoint", id="stop", variant="error", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "stop")

    def action_cancel(self) -> None:
        self.dismiss(False)
