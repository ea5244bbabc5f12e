"""A curve of any length in bounded memory."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatch.record.series import Copies, Series

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


@given(POINTS, POINTS, st.integers(2, 40))
def test_many_points_at_once_are_the_same_as_one_by_one(
    before: list[tuple[int, float]], points: list[tuple[int, float]], limit: int
) -> None:
    one, many = Series(limit=limit), Series(limit=limit)
    for x, value in before:
        one.add(x, value)
        many.add(x, value)
    points = sorted(points, key=lambda point: point[0])
    for x, value in points:
        one.add(x, value)
    many.extend([x for x, _ in points], [value for _, value in points])
    for name in (
        "width",
        "starts",
        "low",
        "high",
        "counts",
        "nonfinite",
        "nonfinite_count",
        "points",
    ):
        assert getattr(many, name) == getattr(one, name), name
    assert many.first_nonfinite == one.first_nonfinite
    assert many.total == pytest.approx(one.total, rel=1e-6, abs=1e-6, nan_ok=True)
    assert repr(many.last) == repr(one.last)


def test_a_copy_stays_as_it_was() -> None:
    series = Series()
    series.add(1, 0.5)
    copy = series.copy()
    series.add(2, 0.4)
    assert copy.starts == [1] and series.starts == [1, 2]


def test_a_copy_is_another_one_only_when_a_point_has_come() -> None:
    series, ended, copies = Series(limit=16), Series(limit=16), Copies()
    series.extend(list(range(100)), [float(x) for x in range(100)])
    ended.add(1, 2.0)
    before = copies.of(series), copies.of(ended)
    assert before == (series, ended)
    copies.begin()
    series.add(3, 9.0)  # in the middle, as history is filled in
    after = copies.of(series), copies.of(ended)
    assert after == (series, ended)
    assert after[0] is not before[0] and after[1] is before[1]
    copies.begin()
    ended.add(2, math.nan)
    assert copies.of(ended).nonfinite == ended.nonfinite
