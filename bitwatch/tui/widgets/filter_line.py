"""A line to type what rows must contain. It is drawn by the panel that it belongs to."""

from __future__ import annotations

from textual.events import Key

from bitwatch.tui.draw import Line, plain

MOST_CHARACTERS = 200


class FilterLine:
    """`text` narrows the rows with every key. Enter keeps it, escape clears it. Who does something
    else with it says what."""

    def __init__(self, enter: str = "keeps", escape: str = "clears") -> None:
        self._enter, self._escape = enter, escape
        self.text = ""
        self.editing = False

    def take(self, event: Key) -> bool:
        """Whether the key was for this line."""
        if event.key == "enter":
            self.editing = False
        elif event.key == "escape":
            self.text, self.editing = "", False
        elif event.key in ("backspace", "ctrl+h"):
            self.text = self.text[:-1]
        elif event.key == "ctrl+w":
            self.text = self.text.rstrip().rpartition(" ")[0]
        elif event.key == "ctrl+u":
            self.text = ""
        elif event.is_printable and event.character:
            self.add(event.character)
        else:
            return False
        return True

    def add(self, text: str) -> None:
        self.text = (self.text + text.partition("\n")[0])[:MOST_CHARACTERS]

    def line(self, width: int) -> Line:
        keys = Line("enter", "accent").add(f" {self._enter} · ", "quiet")
        keys.add("esc", "accent").add(f" {self._escape}", "quiet")
        room = width - keys.width - 5
        shown = plain(self.text)
        line = Line("/ ", "strong accent")
        if room < 8:
            return line.add(shown[-max(1, width - 3) :]).add("▏", "accent").cut(width)
        if Line(shown).width > room:  # its end is where one types
            shown = "…" + shown[-(room - 1) :]
        return line.add(shown).add("▏", "accent").right(keys, width)
