"""Finds lines of logs of any size: the nearest one in a direction, and how many there are.

Everything is done in blocks, and says after each how it stands: who searches may stop there, or
do something else before it goes on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from bitwatch.attach.log_levels import MARKS, level, text_of
from bitwatch.attach.log_merge import Places
from bitwatch.attach.log_pages import PIECE_BYTES, Row, row_begin, row_end
from bitwatch.attach.log_sources import Source

BLOCK_BYTES = 256 << 10
Direction = Literal[1, -1]
UNFINISHED = (2, 0.0)  # the key of a last line without an end: it is shown behind all others


Spans = list[tuple[int, int]]


class Wanted(Protocol):
    """What is searched for."""

    text: str

    def rows(self, block: bytes, offset: int) -> Spans:
        """Where rows begin and end that may have it, in order, in whole rows of a file."""
        ...

    def is_meant(self, data: bytes) -> bool: ...

    def marks(self, text: str) -> Spans:
        """What stands out in a line as it is shown."""
        ...


class Word:
    """In any case, unless it has a capital. Not found where a long line is cut within it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._folds = text == text.lower()
        forms = {text, text.upper()} if self._folds else {text}
        # Of bytes only the letters of ASCII can be made small; the others are tried in each form.
        self._words = {form.encode().lower() if self._folds else form.encode() for form in forms}

    def rows(self, block: bytes, offset: int) -> Spans:
        return _rows(block.lower() if self._folds else block, offset, self._words)

    def is_meant(self, data: bytes) -> bool:
        return True

    def marks(self, text: str) -> Spans:
        searched = text.lower() if self._folds else text
        if len(searched) != len(text):  # a letter whose small form is two
            searched = text
        found = []
        at = searched.find(self.text)
        while at >= 0:
            found.append((at, at + len(self.text)))
            at = searched.find(self.text, at + len(self.text))
        return found


class Troubles:
    """Errors and warnings, as the colours show them."""

    text = ""

    def __init__(self) -> None:
        self._words = {word.encode() for word in MARKS}

    def rows(self, block: bytes, offset: int) -> Spans:
        return _rows(block.lower(), offset, self._words)

    def is_meant(self, data: bytes) -> bool:
        return level(text_of(data)) in ("bad", "warning")

    def marks(self, text: str) -> Spans:
        return []


class Hit(NamedTuple):
    source: Source
    row: Row


def nearest(
    sources: Sequence[Source], places: Places, direction: Direction, wanted: Wanted
) -> Iterator[Hit | None]:
    """Gives None for each block that was searched, last the first row in this direction, if there
    is one. The logs are searched side by side, each until it is past what another has."""
    open_ = {each: _scan(each, places[each], direction, wanted) for each in sources}
    best: tuple[tuple[float, ...], Hit] | None = None
    while open_:
        for source, scan in list(open_.items()):
            found = next(scan, None)
            if found is None:
                del open_[source]
                continue
            row, is_hit = found
            if row is not None and (is_hit or best is not None):
                key = (*(source.key(row) if row.whole else UNFINISHED), source.order)
                is_first = best is None or (key < best[0] if direction > 0 else key > best[0])
                if is_hit and is_first:
                    best = key, Hit(source, row)
                if is_hit or not is_first:
                    del open_[source]
            yield None
    if best is not None:
        yield best[1]


def _scan(
    source: Source, place: int, direction: Direction, wanted: Wanted
) -> Iterator[tuple[Row | None, bool]]:
    """The row that is found, and true; before, for each block, the row at which it ends."""
    pager = source.pager
    if direction < 0 and place > pager.end:
        if (rest := _unfinished(source, wanted)) is not None:
            yield rest, True
            return
        place = pager.end
    while (place < pager.end) if direction > 0 else (place > 0):
        begin, block = _block(source, place, direction)
        if not block:
            return
        found = wanted.rows(block, begin)
        for at, _ in found if direction > 0 else reversed(found):
            rows = pager.after(begin + at, 1)
            if rows and wanted.is_meant(rows[0].data):
                yield rows[0], True
                return
        place = begin + len(block) if direction > 0 else begin
        near = pager.after(place, 1) if direction > 0 else pager.before(place, 1)
        yield (near[0] if near else None), False
    if direction > 0 and place <= pager.end and (rest := _unfinished(source, wanted)) is not None:
        yield rest, True


def _unfinished(source: Source, wanted: Wanted) -> Row | None:
    """The last line, if it has no end yet and is meant."""
    rest = source.pager.rest()
    if rest is None or not wanted.rows(rest.data, rest.begin) or not wanted.is_meant(rest.data):
        return None
    return rest


def _block(source: Source, place: int, direction: Direction) -> tuple[int, bytes]:
    """Whole rows from there on, or up to there, and where they begin."""
    pager = source.pager
    if direction > 0:
        block = pager.read(place, min(BLOCK_BYTES, pager.end - place))
        if place + len(block) < pager.end:
            block = block[: max(0, row_begin(block, place, len(block)))] or block
        return place, block
    begin = max(0, place - BLOCK_BYTES)
    begin = pager.begin_of(begin)
    return begin, pager.read(begin, place - begin)


class Counted:
    """How many rows of one log are meant, as far as it was read."""

    def __init__(self, source: Source, wanted: Wanted) -> None:
        self.source = source
        self._wanted = wanted
        self._begin()

    def _begin(self) -> None:
        self.place = self._number = 0
        self._renewed = self.source.pager.renewed
        self._ends: list[int] = []  # of the blocks
        self._numbers: list[int] = []  # of rows up to there

    @property
    def is_done(self) -> bool:
        pager = self.source.pager
        return self._renewed == pager.renewed and self.place >= pager.end

    @property
    def number(self) -> int:
        """The last line is looked at anew each time while it has no end."""
        return self._number + (_unfinished(self.source, self._wanted) is not None)

    def step(self) -> None:
        """Reads a block more."""
        if self._renewed != self.source.pager.renewed:
            self._begin()
        begin, block = _block(self.source, self.place, 1)
        self._number += self._in(block, begin)
        self.place = begin + len(block) if block else self.source.pager.end
        self._ends.append(self.place)
        self._numbers.append(self._number)

    def before(self, place: int) -> int | None:
        """How many there are up to where a row begins; None where that was not read yet."""
        pager = self.source.pager
        if min(place, pager.end) > self.place or self._renewed != pager.renewed:
            return None
        if place > pager.end:
            return self.number
        at = bisect_right(self._ends, place) - 1
        begin, number = (self._ends[at], self._numbers[at]) if at >= 0 else (0, 0)
        return number + self._in(pager.read(begin, place - begin), begin)

    def _in(self, block: bytes, offset: int) -> int:
        rows = self._wanted.rows(block, offset)
        if isinstance(self._wanted, Word):
            return len(rows)
        return sum(self._wanted.is_meant(block[begin:end].rstrip(b"\n")) for begin, end in rows)


def _rows(block: bytes, offset: int, words: Collection[bytes]) -> Spans:
    """Those that have one of the words."""
    found: dict[int, int] = {}
    for word in words:
        at = block.find(word)
        while at >= 0:
            begin, end = _row_around(block, offset, at)
            found[begin] = end
            at = block.find(word, end)
    return sorted(found.items())


def _row_around(block: bytes, offset: int, at: int) -> tuple[int, int]:
    begin = block.rfind(b"\n", max(0, at - PIECE_BYTES), at) + 1
    end = block.find(b"\n", at, at + PIECE_BYTES) + 1
    if begin and end and end - begin < PIECE_BYTES:
        return begin, end
    begin = max(0, row_begin(block, offset, at + 1))
    end = row_end(block, offset, begin)
    return begin, max(end, at + 1) if end > 0 else len(block)
