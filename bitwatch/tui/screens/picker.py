"""Which run? Trainings that are running here and are not bitwatch's, live runs, then ended ones
with how they ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from bitwatch.attach.choose import Choice, Offered
from bitwatch.attach.target import summary
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.text import sentence
from bitwatch.tui import keys
from bitwatch.tui.draw import clip, plain
from bitwatch.tui.run_row import row
from bitwatch.tui.widgets.options import Options


class Picker(Screen[RunDir]):
    """Dismissed with the run that was chosen. `read` lists them, in a thread of ours."""

    BINDINGS = keys.bindings("picker", "choice")

    class Read(Message):
        def __init__(self, choices: Sequence[Choice | Offered]) -> None:
            super().__init__()
            self.choices = choices

    def __init__(self, read: Callable[[], Iterable[Sequence[Choice | Offered]]]) -> None:
        super().__init__()
        self._read = read
        self._choices: dict[str, Choice | Offered] = {}
        self._left = threading.Event()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog full") as dialog:
            dialog.border_title = "Which run?"
            leaves = keys.name("picker-leave")
            dialog.border_subtitle = Content(f"enter opens · {leaves} leaves")
            yield Options(id="runs", markup=False)

    def on_mount(self) -> None:
        threading.Thread(target=self._list, name="runs", daemon=True).start()

    def on_unmount(self) -> None:
        self._left.set()

    def _list(self) -> None:
        for choices in self._read():
            if self._left.is_set():
                break
            self.post_message(self.Read(choices))

    def on_picker_read(self, message: Read) -> None:
        self._choices = {choice.id: choice for choice in message.choices}
        self._show()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)  # the list has its new width by then

    def _show(self) -> None:
        """The cursor stays on the run, wherever that has moved."""
        if not self.query(OptionList):  # the page has been left meanwhile
            return
        options = self.query_one(OptionList)
        on = options.highlighted_option.id if options.highlighted_option else None
        width = max(20, options.scrollable_content_region.width)
        options.set_options(
            Option(
                offered(choice, width) if isinstance(choice, Offered) else row(choice, width),
                id=choice.id,
            )
            for choice in self._choices.values()
        )
        if on in self._choices:
            options.highlighted = options.get_option_index(str(on))
        elif self._choices:
            options.highlighted = 0

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        choice = self._choices.get(str(event.option_id))
        if choice is None:
            return
        try:
            run = choice.open()
        except (RunDirError, OSError) as error:  # a full disk, say
            self.notify(sentence(error), severity="error", timeout=10, markup=False)
            return
        self.dismiss(run)

    def action_move(self, by: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if by > 0 else options.action_cursor_up()

    def action_leave(self) -> None:
        self.dismiss(None)


def offered(choice: Offered, width: int) -> Content:
    """A training, and under it what shows that it is one."""
    found = choice.training
    first = f"◇ {'not ours':<10}pid {found.root[0]}: {plain(summary(found))}"
    evidence = "; ".join(plain(words) for words in found.evidence)
    return Content.assemble(
        (clip(first, width), "bold $foreground"),
        (f"\n{' ' * 12}{clip(evidence, width - 12)}", "$quiet"),
    )
