"""A cursor over rows that come, go and move: it stands on an identity (pid, starttime), and
stays with its process whatever row that moves to."""

from __future__ import annotations

from typing import TypeGuard

from textual import events as textual_events
from textual.message import Message

from bitwatch.tui import keys
from bitwatch.tui.rows import Key, Row
from bitwatch.tui.sections import Heading
from bitwatch.tui.widgets.panel import Panel

SCROLL_LINES = 3


class RowList(Panel):
    """Headings are never selected, nor are rows that are only the context of what a filter has
    found. `tagged` holds identities."""

    # A panel with the focus gives every process its own line: a click means the line that was
    # there when it was made, so it selects first and takes the focus then.
    FOCUS_ON_CLICK = False

    BINDINGS = keys.bindings("list")

    class Moved(Message):
        """The selection is another process now."""

        def __init__(self, key: Key | None) -> None:
            super().__init__()
            self.key = key

    class Opened(Message):
        """Somebody wants to know more about the selected process."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.tagged: set[Key] = set()
        self.selection: Key | None = None
        self._at = 0  # where the selection was last seen
        self._sought = ""  # the filter that it was last looked at with
        self._clicked = False  # on a row that was selected by that
        self._offset = 0
        self._rows: list[Heading | Row] = []
        self._head = 1  # lines above the first row
        self._room = 1

    def every_row(self) -> list[Row]:
        """Each process in a line of its own, whatever is drawn."""
        raise NotImplementedError

    def sought(self) -> str:
        """What the rows that are shown must contain; empty for all."""
        return ""

    def press_heading(self, x: int) -> None:
        """A click on the line above the rows."""

    def selected(self) -> Row | None:
        """The process under the cursor, alone. None where the filter does not find it: no key
        is meant for what nobody sees."""
        drawn = self._drawn_row()
        if drawn and not drawn.members:
            return drawn
        return None if drawn is None and self.sought() else self._alive()

    def _alive(self) -> Row | None:
        """The process of the selection, in sight or not."""
        return next((row for row in self.every_row() if self.selection in row.keys), None)

    def _drawn_row(self) -> Row | None:
        """The line under the cursor, which several processes may share."""
        rows = (row for row in self._rows if _may_be_selected(row))
        return next((row for row in rows if self.selection in row.keys), None)

    def chosen(self) -> list[Row]:
        """What a key is meant for: the tagged that are still there, else what stands under the
        cursor."""
        if tagged := self.tagged_rows():
            return tagged
        row = self._drawn_row() or self.selected()
        return [row] if row else []

    def forget_ended(self) -> bool:
        """Takes the tags of those away that are not there any more; whether none is left of
        some. Nothing else is then meant in their place."""
        here = {key for row in self.every_row() for key in row.keys}
        had, self.tagged = bool(self.tagged), self.tagged & here
        return had and not self.tagged

    def tagged_rows(self) -> list[Row]:
        """Also those that are out of sight; no more those that have ended."""
        if not self.tagged:
            return []
        return [row for row in self.every_row() if self.tagged.intersection(row.keys)]

    def tag(self) -> None:
        """The selected row, and on to the next: again takes the tag away."""
        row = self._drawn_row()
        if row is None:
            return
        if self.tagged.issuperset(row.keys):
            self.tagged.difference_update(row.keys)
        else:
            self.tagged.update(row.keys)
        self.action_move(1)

    def _keep_selection(self) -> None:
        """Stays with its process; when that is gone, at the row where it was. A filter that
        somebody has changed just now, and that does not find it, moves it to the first that it
        finds."""
        before, self._sought = self._sought, self.sought()
        here = self._rows[self._at] if self._at < len(self._rows) else None
        if _may_be_selected(here) and self.selection in here.keys:
            return
        for at, row in enumerate(self._rows):
            if _may_be_selected(row) and self.selection in row.keys:
                self._at = at
                return
        if self._sought and self._sought != before:
            self._select(0, 1)
        elif self._alive() is None:  # else it is only out of sight
            self._select(min(self._at, len(self._rows) - 1), 1)

    def _select(self, at: int, step: int) -> None:
        """That row, or the next beyond it that may be selected; where there is none, the next
        before it."""
        last = len(self._rows) - 1
        at = max(0, min(last, at))
        up, down = range(at, -1, -1), range(at, last + 1)
        for near in (*down, *up) if step > 0 else (*up, *down):
            row = self._rows[near]
            if _may_be_selected(row):
                self._at = near
                before, self.selection = self.selection, row.keys[0]
                if self.selection != before:
                    self.post_message(self.Moved(self.selection))
                return

    def _scroll_to_selection(self, room: int) -> None:
        at = self._at
        if not any(map(_may_be_selected, self._rows[:at])):
            at = 0  # what stands above the first row comes into sight with it
        self._offset = min(self._offset, at)
        if self._at >= self._offset + room:
            self._offset = self._at - room + 1
        self._offset = max(0, min(self._offset, len(self._rows) - room))

    def action_move(self, by: int) -> None:
        if self._rows:
            self._select(self._at + by, 1 if by > 0 else -1)
            self.repaint()

    def action_move_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self._room - 1))

    def action_move_to(self, at: int) -> None:
        if self._rows:
            self._select(len(self._rows) - 1 if at < 0 else at, -1 if at < 0 else 1)
            self.repaint()

    def on_mouse_scroll_down(self, event: textual_events.MouseScrollDown) -> None:
        event.stop()
        self.action_move(SCROLL_LINES)

    def on_mouse_scroll_up(self, event: textual_events.MouseScrollUp) -> None:
        event.stop()
        self.action_move(-SCROLL_LINES)

    def on_click(self, event: textual_events.Click) -> None:
        """Selects; the second at once opens what the first has selected, wherever the focus has
        moved its line to."""
        self._clicked &= event.chain > 1
        line = event.y - 1 - self._head
        at = line + self._offset
        if self._head and line == -1:
            self.press_heading(event.x - 2)
        elif line >= 0 and event.y < self.size.height - 1 and at < len(self._rows):
            if event.chain > 1:
                if self._clicked:
                    self.post_message(self.Opened())
            elif _may_be_selected(self._rows[at]):
                self._clicked = True
                self._select(at, 1)
        self.focus()
        self.repaint()


def _may_be_selected(row: Heading | Row | None) -> TypeGuard[Row]:
    return isinstance(row, Row) and not row.context
