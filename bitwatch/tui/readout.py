"""What a chart says at one of its columns: the readout under a cursor. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bitwatch.tui import across, axes
from bitwatch.tui.chart import Chart
from bitwatch.tui.curve import Column, gather
from bitwatch.tui.draw import Line, Part, over
from bitwatch.tui.drawing import Drawn, Other


class Reading(NamedTuple):
    """One cell of a chart. `x` is where its first value stands on the axis, `steps` the first
    and the last step in it, `attempt` 0 where there is only one. `others` are compared runs with
    their value there, None where they have none."""

    x: float
    steps: tuple[int, int]
    attempt: int
    values: Column
    smoothed: float | None
    tokens: float | None
    time_s: float | None
    others: list[tuple[Other, float | None]]


def cells(chart: Chart, begin: int, by: int) -> Iterable[int]:
    """The cells with a value of the run itself, from `begin` on."""
    end = chart.width if by > 0 else -1
    return (column for column in range(begin, end, by) if _at(chart.drawn, column))


def nearest(chart: Chart, column: int) -> int | None:
    """The cell with a value that is nearest to one."""
    before = next(iter(cells(chart, column, -1)), None)
    after = next(iter(cells(chart, column, 1)), None)
    found = [cell for cell in (before, after) if cell is not None]
    return min(found, key=lambda cell: abs(cell - column), default=None)


def read(chart: Chart, column: int) -> Reading | None:
    """None where the run has no value. Of attempts that repeat a step the newest speaks."""
    found = _at(chart.drawn, column)
    if found is None:
        return None
    one, begin, end = found
    track, factor = one.track, chart.drawing.kind.factor
    starts = track.series.starts
    first, last = starts[begin], starts[end - 1] + track.series.width - 1
    last = min(last, track.series.last[0]) if track.series.last else last
    values = gather(track.series, [begin, end], factor)[0]
    x = across.position(track, chart.drawing.axis, first)
    if values is None or x is None:
        return None
    others = []
    for other, drawn in chart.compared:
        there = _at(drawn, column)
        mean = None
        if there is not None:
            value = gather(there[0].track.series, [there[1], there[2]], factor)[0]
            mean = value.mean if value else None
        others.append((other, mean))
    means = [mean for mean in one.means[2 * column : 2 * column + 2] if mean is not None]
    return Reading(
        x=x,
        steps=(first, max(first, last)),
        attempt=track.attempt if len(chart.drawn) > 1 else 0,
        values=values,
        smoothed=means[-1] if means and chart.drawing.smoothing else None,
        tokens=across.position(track, across.TOKENS, first),
        time_s=across.position(track, across.TIME, first),
        others=others,
    )


def _at(drawn: list[Drawn], column: int) -> tuple[Drawn, int, int] | None:
    """The newest attempt with a value in a cell, and its buckets there."""
    for one in reversed(drawn):
        begin, end = one.bounds[2 * column], one.bounds[2 * column + 2]
        if end > begin:
            return one, begin, end
    return None


def parts(chart: Chart, reading: Reading) -> list[Part]:
    """The readout in pieces; where there is no room for all, place and value stay longest."""
    kind = chart.drawing.kind
    values = reading.values
    first, last = reading.steps
    words = f"{first:,}" if first == last else f"{first:,} to {last:,}"
    found = [Part(8, Line("step " if first == last else "steps ", "quiet").add(words))]
    if reading.attempt:
        found.append(Part(2, Line("attempt ", "quiet").add(str(reading.attempt))))
    if reading.tokens is not None:
        found.append(Part(3, Line(axes.count(round(reading.tokens))).add(" tokens", "quiet")))
    if reading.time_s is not None:
        found.append(Part(4, Line("after ", "quiet").add(across.lasting(reading.time_s))))
    found.append(
        Part(9, Line(f"{kind.title} ", "quiet").add(kind.value(values.mean), "strong accent"))
    )
    if values.low < values.high:
        spread = f"{kind.value(values.low)} to {kind.value(values.high)}"
        found.append(Part(6, Line(spread, "quiet")))
    if reading.smoothed is not None:
        found.append(Part(5, Line("smoothed ", "quiet").add(kind.value(reading.smoothed))))
    for other, mean in reading.others:
        said = kind.value(mean) if mean is not None else "no value"
        found.append(Part(7, Line(f"{other.letter} ", f"strong {other.role}").add(said)))
    return found


def marked(chart: Chart, lines: list[Line], column: int, reading: Reading) -> list[Line]:
    """The cursor: a mark on the curve, and one on the axis under it."""
    lines = list(lines)
    value = reading.smoothed if reading.smoothed is not None else reading.values.mean
    row = min(chart.rows - 1, max(0, chart.axis.dot(value) // 4))
    lines[row] = over(lines[row], chart.margin + column, "◆", "strong text")
    free = lines[-1].text[chart.margin + column : chart.margin + column + 1] in ("", " ")
    if len(lines) > chart.rows and free:
        lines[-1] = over(lines[-1], chart.margin + column, "▲", "strong accent")
    return lines
