"""A canvas of braille dots, two across and four down in every cell. Pure.

A cell has one colour: what is drawn with a higher `layer` gives it. Marks of a whole
character stand over the dots.
"""

from __future__ import annotations

from bitwatch.tui.draw import Line

# Dots of a braille character from the top, for the left and the right column.
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
# The dots from row a to row b (both included) of a cell, by column.
SPANS = tuple(
    tuple(tuple(sum(DOTS[x][a : b + 1]) for b in range(4)) for a in range(4)) for x in (0, 1)
)
CELLS = [chr(0x2800 + dots) for dots in range(256)]


class Canvas:
    """`width` x `height` cells; dots count from the top left."""

    def __init__(self, width: int, height: int, roles: tuple[str, ...]) -> None:
        """`roles` by layer: layer 0 is nothing drawn yet."""
        self.width, self.height = width, height
        self._roles = roles
        self._dots = [[0] * width for _ in range(height)]
        self._layers = [[0] * width for _ in range(height)]
        self._marks: list[dict[int, tuple[str, str]]] = [{} for _ in range(height)]

    def vertical(self, x: int, top: int, bottom: int, layer: int) -> None:
        """Dots of column `x` from `top` to `bottom`, both included; outside is cut off."""
        top = top if top > 0 else 0
        bottom = bottom if bottom < self.height * 4 else self.height * 4 - 1
        if top > bottom or not 0 <= x < self.width * 2:
            return
        column, side = x >> 1, x & 1
        spans, dots, layers = SPANS[side], self._dots, self._layers
        first_row, last_row = top >> 2, bottom >> 2
        for row in range(first_row, last_row + 1):
            first = top & 3 if row == first_row else 0
            last = bottom & 3 if row == last_row else 3
            dots[row][column] |= spans[first][last]
            layers[row][column] = max(layers[row][column], layer)

    def level(self, row: int, character: str, role: str) -> None:
        """A character in all cells of a row where nothing else is."""
        marks = self._marks[row]
        for column, dots in enumerate(self._dots[row]):
            if not dots and column not in marks:
                marks[column] = (character, role)

    def mark(self, column: int, row: int, character: str, role: str, *, over: bool = True) -> None:
        """A character in a cell; with `over` false only where nothing else is."""
        if not (0 <= column < self.width and 0 <= row < self.height):
            return
        marks = self._marks[row]
        if over or (column not in marks and not self._dots[row][column]):
            marks[column] = (character, role)

    def text(self, column: int, row: int, words: str, role: str) -> None:
        for at, character in enumerate(words):
            self.mark(column + at, row, character, role)

    def is_free(self, column: int, row: int, width: int) -> bool:
        """Whether a text of this width would cover nothing."""
        inside = column >= 0 and column + width <= self.width and 0 <= row < self.height
        return inside and not any(
            self._dots[row][x] or x in self._marks[row] for x in range(column, column + width)
        )

    def end_of_run(self, row: int) -> int:
        """The column after the first dots of a row, as far as they go on."""
        inked = [x for x in range(self.width) if self._dots[row][x]]
        last = inked[0] if inked else -1
        while last + 1 in inked:
            last += 1
        return last + 1

    def line(self, row: int) -> Line:
        """A row of cells. Every character of a canvas is one cell wide."""
        line = Line()
        roles, marks = self._roles, self._marks[row]
        run: list[str] = []
        run_role = "text"
        for column, (dots, layer) in enumerate(
            zip(self._dots[row], self._layers[row], strict=True)
        ):
            if column in marks:
                character, role = marks[column]
            elif dots:
                character, role = CELLS[dots], roles[layer]
            else:
                character, role = " ", run_role
            if role != run_role:
                if run:
                    line.spans.append(("".join(run), run_role))
                    run = []
                run_role = role
            run.append(character)
        line.spans.append(("".join(run), run_role))
        line.width = self.width
        return line
