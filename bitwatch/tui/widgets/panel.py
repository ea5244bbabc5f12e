"""A numbered panel: a quiet frame, a title, a caption of values and the source below.

The frame is drawn here and not by the stylesheet, so that a panel of one line becomes its
summary by itself, and a frame never costs more than two lines.
"""

from __future__ import annotations

from bitwatch.tui import keys
from bitwatch.tui.draw import Line, Part, joined
from bitwatch.tui.kept import Value
from bitwatch.tui.widgets.painted import Painted

FRAME_HEIGHT = 3  # a frame needs a line inside
FRAME_WIDTH = 12
EMPTY = Line()
LEAST_WORDS = 8  # cells in a border; in less there is nothing to say


class Panel(Painted, can_focus=True):
    """Subclasses give `lines` for the inside, and `summary` for a single line."""

    DEFAULT_CSS = "Panel { height: 1fr; width: 1fr; }"

    title = ""
    keeps: tuple[str, ...] = ()  # attributes that the next attach begins with

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._frames: dict[int, tuple[Line, int, str, Line]] = {}  # by line: of what it is

    def kept(self) -> dict[str, Value]:
        return {name: getattr(self, name) for name in self.keeps}

    def restore(self, kept: dict[str, Value]) -> None:
        """What is of another kind than it should be is left as it is."""
        for name in self.keeps:
            if type(kept.get(name)) is type(getattr(self, name)):
                setattr(self, name, kept[name])

    @property
    def number(self) -> str:
        """The key that goes there."""
        return keys.get(str(self.id)).name if self.id in keys.PANELS else ""

    def lines(self, width: int, height: int) -> list[Line]:
        raise NotImplementedError

    def summary(self, width: int) -> Line:
        """Everything that matters in one line, without number and title."""
        raise NotImplementedError

    def caption(self) -> list[Part]:
        """Values worth reading first, at the right of the title."""
        return []

    def subtitle(self) -> list[Part]:
        """Where it comes from, at the right of the lower border."""
        return []

    def crowded(self, height: int) -> bool:
        """Whether the lines of the frame are better used for what it would frame."""
        return False

    def draw(self, width: int, height: int) -> list[Line]:
        if height == 1 or width < FRAME_WIDTH:
            return [self._one_line(width)]
        if height < FRAME_HEIGHT or self.crowded(height):
            return [Line(" ").join(line) for line in self.lines(width - 2, height)]
        border = "accent" if self.has_focus else "faint"
        inside = self.lines(width - 4, height - 2)
        top = Line("╭─ ", border).add(f"{self.number} ", "quiet")
        top.add(self.title, "strong accent" if self.has_focus else "strong text")
        framed = [_edge(top, self.caption(), "  ", "╮", width, border)]
        for y in range(height - 2):
            line = inside[y].cut(width - 4) if y < len(inside) else EMPTY
            framed.append(self._framed(y, line, width, border))
        framed.append(_edge(Line("╰", border), self.subtitle(), " · ", "╯", width, border))
        return framed

    def _framed(self, y: int, line: Line, width: int, border: str) -> Line:
        """What draws a panel hands over the same lines again where nothing has changed."""
        kept = self._frames.get(y)
        if kept is None or kept[0] is not line or kept[1:3] != (width, border):
            kept = self._frames[y] = line, width, border, _between(line, width, border)
        return kept[3]

    def _one_line(self, width: int) -> Line:
        role = "strong accent" if self.has_focus else "strong text"
        head = Line(f" {self.number} ", "quiet").add(self.title, role).add("  ")
        return head.join(self.summary(max(1, width - head.width - 1))).cut(width)


def _edge(
    left: Line, right: list[Part], between: str, corner: str, width: int, border: str
) -> Line:
    """A border with text at its left and, where there is room, at its right."""
    left.add(" ", border) if left.width > 1 else left
    room = width - left.width - 4
    words = joined(right, room, between) if room >= LEAST_WORDS else Line()
    if words.width:
        left.add("─" * (room - words.width), border)
        return left.add(" ").join(words).add(" ").add(f"─{corner}", border)
    left = left.cut(width - 2)
    return left.add("─" * (width - left.width - 1) + corner, border)


def _between(line: Line, width: int, border: str) -> Line:
    """A line inside the frame. Its ground covers the inside, never the border."""
    if line.ground:
        role = f"@{line.ground}"
        inner = [(" ", role), *((t, f"{role} {r}") for t, r in line.spans)]
        inner.append((" " * (width - 3 - line.width), role))
    else:
        inner = [(" ", "text"), *line.spans, (" " * (width - 3 - line.width), "text")]
    framed = Line("│", border)
    framed.spans += [span for span in inner if span[0]]
    framed.width = width - 1
    return framed.add("│", border)
