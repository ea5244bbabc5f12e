"""What the page of logs shows: which logs, where in them, and what is searched. Everything here
happens in the thread of the page that reads, so that no file can hold up the screen."""

from __future__ import annotations

from typing import NamedTuple

from bitwatch.attach.log_folder import ALL, LogFolder
from bitwatch.attach.log_merge import Shown, around, beginning, ending
from bitwatch.attach.log_search import Direction, Hit, Wanted
from bitwatch.record.rundir import RunDir
from bitwatch.text import counted, size
from bitwatch.tui import keys
from bitwatch.tui.draw import Line, centred, fit, plain
from bitwatch.tui.log_lines import COLOURS, bar, lines_of
from bitwatch.tui.log_search_line import Searching
from bitwatch.tui.log_window import Window

NO_ORDER = "order between ranks is not known here"


class Picture(NamedTuple):
    """All that the page paints."""

    title: str
    subtitle: str
    bar: Line
    bar_places: list[tuple[int, int, int]]
    lines: list[Line]
    status: Line
    searches: bool  # or has searched, and marks what it has found


class Book(Window):
    def __init__(self, run: RunDir, attempt: int, width: int, height: int) -> None:
        super().__init__(width, height)
        self._run = run
        self.searching = Searching()
        self._open(attempt)

    # -- which logs -----------------------------------------------------------------------

    def _open(self, attempt: int) -> None:
        self.attempt = attempt
        self.folder = LogFolder(self._run.logs(attempt))
        self.chosen = ALL
        self.left = 0
        self.start_at_end(self.folder.chosen(ALL))
        self.searching.recount(self.stretch.sources)

    def first(self) -> None:
        self.start(self.stretch.sources, beginning(self.stretch.sources))

    def follow(self) -> None:
        self.start_at_end(self.stretch.sources)

    def names(self) -> list[str]:
        found = [source.name for source in self.folder.sources]
        return [ALL, *found] if len(found) > 1 else found

    def choose(self, name: str) -> None:
        if name == self.chosen or name not in self.names():
            return
        follows, shown = self.follows, self.anchor()
        self.chosen = name
        sources = self.folder.chosen(name)
        if follows or shown is None:
            self.start_at_end(sources)
        else:
            self.start(sources, around(sources, shown.source, shown.row.begin))
        self.searching.recount(sources)

    def choose_number(self, number: int) -> None:
        """The rank with this number; where no log is a rank's, the log in this place."""
        names = self.names()
        if any(name.startswith("rank ") for name in names):
            if f"rank {number}" not in names:
                self.searching.said = f"there is no log of rank {number}"
            self.choose(f"rank {number}")
        elif number < len(names):
            self.choose_at(number)
        else:
            self.searching.said = f"there is no log {number} in the bar"

    def choose_at(self, place: int) -> None:
        """In the bar."""
        names = self.names()
        if 0 <= place < len(names):
            self.choose(names[place])

    def next_source(self, by: int) -> None:
        names = self.names()
        at = names.index(self.chosen) if self.chosen in names else 0
        self.choose_at(at + by)

    def next_attempt(self, by: int) -> None:
        attempts = self._run.attempts()
        others = [n for n in attempts if (n > self.attempt if by > 0 else n < self.attempt)]
        if others:
            self._open(min(others) if by > 0 else max(others))
        else:
            self.searching.said = f"there is no attempt {'after' if by > 0 else 'before'} this one"

    # -- search ---------------------------------------------------------------------------

    def find(self, wanted: Wanted, direction: Direction) -> None:
        sources = self.stretch.sources
        hit = self.searching.hit if wanted is self.searching.wanted else None
        if hit is not None and hit.source in sources and self._is_on_screen(hit):
            places = around(sources, hit.source, hit.row.begin)
            if direction > 0:
                places[hit.source] = _behind(hit)
        elif self.follows:
            places = ending(sources)
        else:
            places = self.places_at(self.top if direction > 0 else self.below())
        self.searching.begin(sources, places, direction, wanted)

    def find_word(self, wanted: Wanted) -> None:
        """Upwards from the end, where one is when one looks for what has been; else downwards."""
        self.find(wanted, -1 if self.follows else 1)

    def find_again(self, direction: Direction) -> None:
        if self.searching.wanted is None:
            self.searching.said = f"{keys.name('logs-search')} asks for a word to find"
        else:
            self.find(self.searching.wanted, direction)

    def work(self) -> bool:
        """Searches on a little; whether that has found something."""
        hit = self.searching.step()
        if hit is not None:
            self._show(hit)
        return hit is not None

    def _is_on_screen(self, hit: Hit) -> bool:
        shown = self.rows()[self.top : self.top + self.height]
        return any(s.source is hit.source and s.row.begin == hit.row.begin for s in shown)

    def _show(self, hit: Hit) -> None:
        """A third of the screen from its top, if it is not on it already."""
        if self._is_on_screen(hit):
            self.follows = False
            return
        sources = self.stretch.sources
        self.start(sources, around(sources, hit.source, hit.row.begin))
        self.up(self.height // 3)

    # -- what comes -----------------------------------------------------------------------

    def look(self) -> bool:
        """Takes in what has been written since the last time; whether something has changed."""
        sources, before = self.stretch.sources, self._state()
        for change in self.folder.look():
            source = change.source
            if change.is_new:
                if self.chosen in (ALL, source.name) and source not in sources:
                    self.stretch.add_source(source)
            elif change.is_another and source in sources:
                self.stretch.begin_anew(source)
                self.searching.gone(source)
            if source in self.stretch.sources and not self.follows:
                self.new_lines += change.lines
        self.searching.more(self.stretch.sources)
        return self._state() != before

    def _state(self) -> list[object]:
        pagers = [source.pager for source in self.folder.sources]
        return [(pager.size, pager.renewed, pager.trouble) for pager in pagers]

    # -- the picture ----------------------------------------------------------------------

    def picture(self) -> Picture:
        self.settle()
        names = self.names()
        sizes = {source.name: source.pager.size for source in self.folder.sources}
        sizes[ALL] = sum(sizes.values())
        chosen = names.index(self.chosen) if self.chosen in names else 0
        shown, places = bar(
            [(plain(name), size(sizes[name])) for name in names], chosen, self.width
        )
        lines, note = self._lines()
        attempts = self._run.attempts()
        of = f" of {len(attempts)}" if len(attempts) > 1 else ""
        if not names:
            shown = Line(" no log yet", "quiet").cut(self.width)
        return Picture(
            f"Logs of attempt {self.attempt}{of}",
            self._where(),
            shown,
            places,
            lines,
            self.searching.line(
                self.width,
                self.folder.troubles(self.stretch.sources) + note,
                attempts=len(attempts),
            ),
            self.searching.wanted is not None,
        )

    def _where(self) -> str:
        if self.follows:
            return "at the end, follows"
        key = keys.name("logs-follow")
        if self.new_lines:
            return f"{counted(self.new_lines, 'new line')} below · {key} follows"
        return f"does not follow · {key} goes to the end"

    def _lines(self) -> tuple[list[Line], list[str]]:
        rows = self.rows()
        if not rows:
            return centred(self._nothing(), self.width, self.height), []
        on_screen = rows[self.top : self.below()]
        lines = [line for shown in on_screen for line in self._drawn(shown)]
        without = [shown for shown in on_screen if not shown.source.is_ordered(shown.row)]
        several = sum(source.live_from > 0 for source in self.stretch.sources) > 1
        return lines[self.skip :][: self.height], [NO_ORDER] if without and several else []

    def _nothing(self) -> str:
        troubles = self.folder.troubles(self.stretch.sources)
        return plain(troubles[0]) if troubles else "nothing has been printed yet"

    def _drawn(self, shown: Shown) -> list[Line]:
        text = self.text(shown)
        lead = Line()
        if width := self.name_width():
            role = f"source-{shown.source.order % COLOURS}"
            lead.add(fit(plain(shown.source.name), width) + "  ", role)
        wanted, hit = self.searching.wanted, self.searching.hit
        is_hit = hit is not None and hit.source is shown.source and hit.row.begin == shown.row.begin
        return lines_of(
            text,
            self.width,
            lead=lead,
            left=None if self.wraps else self.left,
            marks=wanted.marks(text) if wanted else [],
            is_hit=is_hit,
        )


def _behind(hit: Hit) -> int:
    """Where the next row begins: the line of the hit may have been written on since."""
    rows = hit.source.pager.after(hit.row.begin, 1)
    return rows[0].end if rows else hit.row.end
