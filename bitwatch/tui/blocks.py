"""Blocks of facts with graphs beside them, one under the other, as the size allows. Pure.

A block is a head, lines of facts in two groups, and graphs of what was before. Where there is
width the graphs stand beside the facts, and where height lacks the groups beside each other; on
a narrow screen the graphs are a line of the head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bitwatch.tui.draw import Line, fit, flowing
from bitwatch.tui.gpu_graph import Values, area

WIDE, MEDIUM = 180, 108  # cells from which on groups, and graphs, can stand side by side
FACTS_WIDTH = 78  # beside the graphs, which get what is left
FIRST_WIDTH, SECOND_WIDTH = 68, 70  # of the groups beside each other
GAP = 3
LABEL = 10  # cells of the name of a line
SCALE = 9  # of the labels of a graph
LEAST_BAR = 8
MOST_ROWS = 14  # of a block: graphs do not get better beyond it
BETWEEN = "  "
SHORT_GRAPH = 12  # cells of a graph in the head


class Graph(NamedTuple):
    """`values` gives so many dots, of which `top` is the highest that fits."""

    name: str
    scale: str
    values: Callable[[int], Values]
    top: float
    role: str
    mark: float | None = None


class Fact(NamedTuple):
    """A named line. `bar` takes what the parts leave of the width."""

    label: str
    parts: list[Line]
    bar: Callable[[int], Line] | None = None


class Block(NamedTuple):
    head: Line
    left: list[Fact]
    right: list[Fact]
    graphs: list[Graph]


class Drawn(NamedTuple):
    """`starts`: the lines at which blocks begin."""

    lines: list[Line]
    starts: list[int]


def drawn(blocks: list[Block], width: int, height: int) -> Drawn:
    """All of them, however many lines that takes; graphs grow to fill the height."""
    beside = False
    texts = [_text(block, width, beside) for block in blocks]
    if width >= WIDE and sum(len(text) for text in texts) + len(blocks) - 1 > height:
        beside = True
        texts = [_text(block, width, beside) for block in blocks]
    needed = sum(len(text) for text in texts)
    between = 1 if needed + len(blocks) - 1 <= height or needed > height else 0
    growing = sum(bool(block.graphs) for block in blocks) if width >= MEDIUM else 0
    spare = max(0, height - needed - between * (len(blocks) - 1)) // max(1, growing)
    lines: list[Line] = []
    starts = []
    for block, text in zip(blocks, texts, strict=True):
        if lines and between:
            lines.append(Line())
        starts.append(len(lines))
        if growing and block.graphs:
            rows = max(len(text), min(len(text) + spare, MOST_ROWS))
            taken = GAP + (FIRST_WIDTH + GAP + SECOND_WIDTH if beside else FACTS_WIDTH)
            lines += _with_graphs(block, text, width, rows, taken)
        else:
            lines += text
    return Drawn(lines, starts)


def _text(block: Block, width: int, beside: bool) -> list[Line]:
    if beside:
        left = _facts(block.left, FIRST_WIDTH)
        for at, line in enumerate(_facts(block.right, SECOND_WIDTH)):
            if at == len(left):
                left.append(Line())
            left[at] = left[at].cut(FIRST_WIDTH).pad(FIRST_WIDTH + GAP).join(line)
        return [block.head, *left]
    if width >= MEDIUM:
        return [block.head, *_facts([*block.left, *block.right], FACTS_WIDTH)]
    head = Line().join(block.head)
    row = Line()
    for graph in block.graphs:
        if head.width + row.width + len(graph.name) + SHORT_GRAPH + 5 > width:
            break
        row.add(f"  {graph.name} ", "quiet")
        row.join(area(graph.values(SHORT_GRAPH * 2), graph.top, SHORT_GRAPH, 1, graph.role)[0])
    if row.width:
        head.pad(width - row.width).join(row)
    return [head.cut(width), *_facts([*block.left, *block.right], width)]


def _facts(facts: list[Fact], width: int) -> list[Line]:
    lines = []
    for fact in facts:
        label = Line(fit(fact.label, LABEL), "quiet")
        taken = sum(part.width + len(BETWEEN) for part in fact.parts)
        room = width - LABEL - taken
        if fact.bar and room >= LEAST_BAR:
            label.join(fact.bar(room)).add(BETWEEN)
        for row in flowing(fact.parts, width - label.width, BETWEEN):
            lines.append(label.join(row))
            label = Line(" " * LABEL)
    return lines


def _with_graphs(block: Block, text: list[Line], width: int, rows: int, taken: int) -> list[Line]:
    """The graphs from column `taken` on: one over the other, or beside each other where a block
    is low."""
    count, room = len(block.graphs), width - taken
    low = rows < 3 * count
    if low:
        cells = (room - GAP * (count - 1)) // count
        drawings = [_labelled(graph, cells, rows) for graph in block.graphs]
    else:
        heights = [rows // count + (at < rows % count) for at in range(count)]
        stacked = zip(block.graphs, heights, strict=True)
        drawings = [[line for graph, high in stacked for line in _labelled(graph, room, high)]]
    lines = []
    for row in range(rows):
        line = text[row] if row < len(text) else Line()
        line = line.cut(taken - GAP).pad(taken)
        for at, drawing in enumerate(drawings):
            line.add(" " * GAP if at else "").join(drawing[row])
        lines.append(line)
    return lines


def _labelled(graph: Graph, width: int, height: int) -> list[Line]:
    """Its name above and the value of its top below that, at the left."""
    cells = width - SCALE
    body = area(graph.values(cells * 2), graph.top, cells, height, graph.role, graph.mark)
    labels = [graph.name, *([graph.scale] if height >= 2 else [])]
    return [
        Line(
            fit(labels[row] if row < len(labels) else "", SCALE - 1, right=True) + " ", "quiet"
        ).join(line)
        for row, line in enumerate(body)
    ]
