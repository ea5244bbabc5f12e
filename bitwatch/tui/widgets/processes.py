"""The processes of the run: supervisor, agent, ranks, workers, and what was left behind.

The cursor stands on an identity (pid, starttime): rows may come, go and move, it stays with
its process. Without the focus, and without room, workers alike share a line; with the focus
every process has its own.
"""

from __future__ import annotations

from textual import events as textual_events
from textual.binding import Binding
from textual.message import Message

from bitwatch.record.view import END_STATES
from bitwatch.tui import family
from bitwatch.tui.draw import Line, Part, centred, joined, plain
from bitwatch.tui.family import Key, Row
from bitwatch.tui.widgets.columns import Columns
from bitwatch.tui.widgets.panel import Panel

SCROLL_LINES = 3
STALE_S = 10.0


class ProcessPanel(Panel):
    """`as_tree`, `sort`, `descending` and `filter_text` are switched by the app's keys, which
    then call `repaint`. `tagged` holds identities."""

    default_id = "processes"
    number = "4"
    title = "Processes"

    BINDINGS = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "move_page(-1)", "page up", show=False),
        Binding("pagedown", "move_page(1)", "page down", show=False),
        Binding("home,g", "move_to(0)", "first", show=False),
        Binding("end,G", "move_to(-1)", "last", show=False),
    ]

    class Moved(Message):
        """The selection is another process now."""

        def __init__(self, key: Key | None) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.as_tree = True
        self.sort = "pid"
        self.descending = False
        self.filter_text = ""
        self.tagged: set[Key] = set()
        self.selection: Key | None = None
        self._at = 0  # where the selection was last seen
        self._offset = 0
        self._rows: list[Row | None] = []  # None: the heading of the leftovers
        self._head = 1  # lines above the first row
        self._room = 1

    # -----------------------------------------------------------------------------------
    # What is shown

    def selected(self) -> Row | None:
        """The row under the cursor, whose identities a dialog takes when it opens."""
        rows = [row for row in self._all_rows(0) if row]
        return next((row for row in rows if self.selection in row.keys), None)

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.view.processes and not self.view.leftovers:
            over = self.view.state in END_STATES
            words = "nothing of this run is left" if over else "no sample of processes yet"
            return centred(words, width, height)
        self._head = 1 if height >= 4 else 0
        room = self._room = height - self._head
        self._rows = self._fitting(room)
        if not self._rows:
            self._offset = 0
            return centred(f"no process contains {plain(self.filter_text)!r}", width, height)
        self._keep_selection()
        self._scroll_to_selection(room)
        columns = Columns([row for row in self._rows if row], width, self.now)
        lines = [columns.heading("" if self.as_tree else self.sort, self.descending)][: self._head]
        for at in range(self._offset, min(len(self._rows), self._offset + room)):
            row = self._rows[at]
            lines.append(self._leftover_heading(width) if row is None else self._line(row, columns))
        return lines

    def summary(self, width: int) -> Line:
        view = self.view
        parts = []
        if view.leftovers:
            parts.append(Part(9, Line(f"✗ {len(view.leftovers)} leftovers", "strong bad")))
        for role, number in family.counts(view).items():
            if role in ("supervisor", "agent", "rank", "worker"):
                plural = "s" if number > 1 else ""
                importance = {"rank": 8, "worker": 7}.get(role, 1)
                line = Line(str(number)).add(f" {role}{plural}", "quiet")
                parts.append(Part(importance, line))
        processes = view.processes
        cpu = [row.cpu_percent for row in processes if row.cpu_percent is not None]
        if cpu:
            line = Line("cpu ", "quiet").add(f"{sum(cpu):.0f}").add(" %", "quiet")
            parts.append(Part(5, line))
            memory = sum(row.rss_mib or 0.0 for row in processes)
            line = Line("memory ", "quiet").add(f"{memory / 1024:.1f}").add(" GiB", "quiet")
            parts.append(Part(4, line))
        return joined(parts or [Part(0, Line("none", "quiet"))], width)

    def subtitle(self) -> list[Part]:
        view = self.view
        processes = view.processes
        parts = [Part(1, Line(f"{len(processes)} ours", "quiet"))] if processes else []
        if view.leftovers:
            parts.append(Part(5, Line(f"{len(view.leftovers)} leftovers", "bad")))
        if self.filter_text:
            parts.append(Part(4, Line(f"/{plain(self.filter_text)}", "accent")))
        if self.tagged:
            parts.append(Part(3, Line(f"{len(self.tagged)} tagged", "accent")))
        if not self.as_tree:
            parts.append(Part(2, Line(f"by {self.sort}", "quiet")))
        if processes and view.sampled is not None and self.now - view.sampled >= STALE_S:
            parts.append(Part(6, Line(f"{self.now - view.sampled:.0f} s old", "warning")))
        return parts

    def caption(self) -> list[Part]:
        """How much lies outside the frame."""
        if len(self._rows) <= self._room:
            return []
        last = min(len(self._rows), self._offset + self._room)
        words = f"{self._offset + 1}–{last} of {len(self._rows)}"
        return [Part(1, Line(words, "quiet"))]

    def _line(self, row: Row, columns: Columns) -> Line:
        chosen = self.selection in row.keys
        line = columns.line(row, tagged=any(key in self.tagged for key in row.keys))
        if chosen:
            line.ground = "cursor-ground" if self.has_focus else "surface"
        return line

    def _leftover_heading(self, width: int) -> Line:
        left = family.leftovers(self.view)
        attempts = ", ".join(str(n) for n in sorted({p.attempt for p in self.view.leftovers}))
        line = Line(f" leftovers of attempt {attempts} ", "reverse strong bad")
        line.add(f"  {len(left)} process{'es' if len(left) > 1 else ''}")
        if held := sum(row.gpu_mib or 0.0 for row in left):
            line.add(f", {held / 1024:.1f} GiB of GPU memory")
        return line.right(Line("[c]", "strong accent").add(" clean up", "accent"), width)

    def _fitting(self, room: int) -> list[Row | None]:
        """Every process; or, without focus and room, as much joined as it takes, and the
        heading of the leftovers always in sight."""
        rows = self._all_rows(0)
        if self.has_focus or not self.as_tree:
            return rows
        for collapse in (1, 2):
            if len(rows) > room:
                rows = self._all_rows(collapse)
        if len(rows) > room and None in rows:
            heading = rows.index(None)
            kept = min(heading, room - 1)
            return [*rows[:kept], *rows[heading : heading + room - kept]]
        return rows

    def _all_rows(self, collapse: int) -> list[Row | None]:
        found: list[Row | None] = list(
            family.rows(
                self.view,
                tree=self.as_tree,
                sort=self.sort,
                descending=self.descending,
                text=self.filter_text,
                collapse=collapse,
                now=self.now,
            )
        )
        left = family.leftovers(self.view, self.filter_text)
        return [*found, None, *left] if left else found

    # -----------------------------------------------------------------------------------
    # The cursor

    def _keep_selection(self) -> None:
        """Stays with its process; when that is gone, at the row where it was."""
        for at, row in enumerate(self._rows):
            if row and self.selection in row.keys:
                self._at = at
                return
        if self.selected() is None:  # else it is only out of sight
            self._select(min(self._at, len(self._rows) - 1), 1)

    def _select(self, at: int, step: int) -> None:
        at = max(0, min(len(self._rows) - 1, at))
        if self._rows[at] is None:
            at = max(0, min(len(self._rows) - 1, at + step))
        row = self._rows[at]
        self._at = at
        before, self.selection = self.selection, row.keys[0] if row else None
        if self.selection != before:
            self.post_message(self.Moved(self.selection))

    def _scroll_to_selection(self, room: int) -> None:
        if self._at < self._offset:
            self._offset = self._at
        elif self._at >= self._offset + room:
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
        at = event.y - 1 - self._head + self._offset
        inside = 1 + self._head <= event.y < self.size.height - 1
        if inside and 0 <= at < len(self._rows):
            self._select(at, 1)
            self.repaint()
