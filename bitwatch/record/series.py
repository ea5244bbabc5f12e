"""A curve of any length in bounded memory: the lowest and highest value of each bucket.

Redrawing costs what the width costs, never what the history costs. When there are too many
buckets, neighbours are merged and every bucket covers twice as many steps.
"""

from __future__ import annotations

import bisect
import math

import msgspec

LIMIT = 2048  # buckets kept: more than any terminal has columns, twice over for half-blocks


class Series(msgspec.Struct):
    """Buckets in order of x: bucket i covers `[starts[i], starts[i] + width)`.

    Values that are not finite are not drawn as values: `nonfinite` keeps the buckets' starts
    where they were, `nonfinite_count` how many there were, `first_nonfinite` the x of the
    first and `first_nonfinite_is` what it was (NaN, inf, -inf). `total` and `counts` give each
    bucket's mean. `points` is how many were added: a curve that has as many is the same.
    """

    limit: int = LIMIT
    width: int = 1
    starts: list[int] = []
    low: list[float] = []
    high: list[float] = []
    total: list[float] = []
    counts: list[int] = []
    nonfinite: list[int] = []
    nonfinite_count: int = 0
    first_nonfinite: int | None = None
    first_nonfinite_is: str = ""
    last: tuple[int, float] | None = None
    points: int = 0

    def add(self, x: int, value: float | None) -> None:
        """Adds one point; x may come in any order. None is no point at all."""
        if value is None:
            return
        self.points += 1
        if self.last is None or x >= self.last[0]:
            self.last = (x, value)
        if not math.isfinite(value):
            self._add_nonfinite(x, value)
            return
        start = x - x % self.width
        at = len(self.starts)
        if self.starts and start <= self.starts[-1]:
            at = bisect.bisect_left(self.starts, start)
        if at < len(self.starts) and self.starts[at] == start:
            self.low[at] = min(self.low[at], value)
            self.high[at] = max(self.high[at], value)
            self.total[at] += value
            self.counts[at] += 1
            return
        self.starts.insert(at, start)
        self.low.insert(at, value)
        self.high.insert(at, value)
        self.total.insert(at, value)
        self.counts.insert(at, 1)
        if len(self.starts) > self.limit:
            self._widen()

    def extend(self, xs: list[int], values: list[float]) -> None:
        """Adds points whose x rises: what `add` does one by one, a bucket at a time."""
        at = 0
        while at < len(xs):
            end = bisect.bisect_left(xs, xs[at] - xs[at] % self.width + self.width, at)
            part = values[at:end]
            lowest, highest = min(part), max(part)
            start = xs[at] - xs[at] % self.width
            bucket = bisect.bisect_left(self.starts, start)
            known = bucket < len(self.starts) and self.starts[bucket] == start
            # In the order of `add`, and not finite when one of them is not.
            total = sum(part, self.total[bucket]) if known else sum(part)
            if not math.isfinite(total):
                for x, value in zip(xs[at:end], part, strict=True):
                    self.add(x, value)
            elif known:
                self.low[bucket] = min(self.low[bucket], lowest)
                self.high[bucket] = max(self.high[bucket], highest)
                self.total[bucket] = total
                self.counts[bucket] += len(part)
                self.points += len(part)
                if self.last is None or xs[end - 1] >= self.last[0]:
                    self.last = (xs[end - 1], part[-1])
            else:
                self.add(xs[at], part[0])
                bucket = bisect.bisect_right(self.starts, xs[at]) - 1
                self.low[bucket] = min(self.low[bucket], lowest)
                self.high[bucket] = max(self.high[bucket], highest)
                self.total[bucket] = sum(part[1:], self.total[bucket])  # in the order of `add`
                self.counts[bucket] += len(part) - 1
                self.points += len(part) - 1
                if self.last is None or xs[end - 1] >= self.last[0]:
                    self.last = (xs[end - 1], part[-1])
            at = end

    def copy(self) -> Series:
        """A picture of it that another thread may look at while this one grows."""
        lists = {
            name: list(value)
            for name in self.__struct_fields__
            if isinstance(value := getattr(self, name), list)
        }
        return msgspec.structs.replace(self, **lists)

    def mean(self, bucket: int) -> float:
        return self.total[bucket] / self.counts[bucket]

    def _add_nonfinite(self, x: int, value: float) -> None:
        self.nonfinite_count += 1
        if self.first_nonfinite is None or x < self.first_nonfinite:
            self.first_nonfinite = x
            self.first_nonfinite_is = "NaN" if math.isnan(value) else str(value)
        start = x - x % self.width
        at = bisect.bisect_left(self.nonfinite, start)
        if at == len(self.nonfinite) or self.nonfinite[at] != start:
            self.nonfinite.insert(at, start)
            if len(self.nonfinite) > self.limit:
                self._widen()

    def _widen(self) -> None:
        """Doubles the width until buckets and marks fit again."""
        while len(self.starts) > self.limit or len(self.nonfinite) > self.limit:
            self.width *= 2
            old = zip(self.starts, self.low, self.high, self.total, self.counts, strict=True)
            self.starts, self.low, self.high, self.total, self.counts = [], [], [], [], []
            for x, low, high, total, count in old:
                start = x - x % self.width
                if self.starts and self.starts[-1] == start:
                    self.low[-1] = min(self.low[-1], low)
                    self.high[-1] = max(self.high[-1], high)
                    self.total[-1] += total
                    self.counts[-1] += count
                else:
                    self.starts.append(start)
                    self.low.append(low)
                    self.high.append(high)
                    self.total.append(total)
                    self.counts.append(count)
            self.nonfinite = sorted({x - x % self.width for x in self.nonfinite})


class Copies:
    """Copies for another thread, of curves that mostly stay as they are: those of the attempts
    that are over are long, and copying all of them again costs more than all else of a picture."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[Series, Series]] = {}
        self._now: dict[int, tuple[Series, Series]] = {}

    def begin(self) -> None:
        """With a next picture. What the one before it did not show is forgotten."""
        self._before, self._now = self._now, {}

    def of(self, series: Series) -> Series:
        known = self._before.get(id(series))
        copy = known[1] if known and known[1].points == series.points else series.copy()
        self._now[id(series)] = series, copy
        return copy
