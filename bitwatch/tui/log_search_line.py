"""A search in logs that goes on beside everything else, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch.attach.log_merge import Places, around
from bitwatch.attach.log_search import BLOCK_BYTES, Counted, Direction, Hit, Wanted, nearest
from bitwatch.attach.log_sources import Source
from bitwatch.text import percent
from bitwatch.tui import keys
from bitwatch.tui.draw import Line, plain

TROUBLES = "errors and warnings"
NO_FURTHER = "no further one"
ATTEMPTS = ("logs-attempt-before", "logs-next-attempt")
HINTS = (  # ids of keys, and what they are about
    (("logs-follow",), "follow"),
    (("logs-search",), "search"),
    (("logs-next-error",), "errors"),
    (("logs-before", "logs-next"), "logs"),
    (("logs-wrap",), "wrap"),
    (ATTEMPTS, "attempts"),
    (("help",), "keys"),
)


class Searching:
    """`hit` is the row that was found last. `said` is a sentence about the last key."""

    def __init__(self) -> None:
        self.wanted: Wanted | None = None
        self.hit: Hit | None = None
        self.said = ""
        self._steps: Iterator[Hit | None] | None = None
        self._direction: Direction = 1
        self._counts: list[Counted] = []
        self._before: Places | None = None  # where the hit is, in all logs
        self._index: int | None = None
        self._done_blocks = self._all_blocks = 0

    def begin(
        self, sources: Sequence[Source], places: Places, direction: Direction, wanted: Wanted
    ) -> None:
        if wanted is not self.wanted:
            self.wanted = wanted
            self.recount(sources)
        self._direction = direction
        self._steps = nearest(list(sources), places, direction, wanted)
        self._done_blocks = 0
        ends = (each.pager.end if direction > 0 else 0 for each in sources)
        missing = sum(abs(end - places[each]) for each, end in zip(sources, ends, strict=True))
        self._all_blocks = max(1, missing // BLOCK_BYTES)

    def cancel(self) -> bool:
        """Forgets what is searched for; whether there was something."""
        was, self.wanted = self.wanted is not None, None
        self.forget_places()
        return was

    def forget_places(self) -> None:
        self.hit = self._before = self._index = self._steps = None
        self._counts = []

    def gone(self, source: Source) -> None:
        """Its file is another one."""
        if self.hit is not None and self.hit.source is source:
            self.hit = self._before = self._index = None
        self._steps = None

    def recount(self, sources: Sequence[Source]) -> None:
        """Other logs are meant from now on, or something else in them."""
        self.forget_places()
        if self.wanted is not None:
            self._counts = [Counted(source, self.wanted) for source in sources]

    def more(self, sources: Sequence[Source]) -> None:
        """Logs that have come are counted too."""
        known = {counted.source for counted in self._counts}
        if self.wanted is not None:
            new = [Counted(each, self.wanted) for each in sources if each not in known]
            self._counts += new

    @property
    def is_busy(self) -> bool:
        return self._steps is not None or not all(each.is_done for each in self._counts)

    def step(self) -> Hit | None:
        """Searches a block more, or counts in one; a row when it is found."""
        if self._steps is None:
            if open_ := [each for each in self._counts if not each.is_done]:
                open_[0].step()
            return None
        try:
            found = next(self._steps)
        except StopIteration:
            self._steps = None
            down = self._direction > 0
            back = keys.name("logs-found-before" if down else "logs-next-found")
            way = "below" if down else "above"
            self.said = f"{NO_FURTHER} {way}; {back} goes the other way"
            return None
        self._done_blocks += 1
        if found is not None:
            self._steps = None
            self.hit, self._index = found, None
            sources = [each.source for each in self._counts]
            self._before = around(sources, found.source, found.row.begin)
        return found

    @property
    def _is_counted(self) -> bool:
        return all(each.is_done for each in self._counts)

    @property
    def _number(self) -> int:
        return sum(each.number for each in self._counts)

    def line(self, width: int, notes: Sequence[str], attempts: int) -> Line:
        """What stands below the logs: the search, what is in the way, else what keys do. There
        may be no other of the `attempts` to go to."""
        line = Line()
        if self.wanted is not None:
            name = f"/{plain(self.wanted.text)}" if self.wanted.text else TROUBLES
            line.add(f" {name}  ", "accent").add(self._words(), "text")
        none = self._is_counted and not self._number  # which is said already
        if self.said and not (none and self.said.startswith(NO_FURTHER)):
            line.add(" · " if line.width else " ", "quiet").add(self.said, "warning")
        if notes:
            line.add(" · " if line.width else " ", "quiet").add(plain(notes[0]), "warning")
            line.add(f" · and {len(notes) - 1} more" if len(notes) > 1 else "", "quiet")
        if line.width:
            return line.cut(width)
        for ids, label in HINTS:
            key = " ".join(filter(None, (keys.get(id).name for id in ids))).replace("← →", "←→")
            if not key or (ids == ATTEMPTS and attempts < 2):
                continue
            hint = Line(f" {key}", "strong accent").add(f" {label} ", "quiet")
            if line.width + hint.width <= width:
                line.join(hint)
        return line

    def _words(self) -> str:
        """3 of at least 41, searching 40 %"""
        if self._steps is not None and not self._number:
            return f"searching {percent(min(1.0, self._done_blocks / self._all_blocks))}"
        if self._is_counted:
            number = self._number
            if not number:
                return "is in none of these logs" if self.wanted and self.wanted.text else "none"
            index = self._index_of_hit()
            return f"{index:,} of {number:,}" if index else f"{number:,} found"
        size = sum(each.source.pager.end for each in self._counts)
        share = sum(min(each.place, each.source.pager.end) for each in self._counts) / max(1, size)
        index = self._index_of_hit()
        of = f"{index:,} of " if index else ""
        return f"{of}at least {max(self._number, index or 1):,}, searching {percent(share)}"

    def _index_of_hit(self) -> int | None:
        """Known once the logs are counted up to there."""
        if self._index is None and self._before is not None:
            before = [
                each.before(self._before[each.source])
                for each in self._counts
                if each.source in self._before
            ]
            known = [number for number in before if number is not None]
            if len(known) == len(before):
                self._index = sum(known) + 1
        return self._index
