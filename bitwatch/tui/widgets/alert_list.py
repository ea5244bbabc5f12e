"""The alerts of a run, with a cursor that stays with its alert whatever line that moves to, and
what is said of the selected one below them."""

from __future__ import annotations

from textual import events as textual_events
from textual.message import Message

from bitwatch.record.episodes import Episode, Key
from bitwatch.record.view import View
from bitwatch.tui import keys
from bitwatch.tui.alert_rows import LEVEL_WORDS, LEVELS, THEN, Columns, Entry, Heading, shown
from bitwatch.tui.draw import Line, folded, plain
from bitwatch.tui.widgets.alerts import ROLES, SHAPES
from bitwatch.tui.widgets.filter_line import FilterLine
from bitwatch.tui.widgets.painted import Painted

SCROLL_LINES = 3
PREVIEW_FROM = 13  # lines of the page, from which on there is room for it
PREVIEW = 6  # lines at most


class AlertList(Painted, can_focus=True):
    """`level`: how many of the severities are shown, the worst first."""

    DEFAULT_CSS = "AlertList { height: 1fr; width: 1fr; }"
    default_id = "alert-list"

    class Opened(Message):
        """Somebody wants to know more about one."""

        def __init__(self, episode: Episode) -> None:
            super().__init__()
            self.episode = episode

    class Filtered(Message):
        """Another part of them is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.level = 3
        self.filter = FilterLine()
        self.selection: Key | None = None
        self.left_out = 0
        self._at = 0  # where the selection was last seen
        self._offset = 0
        self._room = 1
        self._rows: list[Heading | Entry] = []

    # -- what is shown --------------------------------------------------------------------

    def remember(self, view: View) -> None:
        self._find()

    def _find(self) -> None:
        """The lines of now; the selection stays with its alert, and where that is not shown any
        more with its line."""
        self._rows, self.left_out = shown(self.view, self.now, self.level, self.filter.text)
        for at, row in enumerate(self._rows):
            if isinstance(row, Entry) and row.episode.key == self.selection:
                self._at = at
                return
        self._select(self._at, 1)

    def selected(self) -> Episode | None:
        row = self._rows[self._at] if self._at < len(self._rows) else None
        return row.episode if isinstance(row, Entry) else None

    def draw(self, width: int, height: int) -> list[Line]:
        editing = [self.filter.line(width)] if self.filter.editing else []
        room = height - 1 - len(editing)
        below = self._preview(width) if height >= PREVIEW_FROM else []
        if below:
            room -= len(below) + 1
        self._room = max(1, room)
        self._scroll()
        columns = Columns(self._rows, width, self.now)
        lines = [columns.head()]
        for row in self._rows[self._offset : self._offset + self._room]:
            line = columns.line(row)
            if isinstance(row, Entry) and row.episode.key == self.selection:
                line = line.pad(width)
                line.ground = "cursor-ground"
            lines.append(line)
        if not any(isinstance(row, Entry) for row in self._rows) and self.left_out:
            lines.append(Line(f"none of {self.left_out} alerts is like that", "quiet"))
        lines += [Line() for _ in range(height - len(below) - len(editing) - len(lines))]
        return [*lines, *below, *editing]

    def _preview(self, width: int) -> list[Line]:
        one = self.selected()
        if one is None:
            return []
        alert = one.alert
        role = ROLES[alert.severity]
        lead = Line(f"{SHAPES[alert.severity]} ", f"strong {role}")
        lines = folded(plain(alert.text or alert.id), width, "strong text", lead)
        if alert.next:
            said, tone = plain(keys.in_words(alert.next)), "quiet" if one.how else "accent"
            begin = Line("  ").add(f"{THEN}: " if one.how else "", "quiet")
            lines += folded(said, width, tone, begin)
        return lines[:PREVIEW]

    def _scroll(self) -> None:
        at = 0 if self._at == 1 else self._at  # the first heading comes into sight with its first
        if at < self._offset:
            self._offset = at
        elif self._at >= self._offset + self._room:
            self._offset = self._at - self._room + 1
        self._offset = max(0, min(self._offset, len(self._rows) - self._room))

    # -- what keys and the mouse do -------------------------------------------------------

    def _select(self, at: int, step: int) -> None:
        """The alert there, or the next one in that direction: headings are never selected."""
        places = [n for n, row in enumerate(self._rows) if isinstance(row, Entry)]
        if not places:
            self._at = 0
            return
        ahead = [n for n in places if (n >= at if step > 0 else n <= at)]
        self._at = (ahead[0] if step > 0 else ahead[-1]) if ahead else places[-1 if step > 0 else 0]
        row = self._rows[self._at]
        self.selection = row.episode.key if isinstance(row, Entry) else None

    def move(self, by: int) -> None:
        self._select(max(0, self._at + by), 1 if by > 0 else -1)
        self.repaint()

    def move_page(self, direction: int) -> None:
        self.move(direction * max(1, self._room - 1))

    def move_to(self, at: int) -> None:
        self._select(at if at >= 0 else len(self._rows), 1 if at >= 0 else -1)
        self.repaint()

    def open(self) -> None:
        if (one := self.selected()) is not None:
            self.post_message(self.Opened(one))

    def show_level(self, level: int) -> None:
        self.level = level
        self._refilter()

    def next_level(self) -> None:
        self.show_level(LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)])

    def edit_filter(self) -> None:
        self.filter.editing = True
        self.repaint()

    def clear_filter(self) -> bool:
        """Whether there was one."""
        had = bool(self.filter.text) or self.level != 3
        self.filter.text, self.level = "", 3
        self._refilter()
        return had

    def said(self) -> str:
        """What is shown of all, in words; empty for everything."""
        words = [LEVEL_WORDS[self.level], f"/{plain(self.filter.text)}" if self.filter.text else ""]
        return " · ".join(word for word in words if word)

    def _refilter(self) -> None:
        self._find()
        self.repaint()
        self.post_message(self.Filtered())

    def on_key(self, event: textual_events.Key) -> None:
        if self.filter.editing and self.filter.take(event):
            event.stop()
            event.prevent_default()
            self._refilter()

    def on_paste(self, event: textual_events.Paste) -> None:
        if self.filter.editing:
            event.stop()
            self.filter.add(event.text)
            self._refilter()

    def on_mouse_scroll_down(self, event: textual_events.MouseScrollDown) -> None:
        event.stop()
        self.move(SCROLL_LINES)

    def on_mouse_scroll_up(self, event: textual_events.MouseScrollUp) -> None:
        event.stop()
        self.move(-SCROLL_LINES)

    def on_click(self, event: textual_events.Click) -> None:
        """Selects; the second at once opens."""
        at = event.y - 1 + self._offset
        if not 1 <= event.y <= self._room or at >= len(self._rows):
            return
        if event.chain > 1:
            self.open()
        elif isinstance(self._rows[at], Entry):
            self._select(at, 1)
            self.repaint()
