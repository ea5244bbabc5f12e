"""Where a replay stands: that it is one, how fast it plays, which moment is on the screen, and
how much of the whole that is."""

from __future__ import annotations

import time

from bitwatch.attach.playing import Place
from bitwatch.text import counted
from bitwatch.tui.draw import Line, Part, bar, most_important, needed
from bitwatch.tui.widgets.painted import Painted

GAP = 3
BAR_MIN, BAR_MAX = 8, 40
WIDE = 100  # cells from which on the day and the month are written out


class Timeline(Painted):
    DEFAULT_CSS = "Timeline { height: 1; }"
    default_id = "timeline"

    place: Place | None = None
    _begins = ""  # the key that plays it again, while there is one that does

    def name_key(self, begins: str) -> None:
        if begins != self._begins:
            self._begins = begins
            self.repaint()

    def draw(self, width: int, height: int) -> list[Line]:
        place = self.place
        if place is None:
            return [Line()]
        parts = _parts(place, self._begins, wide=width >= WIDE)
        room = width - 1
        kept = most_important(parts, room, GAP)
        spare = room - needed(kept, GAP)
        line = Line()
        for at, part in enumerate(kept):
            line.add(" " * GAP if at else "")
            if part.least:
                line.join(bar(place.share, min(BAR_MAX, BAR_MIN + spare)))
            else:
                line.join(part.line)
        return [line]


def _parts(place: Place, begins: str, *, wide: bool) -> list[Part]:
    mark = Line(" ")
    if place.over:
        mark.add("■ REPLAY ", "strong accent")
    elif place.paused:
        mark.add("‖ REPLAY ", "strong warning").add("paused ", "warning")
    else:
        mark.add("▶ REPLAY ", "strong accent")
    mark.add(f"{speed(place.speed)}x", "text")
    parts = [
        Part(10, mark),
        Part(9, Line(moment(place.at, wide=wide), "strong text")),
        Part(3, Line(), least=BAR_MIN),
        Part(7, Line(f"{100 * place.share:.0f}").add(" %", "quiet")),
    ]
    if place.reading is not None:
        parts.append(Part(8, Line(f"reading … {100 * place.reading:.0f} %", "warning")))
    elif place.said:
        parts.append(Part(8, Line(place.said, "warning")))
    elif place.over:
        words = Line("it is over", "quiet")
        if begins:
            words.add("; ", "quiet").add(begins, "strong accent").add(" plays it again", "quiet")
        parts.append(Part(6, words))
    if place.skipped:
        lines = counted(place.skipped, "line")
        parts.append(Part(2, Line(f"{lines} of its files not understood", "warning")))
    return parts


def speed(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.3g}"


def moment(t: float, *, wide: bool) -> str:
    """Tuesday 14 November 2023, 22:13:20; or shorter."""
    day = "%A %-d %B %Y" if wide else "%-d %b %Y"
    return time.strftime(f"{day}, %H:%M:%S", time.localtime(t))
