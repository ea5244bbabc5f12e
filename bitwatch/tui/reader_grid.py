"""Who reads what, as a grid: a mark for every reader (a rank's worker), ranks under each other.

Every state has a shape besides its colour. The marks shrink with the room: with words, then
alone, then several ranks a line, and at last one mark a rank, which shows its worst reader.
Draws what is (the panel) and what a plan would do. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bitwatch.record.readers import NEVER
from bitwatch.tui.draw import Line, clip, fit, plain

SHAPES = {
    "reading": ("●", "fine"),
    "waiting": ("◉", "fine"),
    "retrying": ("↻", "warning"),
    "idle": ("○", "warning"),
    "starting": ("◌", "accent"),
    "done": ("✓", "quiet"),
    "stuck": ("▲", "bad"),
    "failed": ("✗", "bad"),
    "dead": ("✗", "bad"),
    "stopped": ("■", "quiet"),
    NEVER: ("·", "quiet"),
}
SEVERITY = (
    *("failed", "dead", "stuck", "retrying", "idle", "starting"),
    *(NEVER, "stopped", "reading", "waiting", "done"),
)
LABEL_MIN, LABEL_MAX = 4, 14  # cells of the words beside a mark
BRIEF = 6  # cells of words that are short enough to stand for longer ones
GAP = 2  # cells between the words of one reader and the mark of the next


class Cell(NamedTuple):
    """A reader. `words` stand beside its mark where there is room, `brief` where there is less."""

    state: str
    words: str = ""
    role: str = "quiet"  # of the words
    brief: str = ""


Grid = dict[int, list[Cell]]


class Gauge(NamedTuple):
    """A column of numbers at the right, one for each rank, `width` cells wide."""

    heading: str
    width: int
    of: Callable[[int], Line]


def table(grid: Grid, width: int, height: int, gauges: list[Gauge], *, headed: bool) -> list[Line]:
    """A line a rank, or nothing when that does not fit. `headed`: with the workers' numbers above,
    if there is room. Of the gauges the first goes first."""
    count = max(len(row) for row in grid.values())
    name = len(f"rank {max(grid)}") + 2
    headed = headed and height > len(grid)
    if not headed:
        gauges = [_named(gauge) for gauge in gauges[-1:]]
    gauges, label, brief = _columns(grid, width - name, count, gauges)
    cell = label + 2 + GAP if label else 2
    if len(grid) > height or name + count * cell - (GAP if label else 1) > width:
        return []
    lines = [_heading(count, name, cell, gauges)] if headed else []
    for rank, row in grid.items():
        line = Line("rank ", "quiet").add(str(rank), "text").pad(name)
        for reader in row:
            begins = line.width
            line.add(*SHAPES[reader.state])
            if label:
                words = reader.brief if brief else reader.words
                line.add(f" {clip(words, label)}", reader.role)
            line.pad(begins + cell)
        for gauge in gauges:
            line.join(gauge.of(rank))
        lines.append(line)
    return lines


def _named(gauge: Gauge) -> Gauge:
    """With its heading in every line, where no line is left for headings."""
    name = f" {gauge.heading}"
    width = gauge.width + len(name)
    return Gauge("", width, lambda rank: Line(name, "quiet").join(gauge.of(rank)))


def _columns(
    grid: Grid, room: int, count: int, gauges: list[Gauge]
) -> tuple[list[Gauge], int, bool]:
    """The gauges that fit, the cells for words beside each mark, and whether those are brief.
    Words say more than a gauge, a mark alone less."""
    longest, shortest = _longest(grid, brief=False), _longest(grid, brief=True)
    for at in range(len(gauges) + 1):
        left = room - sum(gauge.width for gauge in gauges[at:])
        for label, brief in ((longest, False), (shortest, True)):
            gap = 0 if gauges[at:] else GAP  # after the last
            if label and count * (label + 2 + GAP) - gap <= left:
                return gauges[at:], label, brief
    for at in range(len(gauges) + 1):
        if count * 2 <= room - sum(gauge.width for gauge in gauges[at:]):
            return gauges[at:], 0, False
    return [], 0, False


def _longest(grid: Grid, *, brief: bool) -> int:
    """Cells for the words; 0 where nobody has any."""
    longest = max(
        Line(reader.brief if brief else reader.words).width
        for row in grid.values()
        for reader in row
    )
    return min(LABEL_MAX, max(LABEL_MIN, longest)) if longest else 0


def _heading(count: int, name: int, cell: int, gauges: list[Gauge]) -> Line:
    line = Line(" " * name)
    for worker in range(count):
        words = f"w{worker}" if cell > 2 else str(worker)
        line.add(fit(words if len(words) < cell else "", cell), "quiet")
    for gauge in gauges:
        line.add(fit(gauge.heading, gauge.width, right=True), "quiet")
    return line


def dense(grid: Grid, width: int, height: int) -> list[Line]:
    """Several ranks a line, a mark a reader; nothing when that does not fit."""
    count = max(len(row) for row in grid.values())
    name = len(str(max(grid))) + 1
    block = name + count
    a_line = (width + 3) // (block + 3)
    if a_line < 1 or -(-len(grid) // a_line) > height:
        return []
    lines: list[Line] = []
    for at, (rank, row) in enumerate(grid.items()):
        if at % a_line == 0:
            lines.append(Line())
        else:
            lines[-1].add("   ")
        lines[-1].add(fit(str(rank), name - 1, right=True), "quiet").add(" ")
        for reader in row:
            lines[-1].add(*SHAPES[reader.state])
    return lines


def by_rank(grid: Grid, width: int, height: int) -> list[Line]:
    """A mark a rank: its worst reader. The last line says so, or how many ranks have no mark of
    their own."""
    name = 2 * len(str(max(grid))) + 2
    a_line = max(1, (width - name) // 8 * 8 if width - name >= 8 else width - name)
    ranks = list(grid)
    lines = []
    fits = len(ranks) <= (height - 1) * a_line
    for start in range(0, len(ranks) if fits else max(0, height - 1) * a_line, a_line):
        some = ranks[start : start + a_line]
        line = Line(fit(f"{some[0]}–{some[-1]}", name - 1, right=True), "quiet").add(" ")
        for rank in some:
            line.add(*SHAPES[worst(reader.state for reader in grid[rank])])
        lines.append(line)
    last = Line("a mark a rank: its worst reader", "quiet")
    if not fits:
        rest = ranks[max(0, height - 1) * a_line :]
        hidden = worst(reader.state for rank in rest for reader in grid[rank])
        last = Line(*SHAPES[hidden]).add(
            f" the worst of {len(rest):,}{' more' if lines else ''} ranks", "quiet"
        )
    return [*lines, last.cut(width)][: max(0, height)]


def drawn(
    grid: Grid, width: int, height: int, gauges: list[Gauge], *, headed: bool = True
) -> list[Line]:
    """The grid in the largest form that fits: never more than `height` lines."""
    return (
        table(grid, width, height, gauges, headed=headed)
        or dense(grid, width, height)
        or by_rank(grid, width, height)
    )


def worst(states: Iterable[str]) -> str:
    return min(states, key=SEVERITY.index)


def cell(state: str, shards: list[Any], role: str) -> Cell:
    """A reader with what stands beside its mark: the shards of who reads, else the state."""
    if shards:
        words = shard_words(shards)
        return Cell(state, words, role, words if len(words) <= BRIEF else "")
    return Cell(state, state, "quiet", state if len(state) <= BRIEF else "")


def shard_words(shards: list[Any]) -> str:
    """s0 · s0-s3 · s0 +2 · [0:12], of the row groups of a file"""
    names = [shard_name(shards[0])]
    if len(shards) == 1:
        return names[0]
    first, last = shards[0], shards[-1]
    if isinstance(first, int) and shards == list(range(first, first + len(shards))):
        return f"s{first}-{last}"
    return f"{names[0]} +{len(shards) - 1}"


def shard_name(shard: Any) -> str:
    """Of train-0.parquet[0:12] the end: the names of files begin alike."""
    if isinstance(shard, int):
        return f"s{shard}"
    name = str(shard)
    at = name.rfind("[")
    return plain(name[at:] if at > 0 and name.endswith("]") else name)
