"""One log among several: whose it is, and where its lines stand in the order of all.

The key of a line is the time that it bears, or that of the line which it belongs to. What came
while somebody looked has the number of the look instead, which is after all times. In a log
without any time a line is placed by how far into its file it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from pathlib import Path

from bitwatch.attach.log_levels import text_of
from bitwatch.attach.log_pages import Pager, Row
from bitwatch.attach.log_times import Times

Key = tuple[int, float]  # (0, time) before the first look, (1, number of the look) since

NEXT_ROWS = 8  # that are looked at first
NEAR_ROWS = 200  # that are searched for the time of a line that has none
END_ROWS = 1000  # of a log, that are searched for its first and its last time
MOST_LOOKS = 20_000  # of which the order is remembered
RANK = re.compile(r"rank(\d+)$")
NAMES = {"agent": "torchrun", "supervisor": "bitwatch"}


class Source:
    """Sees its file for the first time when it is made."""

    def __init__(self, path: Path, order: int) -> None:
        self.name = name_of(path)
        self.order = order  # among lines of the same key
        self.pager = Pager(path)
        self.pager.look()
        self.live_from = self.pager.end
        self.span: tuple[float, float] | None = None  # of its times
        self.borrowed = (0.0, 1.0)  # the span of the others, for a log without times
        self._arrived: list[int] = []  # where each look's lines begin
        self._looks: list[int] = []
        self._told: tuple[int, float | None] = (-1, None)  # a row's end, and its time
        self._renewed = self.pager.renewed
        self._times = Times(self.pager.written)
        if self.pager.end:
            self.span = self._ends()

    def is_ordered(self, row: Row) -> bool:
        """Whether it is known where the row stands among those of other logs."""
        return self.span is not None or row.begin >= self.live_from

    def came(self, number: int) -> None:
        """It was not there at the first look: all of it is new."""
        self.live_from = 0
        self._arrive(0, number)

    def look(self, number: int) -> int:
        """Takes in what has come; how many bytes of whole lines. -1 when the file is another."""
        before = self.pager.end
        self.pager.look()
        if self.pager.renewed != self._renewed:
            self._renewed = self.pager.renewed
            self._arrived, self._looks, self.live_from, before = [], [], 0, 0
            self._told = (-1, None)
            self._arrive(before, number)
            return -1
        if self.pager.end > before:
            self._arrive(before, number)
        return self.pager.end - before

    def key(self, row: Row) -> Key:
        if row.begin >= self.live_from:
            at = bisect_right(self._arrived, row.begin) - 1
            return (1, self._looks[at] if at >= 0 else 0)
        if self.span is None:
            return (0, self._by_place(row, *self.borrowed))
        return (0, self._time(row))

    def place_after(self, key: Key, *, including: bool) -> int:
        """Where the first row begins whose key is larger; or as large, when not `including`."""
        low, high = 0, self.pager.end
        if key[0] == 1:
            low = self.live_from
            find = bisect_right if including else bisect_left
            at = find(self._looks, key[1])
            return self._arrived[at] if at < len(self._arrived) else high
        high = min(high, self.live_from)
        while low < high:
            begin = self.pager.begin_of((low + high) // 2)
            rows = self.pager.after(max(low, begin), 1)
            if not rows:
                break
            its = self.key(rows[0])
            if its < key or (including and its == key):
                low = rows[0].end
            else:
                high = rows[0].begin
        return low

    def _arrive(self, begin: int, number: int) -> None:
        self._arrived.append(begin)
        self._looks.append(number)
        if len(self._arrived) > MOST_LOOKS:
            del self._arrived[: MOST_LOOKS // 2], self._looks[: MOST_LOOKS // 2]

    def _time(self, row: Row) -> float:
        own = self._read(row)
        if own is None and self._told[0] == row.begin:
            own = self._told[1]
        if own is None:
            own = self._near(row)
        self._told = (row.end, own)
        return own

    def _near(self, row: Row) -> float:
        """The time of the line that a row without one belongs to."""
        for most in (NEXT_ROWS, NEAR_ROWS):
            for above in reversed(self.pager.before(row.begin, most)):
                if (t := self._read(above)) is not None:
                    return t
        for below in self.pager.after(row.end, NEAR_ROWS):
            if (t := self._read(below)) is not None:
                return t
        return self._by_place(row, *(self.span or self.borrowed))

    def _by_place(self, row: Row, begin: float, end: float) -> float:
        return begin + (end - begin) * row.begin / max(1, self.live_from)

    def _read(self, row: Row) -> float | None:
        return self._times.read(text_of(row.data))

    def _ends(self) -> tuple[float, float] | None:
        """The first and the last time in it; None where either end of it has no times."""
        oldest = self.pager.after(0, END_ROWS)
        newest = reversed(self.pager.before(self.pager.end, END_ROWS))
        first = next((t for t in map(self._read, oldest) if t is not None), None)
        last = next((t for t in map(self._read, newest) if t is not None), None)
        return None if first is None or last is None else (first, last)


def name_of(path: Path) -> str:
    """As a person calls it: rank 0, torchrun."""
    rank = RANK.match(path.stem)
    return f"rank {rank[1]}" if rank else NAMES.get(path.stem, path.stem)


def in_order(path: Path) -> tuple[int, int, str]:
    """torchrun first, then the ranks by their number, then others by name."""
    rank = RANK.match(path.stem)
    if rank:
        return 1, int(rank[1]), ""
    return (0 if path.stem in ("agent", "launcher") else 2), 0, path.stem
