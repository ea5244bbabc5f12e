"""The question before processes are ended that a training has left which bitwatch did not start.
It is about exactly the identities that were there when it opened."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from bitwatch.record.view import View
from bitwatch.text import counted, duration
from bitwatch.tui import keys
from bitwatch.tui.screens.over import Over
from bitwatch.tui.targets import Target, name_cells

LISTED = 200  # processes that are named; a person does not read more
WHY = (
    "bitwatch did not start this training, and what led it is gone. They get SIGTERM first, and "
    "SIGKILL after three seconds; bitwatch cannot have them save anything before."
)
TRAINS_S = 60.0  # a step that is not older: they train


class EndLeft(Over[bool]):
    """True when they are to be ended. Nothing is, unless it is said on purpose. `step` is what is
    known of the last one, `others` how many more of it are left alone."""

    BINDINGS = keys.bindings("dialog", "buttons")
    AUTO_FOCUS = "#cancel"

    def __init__(self, targets: Sequence[Target], step: str = "", others: int = 0) -> None:
        super().__init__(classes="page")
        self._targets, self._step, self._others = targets, step, others

    def compose(self) -> ComposeResult:
        number = counted(len(self._targets), "process")
        with Vertical(classes="dialog signal") as dialog:
            dialog.border_title = Content(f"End {number}?")
            with VerticalScroll(id="targets", can_focus=False):
                yield from self._listed()
                if (more := len(self._targets) - LISTED) > 0:
                    yield Static(Content(f"and {more} more"))
            if self._step:
                yield Static(Content.styled(self._step, "bold $warning"))
            yield Static(Content.styled(WHY, "$quiet"))
            if self._others:
                words = f"{counted(self._others, 'other process')} of it: left alone unless tagged"
                yield Static(Content.styled(words, "$quiet"))
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(f"End {number}", id="end", variant="error", compact=True)

    def _listed(self) -> ComposeResult:
        """Those for whom the same shows that they are of it together."""
        groups: dict[str, list[Target]] = {}
        cells = name_cells(self._targets[:LISTED])
        for target in self._targets[:LISTED]:
            groups.setdefault(target.why, []).append(target)
        for why, targets in groups.items():
            for target in targets:
                yield Static(_named(target, cells), classes="line")
            if why:
                line = Static(Content.styled(why, "$quiet"))
                line.styles.padding = (0, 0, 0, 2)
                yield line

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "end")

    def action_cancel(self) -> None:
        self.dismiss(False)


def last_step(view: View, now: float, ranks: bool) -> str:
    """Whether they go on without their launcher, as far as its steps tell; `ranks`: whether
    there is any who could take one."""
    if view.last is None:
        return ""
    age_s = max(0.0, now - view.last.t)
    words = f"step {view.last.step:,} was taken {duration(age_s)} ago"
    if ranks and age_s <= TRAINS_S:
        return f"They still train: {words}. What they have not saved by themselves is lost."
    return f"Their last {words}."


def _named(target: Target, cells: int) -> Content:
    name = f"{target.name:<{cells}}"
    return Content.assemble((name, "bold $foreground"), (f"  {target.command}", "$quiet"))
