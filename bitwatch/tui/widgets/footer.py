"""The last line: the keys that do something now, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events as textual_events
from textual.message import Message

from bitwatch.tui import keys
from bitwatch.tui.draw import Line
from bitwatch.tui.widgets.painted import Painted


class KeyFooter(Painted):
    """Draws (key, label) pairs in the order given, as many as fit."""

    DEFAULT_CSS = "KeyFooter { height: 1; }"
    default_id = "footer"

    class Pressed(Message):
        """A key was clicked."""

        def __init__(self, key: str, label: str) -> None:
            super().__init__()
            self.key = key
            self.label = label

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._keys: list[tuple[str, str]] = []
        self._places: list[tuple[int, int, str, str]] = []  # (from column, to, key, label)

    def show_keys(self, pairs: Sequence[tuple[str, str]]) -> None:
        if self._keys != list(pairs):
            self._keys = list(pairs)
            self.repaint()

    def draw(self, width: int, height: int) -> list[Line]:
        line = Line()
        self._places = []
        for key, label in fitting(self._keys, width):
            start = line.width
            line.add(f" {key}", "strong accent").add(f" {label} ", "quiet")
            self._places.append((start, line.width, key, label))
        return [line]

    def on_click(self, event: textual_events.Click) -> None:
        for start, end, key, label in self._places:
            if start <= event.x < end:
                self.post_message(self.Pressed(key, label))


def fitting(pairs: list[tuple[str, str]], width: int) -> list[tuple[str, str]]:
    """The pairs that fit, in order; the last ones go first, help never."""
    kept = list(pairs)
    last = keys.get("help").label  # stays in sight however narrow the terminal
    while len(kept) > 1 and sum(Line(f" {k} {label} ").width for k, label in kept) > width:
        droppable = [pair for pair in kept if pair[1] != last]
        if not droppable:
            break
        kept.remove(droppable[-1])
    return kept
