"""One row of a log as lines of the screen: coloured by its level, its time quiet, found words
marked, wrapped or cut. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from bitwatch.attach.log_levels import level, stamp
from bitwatch.tui.draw import SELECTORS, Line

ROLES = {"bad": "bad", "warning": "warning", "quiet": "quiet", "": "text"}
FOUND, FOUND_HERE = "reverse quiet", "reverse accent"
COLOURS = 6  # of sources: see `source_colours`
NAME_CELLS = 16  # of a source's name


def wrapped(text: str, width: int) -> list[tuple[int, int]]:
    """From which character to which one each line goes."""
    if text.isascii():
        return [(at, min(at + width, len(text))) for at in range(0, max(1, len(text)), width)]
    lines, begin, used = [], 0, 0
    for at, character in enumerate(text):
        cells = cell_len(character)
        if used + cells > width and at > begin:
            lines.append((begin, at))
            begin, used = at, 0
        used += cells
    return [*lines, (begin, len(text))]


def fit_for_cells(text: str) -> str:
    return text if text.isascii() else text.translate(SELECTORS)


def lines_of(
    text: str,
    width: int,
    *,
    lead: Line,
    left: int | None,
    marks: Sequence[tuple[int, int]],
    is_hit: bool,
) -> list[Line]:
    """With `left` None the whole row in as many lines as it needs, else one line that begins with
    that character. `lead` stands before the first."""
    room = max(1, width - lead.width)
    runs = _runs(text, marks, FOUND_HERE if is_hit else FOUND)
    parts = wrapped(text, room) if left is None else [(left, left + room + 1)]
    ground = "cursor-ground" if is_hit else ""
    lines = []
    for number, (begin, end) in enumerate(parts):
        line = (
            Line(ground=ground).join(lead) if not number else Line(" " * lead.width, ground=ground)
        )
        for first, last, role in runs:
            if last > begin and first < end:
                line.add(text[max(first, begin) : min(last, end)], role)
        lines.append(line.cut(width))
    return lines


def _runs(text: str, marks: Sequence[tuple[int, int]], found: str) -> list[tuple[int, int, str]]:
    """(from, to, role) over the whole of a row."""
    base = ROLES[level(text)]
    runs: list[tuple[int, int, str]] = []
    at = 0
    begin, end = stamp(text)
    quiet = [(begin, end, "quiet")] if end else []
    for first, last, role in sorted([*quiet, *((a, b, found) for a, b in marks)]):
        if last <= at:
            continue
        if first > at:
            runs.append((at, first, base))
        runs.append((max(first, at), last, role))
        at = last
    if at < len(text):
        runs.append((at, len(text), base))
    return runs


def bar(
    names: Sequence[tuple[str, str]], chosen: int, width: int
) -> tuple[Line, list[tuple[int, int, int]]]:
    """The sources with their sizes, and from which column to which one each stands. Where there
    is no room for all, those around the chosen one."""
    sized = sum(len(name) + len(size) + 3 for name, size in names) + 1 <= width
    first = 0
    while first < chosen and _cells(names[first : chosen + 1], sized) > width - 4:
        first += 1
    line = Line("‹ " if first else " ", "quiet")
    places = []
    for number, (name, size) in enumerate(names):
        if number < first:
            continue
        shown = Line(name, "strong accent" if number == chosen else "quiet")
        if sized or number == chosen:
            shown.add(f" {size}", "quiet")
        if number > first and line.width + shown.width + 2 > width:
            line = line.cut(width - 2).pad(width - 1).add("›", "quiet")
            break
        places.append((line.width, line.width + shown.width, number))
        line.join(shown).add("  ")
    return line.cut(width), places


def _cells(names: Sequence[tuple[str, str]], sized: bool) -> int:
    last = len(names) - 1
    return sum(
        len(name) + 2 + (len(size) + 1 if sized or at == last else 0)
        for at, (name, size) in enumerate(names)
    )
