"""A data plan and a better one beside each other, and what going from one to the other takes.

One above the other where there is no room for both. Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bitwatch.text import duration, size
from bitwatch.tui import reader_map
from bitwatch.tui.draw import Line, flowing, folded

BOTH = 92  # cells that two plans beside each other need
MOST = 150  # more would only tear them apart
BETWEEN = "  │  "
LABEL = 9  # cells of the word before a sentence
RESUME = {
    "exact": "exact: it goes on at the very place in the text",
    "new-epoch": "new epoch: model, optimiser and step go on; the order of the text begins anew, "
    "and some text is seen again",
    "refused": "no: a run that is under way cannot take this",
}


class Side(NamedTuple):
    """A plan under its title; `below` gives, for a width, what is said of it."""

    title: Callable[[int], list[Line]]
    data: dict[str, Any]
    below: Callable[[int], list[Line]]


def lines(old: Side, new: Side, width: int, height: int) -> list[Line]:
    """`height` bounds the maps."""
    width = min(width, MOST)
    if width < BOTH:
        return [
            *_joined(*_parts(old, width, height)),
            Line(),
            *_joined(*_parts(new, width, height)),
        ]
    half = (width - len(BETWEEN)) // 2
    found: list[Line] = []
    pairs = zip(_parts(old, half, height), _parts(new, half, height), strict=True)
    for at, (left, right) in enumerate(pairs):
        if at:
            found.append(_beside(Line(), Line(), half))
        rows = itertools.zip_longest(left, right)
        found += [_beside(a or Line(), b or Line(), half) for a, b in rows]
    return found


def _parts(side: Side, width: int, height: int) -> tuple[list[Line], list[Line], list[Line]]:
    """Head, map and what is below; beside each other they begin at the same line."""
    head = [*side.title(width), *reader_map.head(side.data, width)]
    return head, reader_map.lines(side.data, width, height), side.below(width)


def _joined(*parts: list[Line]) -> list[Line]:
    found: list[Line] = []
    for part in parts:
        found += [Line(), *part] if found and part else part
    return found


def _beside(left: Line, right: Line, half: int) -> Line:
    return Line().join(left.cut(half)).pad(half).add(BETWEEN, "faint").join(right.cut(half))


# ---------------------------------------------------------------------------------------
# Words


def heading(words: str, mode: str) -> Callable[[int], list[Line]]:
    line = Line(words, "quiet").add(f" {mode}" if mode else "", "strong text")
    return lambda width: [line.cut(width)]


def choice(words: str, names: Sequence[str], chosen: int) -> Callable[[int], list[Line]]:
    """The names of what can be taken, the chosen one reversed and pointed at."""
    parts = [Line(words, "quiet")]
    for at, name in enumerate(names):
        taken = at == chosen and len(names) > 1
        role = "reverse strong accent" if taken else "strong text" if at == chosen else "quiet"
        parts.append(Line(f"{'▸' if taken else ' '}{name} ", role))
    return lambda width: flowing(parts, width, " ")


def said(label: str, text: str, width: int, role: str = "text") -> list[Line]:
    """A sentence behind a quiet word."""
    return folded(text, width, role, Line(label.ljust(LABEL), "quiet"))


def cost(prepare_bytes: int, prepare_s: float) -> str:
    """What is done before the ranks start."""
    if not prepare_bytes and not prepare_s:
        return "nothing needs to be prepared"
    takes = f"in about {duration(prepare_s)}"
    if not prepare_bytes:
        return f"the text is prepared {takes}"
    return f"{size(prepare_bytes)} are written {takes}"
