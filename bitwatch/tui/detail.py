"""Full detail where a chart shows less than the record has kept of it. Pure.

Says which stretch of which attempt has too few buckets in sight, and puts what was read of it
in the place of the coarse curve.
"""

from __future__ import annotations

import bisect
from typing import NamedTuple

from bitwatch.record.stretch import Stretch
from bitwatch.record.view import View
from bitwatch.tui import across
from bitwatch.tui.across import Track, Window
from bitwatch.tui.tracks import Kind

FEW = 60  # buckets in sight; fewer, of many steps each, are a reason to look closer
AROUND = 0.5  # of the window that is read at either side too: it will be panned


class Wanted(NamedTuple):
    """A stretch of an attempt: the steps that are in sight, both included."""

    attempt: int
    first: int
    last: int

    @property
    def around(self) -> Wanted:
        """The same, with something at either side."""
        more = int((self.last - self.first) * AROUND) + 1
        return Wanted(self.attempt, max(0, self.first - more), self.last + more)


def wanted(tracks: list[Track], axis: str, window: Window) -> list[Wanted]:
    """Where the curves that the record keeps are too coarse."""
    found = []
    for track in tracks:
        series = track.series
        last = series.last[0] if series.last else 0
        ends = across.position(track, axis, last)
        begin, end = across.bounds(track, axis, series.starts, [window.first, window.end])
        begin = max(0, begin - 1)  # of which a part may be in sight
        if series.width == 1 or ends is None or ends < window.first or not 0 < end - begin < FEW:
            continue
        upto = min(last, series.starts[end - 1] + series.width - 1)
        found.append(Wanted(track.attempt, series.starts[begin], upto))
    return found


def grain(tracks: list[Track], axis: str, window: Window) -> str:
    """`each point is 512 steps`, where only a few of such are in sight."""
    coarse = {need.attempt for need in wanted(tracks, axis, window)}
    widths = [track.series.width for track in tracks if track.attempt in coarse]
    return f"each point is {widths[-1]:,} steps" if widths else ""


class Detail:
    """What has been read again, by attempt."""

    def __init__(self) -> None:
        self._read: dict[int, Stretch] = {}
        self._asked: dict[int, Wanted] = {}

    def take(self, stretch: Stretch) -> None:
        self._read[stretch.attempt] = stretch

    def failed(self, need: Wanted) -> None:
        """It could not be read: when the curve is drawn next, it is asked for again."""
        if self._asked.get(need.attempt) == need:
            del self._asked[need.attempt]

    def missing(self, needs: list[Wanted]) -> list[Wanted]:
        """Those of what is wanted that nobody has asked for yet."""
        found = []
        for need in needs:
            asked = self._asked.get(need.attempt)
            if asked is None or not (asked.first <= need.first and need.last <= asked.last):
                found.append(need.around)
                self._asked[need.attempt] = need.around
        return found

    def follow(self, view: View) -> None:
        """What has come since. With a hole before it all must be read again."""
        stretch = self._read.get(view.attempt)
        if stretch is None or not view.recent:
            return
        if view.recent[0].step > stretch.told + 1 and view.recent[0].step <= stretch.last:
            self._asked.pop(view.attempt, None)
        else:
            stretch.add(view.recent)

    def instead(self, tracks: list[Track], kind: Kind, needs: list[Wanted]) -> list[Track]:
        """The tracks, with full detail where it is needed and has been read."""
        by_attempt = {need.attempt: need for need in needs}
        return [self._track(track, kind, by_attempt.get(track.attempt)) for track in tracks]

    def _track(self, track: Track, kind: Kind, need: Wanted | None) -> Track:
        stretch = self._read.get(track.attempt)
        if need is None or stretch is None or kind.id not in stretch.curves:
            return track
        if not stretch.first <= need.first <= need.last <= stretch.last:
            return track
        found = stretch.curves
        starts = found[kind.id].starts
        at = bisect.bisect_left(starts, need.first)
        if at == len(starts) or starts[at] >= need.first + track.series.width:
            return track  # this part of the curve is from another file
        return track._replace(
            series=found[kind.id], tokens=found.get("tokens"), time=found.get("t")
        )
