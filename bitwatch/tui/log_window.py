"""Where one is in a stretch of logs, in lines of a screen: scrolling, wrapping, following. Reads
what is missing and drops what is far away."""

from __future__ import annotations

from bitwatch.attach.log_levels import text_of
from bitwatch.attach.log_merge import Places, Shown, Stretch, ending
from bitwatch.attach.log_sources import Source
from bitwatch.tui.log_lines import NAME_CELLS, fit_for_cells, wrapped

AT_ONCE = 100  # rows that are read when some are missing
KEPT_ROWS = 1000  # above and below the screen
KEPT_BYTES = 16 << 20
BEHIND_BYTES = 1 << 20  # more than that has come: it is not read through to follow its end
SIDE_CHARACTERS = 16


class Window:
    """`top` is the first row on the screen, `skip` how many lines of it are above."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(1, width), max(1, height)
        self.wraps = self.raw = False
        self.left = 0  # the first character of each line, where they are not wrapped
        self.stretch = Stretch([], {})
        self.top = self.skip = 0
        self.follows = False
        self.new_lines = 0  # since it does not follow

    def start(self, sources: list[Source], places: Places) -> None:
        """Goes to these places."""
        self.stretch = Stretch(sources, places)
        self.top = self.skip = 0
        self.follows = False

    def start_at_end(self, sources: list[Source]) -> None:
        self.start(sources, ending(sources))
        self.follows, self.new_lines = True, 0

    def resize(self, width: int, height: int) -> None:
        self.width, self.height = max(1, width), max(1, height)
        self.skip = 0

    def scroll(self, by: int) -> None:
        if by < 0:
            self.up(-by)
        else:
            self.down(by)

    def page(self, by: int) -> None:
        self.scroll(by * max(1, self.height - 1))

    def sideways(self, by: int) -> None:
        self.left = max(0, self.left + by * SIDE_CHARACTERS)

    def wrap(self) -> None:
        self.wraps = not self.wraps
        self.left = self.skip = 0

    def show_raw(self) -> None:
        self.raw = not self.raw
        self.skip = 0

    def up(self, lines: int) -> None:
        """Following ends, unless there is nothing above."""
        while lines > 0:
            if self.skip == 0:
                if self.top == 0 and not self.earlier():
                    return
                self.top -= 1
                self.skip = self.height_of(self.rows()[self.top])
            step = min(lines, self.skip)
            self.skip -= step
            lines -= step
            self.follows = False

    def down(self, lines: int) -> None:
        self._fill()
        for _ in range(lines):
            rows = self.rows()
            if self.top >= len(rows):
                break
            self.skip += 1
            if self.skip >= self.height_of(rows[self.top]):
                self.top, self.skip = self.top + 1, 0
            if self.top >= len(rows) - 1:
                self.stretch.later(AT_ONCE)
        self._fill()
        if self.stretch.at_end:
            bottom = self.bottom()  # which may read rows above, and moves the top with them
            self.follows = self.follows or (self.top, self.skip) >= bottom

    # -- rows -----------------------------------------------------------------------------

    def rows(self) -> list[Shown]:
        """Those that are read; at the end of the logs also lines that have no end yet."""
        if not self.stretch.at_end:
            return self.stretch.rows
        return self.stretch.rows + self._unfinished()

    def _unfinished(self) -> list[Shown]:
        rests = [(source, source.pager.rest()) for source in self.stretch.sources]
        return [Shown(s, row, s.pager.renewed) for s, row in rests if row is not None]

    def below(self) -> int:
        """The first row that is below the screen."""
        rows, at, lines = self.rows(), self.top, -self.skip
        while at < len(rows) and lines < self.height:
            lines += self.height_of(rows[at])
            at += 1
        return at

    def places_at(self, index: int) -> Places:
        """Of each log the place that this row follows or begins at."""
        places = self.stretch.places_at(index)
        for shown in self.rows()[len(self.stretch.rows) : index]:
            places[shown.source] = shown.row.end
        return places

    def earlier(self) -> int:
        number = self.stretch.earlier(max(AT_ONCE, self.height))
        self.top += number
        return number

    def anchor(self) -> Shown | None:
        """The row at the top of the screen."""
        rows = self.rows()
        shown = rows[self.top] if self.top < len(rows) else None
        if shown is not None and shown.renewed != shown.source.pager.renewed:
            return None
        return shown

    def _fill(self) -> None:
        """Reads on until the screen is full."""
        while True:
            lines = -self.skip
            for shown in self.rows()[self.top :]:
                lines += self.height_of(shown)
                if lines >= self.height:
                    return
            if not self.stretch.later(max(AT_ONCE, self.height)):
                return

    def bottom(self) -> tuple[int, int]:
        """The first row, and lines of it above the screen, when the end stands at its foot."""
        rows, left = self.rows(), self.height
        at = len(rows)
        while True:
            if at == 0:
                at = self.earlier()
                if not at:
                    return 0, 0
                rows = self.rows()
            at -= 1
            lines = self.height_of(rows[at])
            if lines >= left:
                return at, lines - left
            left -= lines

    def settle(self) -> None:
        """Keeps the screen full, its end at its foot, and little else."""
        if self.follows:
            missing = sum(s.pager.end - self.stretch.back[s] for s in self.stretch.sources)
            if missing > BEHIND_BYTES:
                self.start_at_end(self.stretch.sources)
            while self.stretch.later(AT_ONCE):
                pass
            self.top, self.skip = self.bottom()
            self.new_lines = 0
        else:
            self._fill()
            if self.stretch.at_end:
                bottom = self.bottom()  # as above
                self.top, self.skip = min((self.top, self.skip), bottom)
        kept = KEPT_ROWS if self.stretch.size_bytes < KEPT_BYTES else self.height
        above = self.top - 2 * kept
        if above > 0:
            self.stretch.drop_first(above + kept)
            self.top -= above + kept
        below = len(self.stretch.rows) - self.top - self.height - 2 * kept
        if below > 0:
            self.stretch.drop_last(below + kept)

    def text(self, shown: Shown) -> str:
        return fit_for_cells(text_of(shown.row.data, self.raw))

    def height_of(self, shown: Shown) -> int:
        if not self.wraps:
            return 1
        lead = self.name_width() + 2 if self.name_width() else 0
        return len(wrapped(self.text(shown), max(1, self.width - lead)))

    def name_width(self) -> int:
        """Of the column that says whose a line is; 0 where there is only one."""
        names = [source.name for source in self.stretch.sources]
        return min(NAME_CELLS, max(map(len, names))) if len(names) > 1 else 0
