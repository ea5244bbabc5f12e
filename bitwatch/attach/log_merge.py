"""A stretch of several logs as one, in the order of their lines, that grows at either end.

The logs are never read whole: of each only the rows around two places are, and the next one in
the order is the one among them that comes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bitwatch.attach.log_pages import Row
from bitwatch.attach.log_sources import Key, Source

BATCH_ROWS = 64  # of one log, read at a time
ALONE: Key = (0, 0.0)  # of a row where there is nothing to be merged
Places = dict[Source, int]
Keyed = Callable[[Source, Row], Key]


class Shown(NamedTuple):
    """A row and whose it is; `renewed` tells the file that it is from."""

    source: Source
    row: Row
    renewed: int = 0


class Stretch:
    """`rows` stand between the places `front` and `back` of each log."""

    def __init__(self, sources: Sequence[Source], places: Places) -> None:
        self.sources = list(sources)
        # A last line without an end is no row yet, even where the place is behind it.
        self.front: Places = {each: min(places.get(each, 0), each.pager.end) for each in sources}
        self.back: Places = dict(self.front)
        self.rows: list[Shown] = []
        self.size_bytes = 0

    @property
    def at_end(self) -> bool:
        return all(self.back[source] >= source.pager.end for source in self.sources)

    def _key(self, source: Source, row: Row) -> Key:
        return source.key(row) if len(self.sources) > 1 else ALONE

    def earlier(self, most: int) -> int:
        """Puts so many rows before the first one; how many there were."""
        streams = (_backwards(source, self.front[source], self._key) for source in self.sources)
        found: list[Shown] = []
        for _, shown in heapq.merge(*streams, key=lambda one: one[0], reverse=True):
            found.append(shown)
            self.front[shown.source] = shown.row.begin
            self.size_bytes += len(shown.row.data)
            if len(found) >= most:
                break
        found.reverse()
        self.rows = found + self.rows
        return len(found)

    def later(self, most: int) -> int:
        """The same behind the last one."""
        streams = (_forwards(source, self.back[source], self._key) for source in self.sources)
        number = 0
        for _, shown in heapq.merge(*streams, key=lambda one: one[0]):
            self.rows.append(shown)
            self.back[shown.source] = shown.row.end
            self.size_bytes += len(shown.row.data)
            number += 1
            if number >= most:
                break
        return number

    def add_source(self, source: Source) -> None:
        """A log that has come: all of it is new."""
        self.sources.append(source)
        self.front[source] = self.back[source] = 0

    def begin_anew(self, source: Source) -> None:
        """Its file is another one. What was read of the old one stays."""
        self.front[source] = self.back[source] = 0

    def drop_first(self, number: int) -> None:
        for shown in self.rows[:number]:
            self.size_bytes -= len(shown.row.data)
            if shown.renewed == shown.source.pager.renewed:
                self.front[shown.source] = shown.row.end
        del self.rows[:number]

    def drop_last(self, number: int) -> None:
        for shown in reversed(self.rows[-number:]):
            self.size_bytes -= len(shown.row.data)
            if shown.renewed == shown.source.pager.renewed:
                self.back[shown.source] = shown.row.begin
        del self.rows[-number:]

    def places_at(self, index: int) -> Places:
        """Of each log the place that this row follows or begins at."""
        places = dict(self.front)
        for shown in self.rows[:index]:
            if shown.renewed == shown.source.pager.renewed:
                places[shown.source] = shown.row.end
        return places


def beginning(sources: Sequence[Source]) -> Places:
    return dict.fromkeys(sources, 0)


def ending(sources: Sequence[Source]) -> Places:
    """Behind everything, last lines without an end too."""
    return {source: source.pager.size for source in sources}


def around(sources: Sequence[Source], source: Source, byte: int) -> Places:
    """The places in all logs where the row of one stands that has this byte. Last lines without
    an end stand behind all others, in the order of their logs."""
    begin = source.pager.begin_of(byte)
    if begin >= source.pager.end:
        above = {each: each.pager.size for each in sources if each.order < source.order}
        return {each: above.get(each, each.pager.end) for each in sources}
    places = {source: begin} if source in sources else {}
    others = [other for other in sources if other is not source]
    rows = source.pager.after(begin, 1) if others else []
    if rows:
        key = source.key(rows[0])
        for other in others:
            places[other] = other.place_after(key, including=other.order < source.order)
    return {each: places.get(each, 0) for each in sources}


def _forwards(source: Source, place: int, key: Keyed) -> Iterator[tuple[tuple[Key, int], Shown]]:
    rows_at_once = BATCH_ROWS // 8
    while rows := source.pager.after(place, rows_at_once):
        for row in rows:
            yield (key(source, row), source.order), Shown(source, row, source.pager.renewed)
        place = rows[-1].end
        rows_at_once = BATCH_ROWS


def _backwards(source: Source, place: int, key: Keyed) -> Iterator[tuple[tuple[Key, int], Shown]]:
    rows_at_once = BATCH_ROWS // 8
    while rows := source.pager.before(place, rows_at_once):
        keyed = [(key(source, row), row) for row in rows]  # times are inherited downwards
        for its, row in reversed(keyed):
            yield (its, source.order), Shown(source, row, source.pager.renewed)
        place = rows[0].begin
        rows_at_once = BATCH_ROWS
