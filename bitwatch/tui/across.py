"""What a curve is drawn along: steps, tokens, or the time since its run began. Pure.

A curve is kept by step. Two more series by step, of tokens and of time, turn an axis of steps
into one of them: within an attempt both rise, so the first value of each bucket is where the
bucket stands. Attempts that repeat steps lie over each other along steps, and come one after
the other along time.
"""

from __future__ import annotations

import bisect
import math
from typing import NamedTuple

from bitwatch.record.series import Series
from bitwatch.tui import axes
from bitwatch.tui.curve import cuts, extent

STEP, TOKENS, TIME = "step", "tokens", "time"
ALL = (STEP, TOKENS, TIME)
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
NICE_S = (
    *(1, 2, 5, 10, 20, 30),
    *(minutes * MINUTE_S for minutes in (1, 2, 5, 10, 20, 30)),
    *(hours * HOUR_S for hours in (1, 2, 3, 6, 12)),
)
TICK_WIDTH = 14  # cells that a time and the gap before the next one take: "1 h 20 min"


class Track(NamedTuple):
    """One attempt's part of a curve. `tokens` and `time` (wall-clock seconds) are by step, None
    where they are not known; `began` is when the run began."""

    attempt: int
    series: Series
    tokens: Series | None = None
    time: Series | None = None
    began: float = 0.0


class Window(NamedTuple):
    """What is shown of an axis: from `first` up to, and without, `end`."""

    first: float
    end: float

    @property
    def span(self) -> float:
        return self.end - self.first

    def edges(self, columns: int) -> list[float]:
        return [self.first + at * self.span / columns for at in range(columns + 1)]

    def column(self, x: float | None, columns: int) -> int | None:
        """The column that a value falls into; None when it is not in sight."""
        if x is None or not self.first <= x < self.end:
            return None
        # A value at the edge of a column is in it, though a quotient may fall just below.
        return min(columns - 1, int((x - self.first) / self.span * columns + 1e-9))


def is_known(tracks: list[Track], axis: str) -> bool:
    return axis == STEP or any(_rising(track, axis) for track in tracks)


def whole(tracks: list[Track], axis: str) -> Window | None:
    """All that any of the tracks has; None when nothing of them is known along this axis."""
    shown = [track for track in tracks if axis == STEP or _rising(track, axis)]
    if not shown:
        return None
    if axis == STEP:
        first, last = extent([track.series for track in shown])
        return Window(first, last + 1)
    ends = [extent([track.series]) for track in shown]
    firsts = [position(t, axis, first) for t, (first, _) in zip(shown, ends, strict=True)]
    lasts = [position(t, axis, last) for t, (_, last) in zip(shown, ends, strict=True)]
    begin = min(x for x in firsts if x is not None)
    end = max(x for x in lasts if x is not None)
    if axis == TOKENS:
        return Window(begin, end + 1)
    return Window(begin, end + max(1e-6, (end - begin) * 1e-6))


def position(track: Track, axis: str, step: float) -> float | None:
    """Where a step of an attempt stands on an axis."""
    if axis == STEP:
        return step
    known = _rising(track, axis)
    if known is None:
        return None
    at = max(0, bisect.bisect_right(known.starts, step) - 1)
    x, begin = known.low[at], known.starts[at]
    if at + 1 < len(known.starts):
        after, end = known.low[at + 1], known.starts[at + 1]
    else:
        end, after = known.last if known.last else (begin, x)
    if end > begin and step > begin:
        x += (after - x) * min(1.0, (step - begin) / (end - begin))
    return x - _zero(track, axis)


def step_at(track: Track, axis: str, x: float) -> int | None:
    """The step of an attempt at a place of an axis; None before its first."""
    if axis == STEP:
        return math.floor(x)
    known = _rising(track, axis)
    if known is None:
        return None
    at = bisect.bisect_right(known.low, x + _zero(track, axis)) - 1
    return known.starts[at] if at >= 0 else None


def bounds(track: Track, axis: str, starts: list[int], edges: list[float]) -> list[int]:
    """For each edge, the first of `starts` (buckets of the track, by step) beyond it."""
    if axis == STEP:
        return cuts(starts, edges)
    known = _rising(track, axis)
    if known is None:
        return [0] * len(edges)
    zero = _zero(track, axis)
    found: list[int] = []
    before, into = -1, 0
    for at in cuts(known.low, [edge + zero for edge in edges]):
        if at == len(known.starts):
            into = len(starts)
        elif at != before:
            into = bisect.bisect_left(starts, known.starts[at], into)
        before = at
        found.append(into)
    return found


def ticks(axis: str, window: Window, columns: int) -> list[tuple[int, str]]:
    """Where ticks stand, and what they say: all the same distance apart."""
    if axis != TIME:
        return axes.steps(math.floor(window.first), math.ceil(window.end) - 1, columns)
    if columns < 8:
        return [(0, lasting(window.first))]
    wanted = window.span * TICK_WIDTH / columns
    apart: float = next((nice for nice in NICE_S if nice >= wanted), 0)
    if not apart:
        apart = DAY_S * max(1, math.ceil(wanted / DAY_S))
    first = math.ceil(window.first / apart)
    found = []
    for count in range(first, math.floor(window.end / apart) + 1):
        column = window.column(count * apart, columns)
        if column is not None:
            found.append((column, lasting(count * apart)))
    return found


def lasting(seconds: float) -> str:
    """A time since the run began: 40 s, 20 min, 1 h 20 min, 2 d 6 h."""
    whole_s = round(seconds)
    if abs(whole_s) < MINUTE_S:
        return f"{whole_s} s"
    if whole_s < HOUR_S:
        minutes, rest = divmod(whole_s, MINUTE_S)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if whole_s < DAY_S:
        hours, rest = divmod(whole_s // MINUTE_S, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(whole_s // HOUR_S, 24)
    return f"{days} d {rest} h" if rest else f"{days} d"


def written(axis: str, x: float) -> str:
    """A place on an axis, for a person."""
    if axis == TIME:
        return lasting(x)
    return f"{axis} {math.floor(x):,}" if axis == STEP else f"{axes.count(round(x))} tokens"


def _rising(track: Track, axis: str) -> Series | None:
    """The values of an axis by step; None where there are none."""
    found = track.tokens if axis == TOKENS else track.time
    return found if found is not None and found.starts else None


def _zero(track: Track, axis: str) -> float:
    return track.began if axis == TIME else 0.0
