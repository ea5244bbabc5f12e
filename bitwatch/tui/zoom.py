"""Which part of an axis is shown, and where the cursor stands on it. Pure.

All is kept in values of the axis, never in columns, so that it stays with the data whatever
the size of the screen. A window that shows the newest goes on showing it as more comes.
"""

from __future__ import annotations

from bitwatch.tui.across import TIME, Window

FACTOR = 0.5  # of the window that a step of the zoom leaves
WHEEL = 0.8
PAN = 0.25  # of the window that a key moves by
BEYOND = 0.02  # of the window that stays free beyond the newest, where there is something
LEAST_STEPS = 8.0
LEAST_S = 2.0


class Zoom:
    """`window` is None for the whole. `cursor` is where the keys have put it, `pointer` where
    the mouse is."""

    def __init__(self) -> None:
        self.window: Window | None = None
        self.cursor: float | None = None
        self.pointer: float | None = None
        self._follows = False

    def clear(self) -> None:
        self.window = self.cursor = None
        self._follows = False

    @property
    def mark(self) -> float | None:
        """What is read out: under the mouse, else under the cursor."""
        return self.pointer if self.pointer is not None else self.cursor

    def shown(self, whole: Window, newest: float) -> Window:
        """What to show of all there is. `newest` is the run's own newest place."""
        if self.window is None:
            return whole
        window = self.window
        if self._follows and newest >= window.end:
            by = newest - window.end + window.span * BEYOND
            window = Window(window.first + by, window.end + by)
        self.window = _inside(window, whole)
        return self.window

    def zoom(
        self, factor: float, whole: Window, newest: float, axis: str, at: float | None
    ) -> None:
        """Shows `factor` of what is shown, and keeps in its place what stands at `at`: at the
        right end, when nothing is said."""
        now = self.shown(whole, newest)
        least = LEAST_S if axis == TIME else LEAST_STEPS
        span = max(min(least, whole.span), now.span * factor)
        if span >= whole.span:
            self.window, self._follows = None, False
            return
        at = now.end if at is None else min(max(at, now.first), now.end)
        first = at - (at - now.first) / now.span * span
        self._set(Window(first, first + span), whole, newest, axis)

    def pan(self, by: float, whole: Window, newest: float, axis: str) -> None:
        """Moves the window by so much; the whole cannot be moved."""
        if self.window is not None:
            now = self.shown(whole, newest)
            self._set(Window(now.first + by, now.end + by), whole, newest, axis)

    def go(self, to_end: bool, whole: Window, newest: float, axis: str) -> None:
        """The first or the newest part, as wide as what is shown."""
        if self.window is not None:
            span = self.window.span
            first = newest - span * (1 - BEYOND) if to_end else whole.first
            self._set(Window(first, first + span), whole, newest, axis)

    def _set(self, window: Window, whole: Window, newest: float, axis: str) -> None:
        if axis != TIME:  # whole steps, so that a column is the same step at every redraw
            end = round(window.end)
            window = Window(end - max(1, round(window.span)), end)
        self.window = _inside(window, whole)
        self._follows = self.window.first <= newest < self.window.end


def _inside(window: Window, whole: Window) -> Window:
    """As wide, and nowhere beyond the whole."""
    first = min(window.first, whole.end - window.span)
    first = max(first, whole.first)
    return Window(first, first + window.span)
