"""The runs that are drawn beside the one on the screen: at most three, each with a letter and
a colour that stay its own for as long as it is there."""

from __future__ import annotations

import re

from bitwatch.attach.beside import Beside
from bitwatch.tui import across
from bitwatch.tui.draw import Line, clip, plain
from bitwatch.tui.drawing import OTHERS, Other
from bitwatch.tui.tracks import Kind, tracks

LETTERS = "ABC"
NAME_WIDTH = 24
DATE = re.compile(r"^\d{4}-\d\d-\d\d-")  # of an id; what follows tells runs apart


class Companions:
    def __init__(self) -> None:
        self._runs: dict[str, tuple[int, Beside | None]] = {}  # by run id: its place, its curves

    @property
    def runs(self) -> list[str]:
        return list(self._runs)

    @property
    def is_full(self) -> bool:
        return len(self._runs) >= len(OTHERS)

    def add(self, run: str) -> None:
        taken = {place for place, _ in self._runs.values()}
        place = next(place for place in range(len(OTHERS)) if place not in taken)
        self._runs[run] = (place, None)

    def remove(self, run: str) -> None:
        self._runs.pop(run, None)

    def take(self, seen: Beside) -> str:
        """Newer curves of one of them; what is to be said about it that was not said before."""
        if seen.run not in self._runs:
            return ""
        place, before = self._runs[seen.run]
        self._runs[seen.run] = (place, seen)
        news = seen.text and seen.text != (before.text if before else "")
        return f"compared run {plain(seen.run)}: {plain(seen.text)}" if news else ""

    def beside(self, kind: Kind, axis: str) -> list[Other]:
        """Those with a value of this curve, and a place on this axis."""
        found = []
        for run, (place, seen) in self._runs.items():
            drawn = tracks(seen.view, kind) if seen else []
            if drawn and across.is_known(drawn, axis):
                found.append(Other(place, LETTERS[place], run, drawn))
        return found

    def legend(self) -> list[Line]:
        lines = []
        for run, (place, seen) in self._runs.items():
            line = Line(f"{LETTERS[place]} ", f"strong {OTHERS[place]}")
            line.add(clip(DATE.sub("", plain(run)), NAME_WIDTH), OTHERS[place])
            if seen is None or seen.filled < 1:
                share = f" {100 * seen.filled:.0f} %" if seen else ""
                line.add(f" reading{share}", "quiet")
            elif seen.text:
                line.add(" not readable now", "bad")
            lines.append(line)
        return lines
