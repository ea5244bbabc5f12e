"""Which values an axis shows and where its ticks stand. Pure arithmetic.

A tick of a linear axis always falls on the middle of a row and all are the same number of
rows apart: the axis is stretched to make it so, rather than the ticks moved.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

NICE = (1.0, 2.0, 2.5, 5.0)
LOG_TICKS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
TICKS = 6  # about as many on a high axis
QUANTILE = 0.02  # of the columns, at either end, that may leave the range
FEW = 8  # columns, of which none is told to be absurd
FAR = 100.0  # times what is usual: a value beyond is absurd
LEAST = 1e-300  # between two ends of an axis: less cannot be divided among its rows
MOST = 1e300  # at the end of an axis: the tick beyond it must be a number too
RECENT = 0.5  # of the columns, from the right, that the range must show well
RECENT_SHARE = 0.35  # of the height that they get


class Axis(NamedTuple):
    """`low` is the value at the middle of the lowest row, `high` at that of the highest.
    `ticks`: (row from the top, label)."""

    low: float
    high: float
    rows: int
    log: bool
    ticks: list[tuple[int, str]]

    def dot(self, value: float) -> int:
        """The dot from the top, four to a row, that shows a value; may lie outside."""
        if self.log:
            value = math.log(value) if value > 0 else self.low - (self.high - self.low)
        if self.high == self.low:
            return self.rows * 2
        from_top = (self.high - value) / (self.high - self.low) * (self.rows - 1) + 0.5
        if from_top < -4.0:
            return -16
        return math.floor((from_top if from_top < self.rows + 4.0 else self.rows + 4.0) * 4)


def robust(lows: list[float], highs: list[float], *, recent: bool) -> tuple[float, float]:
    """The range that shows a curve well: without the few worst columns, and with `recent`
    so that a first fall from a great height does not flatten what comes after it."""
    low, high = _quantiles(lows, highs)
    if recent and len(lows) >= FEW:
        start = int(len(lows) * (1 - RECENT))
        late_low, late_high = _quantiles(lows[start:], highs[start:])
        spread = max(late_high - late_low, abs(late_high) * 1e-3)
        if spread < RECENT_SHARE * (high - low):
            room = spread / RECENT_SHARE - spread
            falling = late_low - low < high - late_high
            high = min(high, late_high + room) if falling else high
            low = low if falling else max(low, late_low - room)
    if high - low < LEAST:
        room = abs(low) * 0.05 if abs(low) > LEAST else 0.5
        low, high = low - room, high + room
    return low, high


def _quantiles(lows: list[float], highs: list[float]) -> tuple[float, float]:
    below, above = sorted(lows), sorted(highs)
    skip = int(len(below) * QUANTILE)
    return below[skip], above[len(above) - 1 - skip]


def robust_log(lows: list[float], highs: list[float]) -> tuple[float, float]:
    """The range on a logarithmic axis, of values above zero. It shows a whole fall, without what
    is absurd: one value of 1e300 would make everything else one flat line."""
    below, above = sorted(lows), sorted(highs)
    low, high = below[int(len(below) * QUANTILE / 4)], above[-1]
    if len(below) >= FEW <= len(above):
        usual_low, usual_high = usual(below), usual(above[::-1])
        low = max(low, next(value for value in below if value >= usual_low / FAR))
        high = next(value for value in reversed(above) if value <= usual_high * FAR)
    return low, high


def usual(ordered: list[float]) -> float:
    """The first that is not among the few outermost."""
    return ordered[max(1, int(len(ordered) * QUANTILE))]


def linear(low: float, high: float, rows: int) -> Axis:
    """The axis with ticks at nice values that wastes least of the height."""
    if rows < 3:
        return Axis(low, high, rows, False, [(0, label(high, high - low))] if rows else [])
    best: tuple[float, int, int, float] | None = None
    wanted = max(3, rows // TICKS)
    for apart in range(2, max(3, min(wanted + 3, rows // 2 + 1))):
        step = _nice_at_least((high - low) * apart / (rows - 1) * 0.999)
        for _ in range(3):
            unit = step / apart  # what a row is worth
            lowest = math.floor(low / unit + 1e-9)  # the lowest row, in rows above zero
            if (lowest + rows - 0.5) * unit >= high:
                break
            step = _nice_at_least(step * 1.01)
        score = (high - low) / (unit * (rows - 1)) - 0.1 * abs(apart - wanted)
        if best is None or score > best[0]:
            best = (score, lowest, apart, step)
    assert best is not None
    _, lowest, apart, step = best
    highest = lowest + rows - 1
    ticks = [
        (row, label((highest - row) // apart * step, step))
        for row in range(rows)
        if (highest - row) % apart == 0
    ]
    unit = step / apart
    return Axis(lowest * unit, highest * unit, rows, False, ticks)


def logarithmic(low: float, high: float, rows: int) -> Axis:
    """Ticks at 1, 2, 5 of each decade, or more or fewer of them as the height allows."""
    bottom, top = math.log(low), math.log(high)
    if top - bottom < 1e-9:
        top = bottom + 1e-3
    axis = Axis(bottom, top, rows, True, [])
    best: list[tuple[int, str]] = []
    for mantissas in LOG_TICKS:
        ticks = _log_ticks(axis, low, high, mantissas)
        if len(ticks) > len(best) and _apart(ticks):
            best = ticks
    if len(best) < 2 and rows > 1:
        count = min(4, max(2, rows // 3))
        at = [round(i * (rows - 1) / (count - 1)) for i in range(count)]
        values = [math.exp(top - row * (top - bottom) / (rows - 1)) for row in at]
        digits = max(3, 2 - math.floor(math.log10((top - bottom) / count)))
        best = [(row, f"{v:.{digits}g}") for row, v in zip(at, values, strict=True)]
    return axis._replace(ticks=best)


def _log_ticks(
    axis: Axis, low: float, high: float, mantissas: tuple[float, ...]
) -> list[tuple[int, str]]:
    ticks = []
    for decade in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for mantissa in mantissas:
            value = mantissa * 10.0**decade
            if low <= value <= high:
                ticks.append((axis.dot(value) // 4, f"{value:.6g}"))
    return sorted(ticks)


def _apart(ticks: list[tuple[int, str]]) -> bool:
    rows = [row for row, _ in ticks]
    return all(b - a >= 2 for a, b in itertools.pairwise(rows))


def _nice_at_least(value: float) -> float:
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for nice in (*NICE, 10.0):
        if nice * power >= value * (1 - 1e-9):
            return nice * power
    return 10.0 * power


def label(value: float, step: float) -> str:
    """As many digits as tell two ticks apart."""
    if step <= 0:
        return f"{value:.3g}"
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if abs(step * 10.0**digits - round(step * 10.0**digits)) > 1e-6:
        digits += 1  # a step of 2.5
    if digits > 7 or abs(value) >= 1e6:
        magnitude = math.floor(math.log10(abs(value))) if value else 0
        return f"{value:.{max(1, magnitude - math.floor(math.log10(step)) + 2)}g}"
    return f"{value + 0.0:.{digits}f}"


def steps(first: int, last: int, columns: int) -> list[tuple[int, str]]:
    """Ticks of the axis of steps: (column, label), all the same number of steps apart."""
    if last <= first or columns < 8:
        return [(0, count(first))]
    room = max(len(count(first)), len(count(last))) + 5
    apart = max(1, round(_nice_at_least((last - first) * room / columns)))
    begin = -(-first // apart) * apart
    return [
        (round((step - first) / (last - first) * (columns - 1)), count(step))
        for step in range(begin, last + 1, apart)
    ]


def count(step: int) -> str:
    """12,000 · 1.25M · 1.25G"""
    if step < 1_000_000:
        return f"{step:,}"
    return f"{step / 1e6:.4g}M" if step < 1_000_000_000 else f"{step / 1e9:.4g}G"
