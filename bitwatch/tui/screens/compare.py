"""Which run's curve to draw beside this one's? The runs of the home, newest first."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from bitwatch.attach import choose
from bitwatch.attach.choose import Choice
from bitwatch.record.rundir import RunDir
from bitwatch.tui import keys
from bitwatch.tui.draw import Line, plain
from bitwatch.tui.run_row import row
from bitwatch.tui.screens.over import Over
from bitwatch.tui.widgets.filter_line import FilterLine
from bitwatch.tui.widgets.options import Options
from bitwatch.tui.widgets.painted import Painted


class Compare(Over[RunDir | None]):
    """Dismissed with the run that was chosen. `shown` are those that are drawn already: chosen
    again, they go."""

    BINDINGS = keys.bindings("compare", "picker", "choice")

    class Read(Message):
        def __init__(self, choices: Sequence[Choice], whole: bool) -> None:
            super().__init__()
            self.choices = choices
            self.whole = whole

    def __init__(self, run: RunDir, shown: set[str]) -> None:
        super().__init__()
        self._run = run
        self._shown = shown
        self._choices: list[Choice] = []
        self._whole = False
        self._left = threading.Event()
        self.filter = FilterLine()
        self._line = _FilterRow(self.filter)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog full") as dialog:
            dialog.border_title = "Compare with which run?"
            filters, closes = keys.name("compare-filter"), keys.name("picker-leave")
            words = f"enter adds or removes · {filters} filters · {closes} closes"
            dialog.border_subtitle = Content(words)
            yield Options(id="runs", markup=False)
            yield self._line

    def on_mount(self) -> None:
        self._line.display = False
        threading.Thread(target=self._list, name="runs", daemon=True).start()

    def on_unmount(self) -> None:
        self._left.set()

    def _list(self) -> None:
        for choices, whole in choose.earlier(self._run):
            if self._left.is_set():
                return
            self.post_message(self.Read(choices, whole))

    def on_compare_read(self, message: Read) -> None:
        self._choices, self._whole = list(message.choices), message.whole
        self._show()

    def _show(self) -> None:
        """The cursor stays on the run, wherever that has moved."""
        if not self.query(OptionList):  # the page has been left meanwhile
            return
        options = self.query_one(OptionList)
        on = options.highlighted_option.id if options.highlighted_option else None
        wanted = self.filter.text.casefold()
        found = [one for one in self._choices if wanted in f"{one.id} {one.state}".casefold()]
        width = max(20, options.scrollable_content_region.width)
        options.set_options(
            Option(
                Content.assemble(
                    ("● " if one.id in self._shown else "  ", "$accent"), row(one, width - 2)
                ),
                id=one.id,
            )
            for one in found
        )
        if not found:
            words = "no run contains this" if self._choices else "there is no other run"
            empty = words if self._whole or self._choices else "reading ..."
            options.add_option(Option(empty, disabled=True))
        at = next((at for at, one in enumerate(found) if one.id == on), 0)
        options.highlighted = at if found else None

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)  # the list has its new width by then

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        found = next((one for one in self._choices if one.id == event.option_id), None)
        if found is not None:
            self.dismiss(found.run)

    def action_choose(self) -> None:
        self.query_one(OptionList).action_select()

    def action_move(self, by: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if by > 0 else options.action_cursor_up()

    def action_leave(self) -> None:
        self.dismiss(None)

    # -- the filter -----------------------------------------------------------------------

    def action_filter(self) -> None:
        self.filter.editing = True
        self._filtered()

    def on_key(self, event: Key) -> None:
        """What is typed narrows the list; the arrows still move in it."""
        if self.filter.editing and event.key not in ("up", "down") and self.filter.take(event):
            event.stop()
            event.prevent_default()
            self._filtered()

    def on_paste(self, event: Paste) -> None:
        if self.filter.editing:
            self.filter.add(event.text)
            self._filtered()

    def _filtered(self) -> None:
        self._line.display = self.filter.editing or bool(self.filter.text)
        self._line.repaint()
        self._show()


class _FilterRow(Painted):
    DEFAULT_CSS = "_FilterRow { height: 1; }"

    def __init__(self, filter_line: FilterLine) -> None:
        super().__init__()
        self._filter = filter_line

    def draw(self, width: int, height: int) -> list[Line]:
        if self._filter.editing:
            return [self._filter.line(width)]
        return [Line(f"/{plain(self._filter.text)}", "accent").cut(width)]
