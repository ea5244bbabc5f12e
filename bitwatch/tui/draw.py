"""Lines made of text in roles, measured in terminal cells. Pure: no widget, no colour.

Everything that a panel shows passes through here, so this is where no text can break a
column: what is too wide is cut with an ellipsis, what is too narrow is padded, and a wide
character that would stand half outside is left out.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len

from bitwatch.text import literal

ELLIPSIS = "…"
SPARKS = "▁▂▃▄▅▆▇"  # never the whole cell: rows stay apart
SENTENCE = re.compile(r"(?<=[.!?])\s")
SELECTORS = {0xFE0E: None, 0xFE0F: None}  # terminals disagree on the width of what they select


class Line:
    """One line: spans of (text, role) and, for a marked row, the name of its ground."""

    __slots__ = ("ground", "spans", "width")

    def __init__(self, text: str = "", role: str = "text", ground: str = "") -> None:
        self.spans: list[tuple[str, str]] = []
        self.width = 0
        self.ground = ground
        self.add(text, role)

    def add(self, text: str, role: str = "text") -> Line:
        if text:
            if self.spans and self.spans[-1][1] == role:
                self.spans[-1] = (self.spans[-1][0] + text, role)
            else:
                self.spans.append((text, role))
            self.width += cells_of(text)
        return self

    def join(self, other: Line) -> Line:
        self.spans.extend(other.spans)
        self.width += other.width
        return self

    def pad(self, width: int) -> Line:
        """Spaces up to a column; nothing when the line has passed it."""
        return self.add(" " * (width - self.width))

    def right(self, other: Line, width: int) -> Line:
        """`other` so that it ends at `width`, cutting what stands in its way."""
        room = max(0, width - other.width)
        if self.width > room:
            cut = self.cut(max(0, room - 1))
            self.spans, self.width = cut.spans, cut.width
        return self.pad(room).join(other.cut(width))

    def cut(self, width: int) -> Line:
        """At most `width` cells; an ellipsis says that something is missing."""
        if self.width <= width:
            return self
        line = Line(ground=self.ground)
        for text, role in self.spans:
            left = width - line.width
            cells = cells_of(text)
            if cells < left or (cells == left and (text, role) == self.spans[-1]):
                line.add(text, role)
            else:
                line.add(fit(text + ELLIPSIS, left).rstrip() if left > 0 else "", role)
                break
        return line

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.spans)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Line) and self.spans == other.spans and self.ground == other.ground
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Line({self.text!r})"


def over(line: Line, column: int, character: str, role: str) -> Line:
    """The line with one of its cells written over. For lines of characters a cell wide."""
    line = line if line.width > column else Line(ground=line.ground).join(line).pad(column + 1)
    made = Line(ground=line.ground)
    for text, own in line.spans:
        at = column - made.width
        if 0 <= at < len(text):
            made.add(text[:at], own).add(character, role).add(text[at + 1 :], own)
        else:
            made.add(text, own)
    return made


@lru_cache(maxsize=4096)  # from one picture to the next most texts are the same
def cells_of(text: str) -> int:
    """How many cells a text takes; of most texts a character takes one."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def plain(text: str) -> str:
    """Untrusted text as harmless characters of a known width."""
    return literal(text).translate(SELECTORS)


def first_sentence(text: str) -> str:
    """Up to its full stop, without it; a number like 0.5 does not end a sentence."""
    return SENTENCE.split(text, maxsplit=1)[0].rstrip(".")


def clip(text: str, width: int) -> str:
    """At most `width` cells, with an ellipsis when something is missing."""
    if cells_of(text) <= width:
        return text
    if width <= 0:
        return ""
    kept, used = [], 0
    for character in text:
        cells = cell_len(character)
        if used + cells > width - 1:
            break
        kept.append(character)
        used += cells
    return "".join(kept) + ELLIPSIS


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Exactly `width` cells."""
    if text.isascii() and text.isprintable() and len(text) <= width:
        return text.rjust(width) if right else text.ljust(width)
    text = clip(text, width)
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space


def middle(text: str, width: int) -> str:
    """At most `width` cells, cut in the middle: of a path both ends say most."""
    if cells_of(text) <= width:
        return text
    if width < 8:
        return clip(text, width)
    head = clip(text, (width - 1) // 2 + 1)[:-1]
    tail = clip(text[::-1], width - cell_len(head))[:-1][::-1]
    return head + ELLIPSIS + tail


def bar(share: float | None, width: int, role: str = "accent") -> Line:
    """A thin bar with a quiet track; half cells make it move in steps of half a column."""
    if share is None or math.isnan(share) or width <= 0:
        return Line("╌" * max(0, width), "faint")
    halves = round(min(1.0, max(0.0, share)) * width * 2)
    if share > 0 and halves == 0:
        halves = 1
    full, half = divmod(halves, 2)
    line = Line("━" * full, role)
    if half:
        line.add("╸", role)
    return line.add("─" * (width - full - half), "faint")


def sparks(values: list[float | None], width: int, top: float = 100.0) -> str:
    """The newest `width` values, the newest at the right; a gap where one is not known."""
    newest = values[-width:] if width > 0 else []
    drawn = "".join(_spark(value, top) for value in newest)
    return " " * (width - len(newest)) + drawn


def _spark(value: float | None, top: float) -> str:
    if value is None or math.isnan(value):
        return " "
    share = min(1.0, max(0.0, value / top)) if top > 0 else 0.0
    return SPARKS[round(share * (len(SPARKS) - 1))]


class Part(NamedTuple):
    """A piece of a line. Where there is no room the least important go first."""

    importance: int
    line: Line
    least: int = 0  # cells that it needs at least, when `line` is made once the room is known

    @property
    def width(self) -> int:
        return self.least or self.line.width


def needed(parts: list[Part], gap: int) -> int:
    return sum(part.width + gap for part in parts if part.width) - gap


def most_important(parts: list[Part], width: int, gap: int) -> list[Part]:
    """The parts that fit, in their order, each whole."""
    kept = [part for part in parts if part.width]
    while len(kept) > 1 and needed(kept, gap) > width:
        kept.remove(min(kept, key=lambda part: part.importance))
    return kept


def joined(parts: list[Part], width: int, between: str = "  ") -> Line:
    """As many parts as fit, in one line."""
    line = Line()
    for part in most_important(parts, width, len(between)):
        line.add(between if line.width else "", "quiet").join(part.line)
    return line.cut(width)


def flowing(parts: list[Line], width: int, between: str = " · ") -> list[Line]:
    """The parts one after the other, in as many lines as they need."""
    lines = [Line()]
    for part in parts:
        gap = len(between) if lines[-1].width else 0
        if gap and lines[-1].width + gap + part.width > width:
            lines.append(Line())
        elif gap:
            lines[-1].add(between, "quiet")
        lines[-1].join(part)
    return [line.cut(width) for line in lines]


def folded(text: str, width: int, role: str = "text", lead: Line | None = None) -> list[Line]:
    """A sentence in lines of at most `width` cells, broken between words; the first begins with
    `lead`, the others are indented alike. A word longer than a line is cut."""
    indent = lead.width if lead else 0
    rows: list[str] = [""]
    for word in text.split(" "):
        if rows[-1] and cell_len(rows[-1]) + 1 + cell_len(word) > width - indent:
            rows.append("")
        rows[-1] += f" {word}" if rows[-1] else word
    lines = [Line(" " * indent).add(clip(row, max(1, width - indent)), role) for row in rows]
    if lead:
        lines[0] = Line().join(lead).add(clip(rows[0], max(1, width - indent)), role)
    return [line.cut(width) for line in lines]


def centred(sentence: str, width: int, height: int) -> list[Line]:
    """A quiet sentence in the middle of an empty panel."""
    text = clip(sentence, width)
    lines = [Line() for _ in range(max(0, (height - 1) // 2))]
    lines.append(Line(" " * ((width - cell_len(text)) // 2) + text, "quiet"))
    return lines[:height]
