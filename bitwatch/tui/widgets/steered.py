"""A panel with a chart that keys and the mouse steer: zoom, pan, a cursor that reads out.

It knows where its chart stands and which window of it is shown, and nothing of what is drawn.
The mouse only ever says where it is; what follows from it is drawn at most every 50 ms, so that
no connection is flooded by a hand that moves.
"""

from __future__ import annotations

import time

from textual import events
from textual.actions import SkipAction

from bitwatch.tui import keys, readout
from bitwatch.tui.across import STEP, Window
from bitwatch.tui.chart import Chart
from bitwatch.tui.widgets.panel import Panel
from bitwatch.tui.zoom import FACTOR, PAN, WHEEL, Zoom

READOUT_S = 0.05  # between two that the mouse asks for


class Steered(Panel):
    """`chart` is the newest drawing and `origin` its first cell in the widget; both are set by
    whoever draws, with `whole` and `newest`, the ends of what there is."""

    BINDINGS = keys.bindings("curves")

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.axis = STEP  # that is asked for
        self.along = STEP  # that is shown: the other may not be known of this curve
        self.zoom = Zoom()
        self.chart: Chart | None = None
        self.origin = (0, 0)
        self.whole: Window | None = None
        self.newest = 0.0
        self._pointed: tuple[int, int] | None = None  # where the mouse is
        self._held: int | None = None  # the column at which it holds the chart
        self._read_at = 0.0
        self._waits = False

    def pressed(self, x: int, y: int) -> bool:
        """Whether a click on a cell of the widget was for something else than the chart."""
        return False

    # -- keys -----------------------------------------------------------------------------

    def action_zoom(self, closer: bool) -> None:
        self._zoom(FACTOR if closer else 1 / FACTOR, self.zoom.cursor)

    def _zoom(self, factor: float, at: float | None) -> None:
        if self.whole is not None:
            self.zoom.zoom(factor, self.whole, self.newest, self.along, at)
            self.repaint()

    def action_pan(self, by: int) -> None:
        if self.whole is not None and self.chart is not None:
            self.zoom.pan(by * PAN * self.chart.window.span, self.whole, self.newest, self.along)
            self.repaint()

    def action_cursor(self, by: int) -> None:
        """To the next cell with a value. At the end of what is shown the window goes on."""
        chart = self.chart
        if chart is None:
            return
        self.zoom.pointer = None
        now = chart.window.column(self.zoom.cursor, chart.width)
        if now is None:
            begin, by = chart.width - 1, -1
        else:
            begin = now + by
        column = next(iter(readout.cells(chart, begin, by)), None)
        if column is None:
            self.action_pan(by)
        else:
            self._put(column)

    def action_go(self, to_end: bool) -> None:
        """To the first or the newest."""
        if self.whole is None or self.chart is None:
            return
        self.zoom.go(to_end, self.whole, self.newest, self.along)
        self.repaint()
        begin, by = (self.chart.width - 1, -1) if to_end else (0, 1)
        column = next(iter(readout.cells(self.chart, begin, by)), None)
        if column is not None:
            self._put(column)

    def action_whole(self) -> None:
        self.zoom.clear()
        self.repaint()

    def action_drop(self) -> None:
        """The cursor and the zoom; without either the key means what it means elsewhere."""
        if self.zoom.window is None and self.zoom.cursor is None:
            raise SkipAction
        self.action_whole()

    def _put(self, column: int) -> None:
        assert self.chart is not None
        reading = readout.read(self.chart, column)
        if reading is not None:
            self.zoom.cursor = reading.x
            self.repaint()

    def reading(self) -> tuple[int, readout.Reading] | None:
        """The cell that is read out, and what stands there."""
        if self.chart is None:
            return None
        column = self.chart.window.column(self.zoom.mark, self.chart.width)
        column = readout.nearest(self.chart, column) if column is not None else None
        found = readout.read(self.chart, column) if column is not None else None
        return (column, found) if column is not None and found is not None else None

    # -- the mouse ------------------------------------------------------------------------

    def _column(self, x: int, y: int) -> int | None:
        """The column of the chart under a cell of the widget."""
        chart = self.chart
        if chart is None or not 0 <= y - self.origin[1] < chart.rows:
            return None
        column = x - self.origin[0] - chart.margin
        return column if 0 <= column < chart.width else None

    def _x(self, column: int | None) -> float | None:
        if column is None or self.chart is None:
            return None
        window = self.chart.window
        return window.first + (column + 0.5) / self.chart.width * window.span

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._pointed = (event.x, event.y)
        if self._waits:
            return
        self._waits = True
        since = time.monotonic() - self._read_at
        self.set_timer(max(0.001, READOUT_S - since), self._follow_mouse)

    def _follow_mouse(self) -> None:
        self._waits = False
        if self._pointed is None:
            return
        self._read_at = time.monotonic()
        x, y = self._pointed
        if self._held is not None and self.chart is not None and self.whole is not None:
            moved = (self._held - x) / self.chart.width * self.chart.window.span
            self._held = x
            self.zoom.pan(moved, self.whole, self.newest, self.along)
        self.zoom.pointer = self._x(self._column(x, y))
        self.repaint()

    def on_leave(self, event: events.Leave) -> None:
        self._pointed = None
        if self.zoom.pointer is not None:
            self.zoom.pointer = None
            self.repaint()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1 / WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, WHEEL)

    def _wheel(self, event: events.MouseEvent, factor: float) -> None:
        column = self._column(event.x, event.y)
        if column is not None:
            event.stop()
            self._zoom(factor, self._x(column))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self._column(event.x, event.y) is not None and self.zoom.window is not None:
            self._held = event.x
            self.capture_mouse()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._held is not None:
            self._pointed = (event.x, event.y)
            self._follow_mouse()
            self._held = None
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        if self.pressed(event.x, event.y):
            event.stop()
