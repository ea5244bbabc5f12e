"""A curve of any length in bounded memory."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from bitwatch.record.series import Series

POINTS = st.lists(st.tuples(st.integers(0, 5000), st.floats(width=32)), max_size=400)


@given(POINTS, st.integers(2, 40))
def test_nothing_extreme_is_lost_and_memory_is_bounded(
    points: list[tuple[int, float]], limit: int
) -> None:
    series = Series(limit=limit)
    for x, value in points:
        series.add(x, value)
    finite = [value for _, value in points if math.isfinite(value)]
    odd = [x for x, value in points if not math.isfinite(value)]
    assert len(series.starts) <= limit
    assert len(series.nonfinite) <= limit
    assert sum(series.counts) == len(finite)
    assert series.nonfinite_count == len(odd)
    assert series.first_nonfinite == min(odd, default=None)
    if finite:
        assert min(series.low) == min(finite)
        assert max(series.high) == max(finite)
    assert series.starts == sorted(set(series.starts))
    assert all(start % series.width == 0 for start in series.starts)
    for x, value in points:
        marks = series.starts if math.isfinite(value) else series.nonfinite
        assert x - x % series.width in marks


@given(POINTS)
def test_the_order_of_points_does_not_matter(points: list[tuple[int, float]]) -> None:
    forward, backward = Series(limit=16), Series(limit=16)
    for x, value in points:
        forward.add(x, value)
    for x, value in reversed(points):
        backward.add(x, value)
    assert (forward.starts, forward.low, forward.high) == (
        backward.starts,
        backward.low,
        backward.high,
    )


def test_a_missing_value_is_no_point() -> None:
    series = Series()
    series.add(1, None)
    assert series.starts == []
    assert series.last is None
    series.add(2, math.nan)
    assert series.last is not None
    assert math.isnan(series.last[1])
