"""The question before processes are ended that a training has left which bitwatch did not start.
It is about exactly the identities that were there when it opened."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from bitwatch.text import counted
from bitwatch.tui.targets import Target

LISTED = 200  # processes that are named; a person does not read more
WHY = (
    "bitwatch did not start this training. They were recorded while it was watched, and their "
    "launcher is gone. They get SIGTERM first, and SIGKILL after three seconds."
)


class EndLeft(ModalScreen[bool]):
    """True when they are to be ended. Nothing is, unless it is said on purpose."""

    BINDINGS = [
        Binding("escape,q,n", "answer(False)", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]
    AUTO_FOCUS = "#cancel"

    def __init__(self, targets: Sequence[Target]) -> None:
        super().__init__(classes="page")
        self._targets = targets

    def compose(self) -> ComposeResult:
        number = counted(len(self._targets), "process")
        with Vertical(classes="dialog signal") as dialog:
            dialog.border_title = Content(f"End {number}?")
            with VerticalScroll(id="targets", can_focus=False):
                for target in self._targets[:LISTED]:
                    yield Static(_named(target), classes="line")
                if (more := len(self._targets) - LISTED) > 0:
                    yield Static(Content(f"and {more} more"))
            yield Static(Content.styled(WHY, "$quiet"))
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(f"End {number}", id="end", variant="error", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "end")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


def _named(target: Target) -> Content:
    return Content.assemble((target.name, "bold $foreground"), (f"  {target.command}", "$quiet"))
