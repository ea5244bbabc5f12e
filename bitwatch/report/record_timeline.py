"""The timeline of a run's record: bounded, however long the run was.

Of each kind of moment the first and the last are kept, and of the steps some between; what is
left out is counted in an entry of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from bitwatch.record import codec, events
from bitwatch.report.model import Entry, Evidence

# How many of each kind are kept at each end. Together fewer than 200.
KEPT = {
    "lifecycle": 16,
    "alert": 12,
    "action": 8,
    "exit": 8,
    "checkpoint": 6,
    "evaluation": 5,
    "word": 5,
    "model": 4,
    "phase": 4,
    "note": 4,
    "stuck": 4,
    "epoch": 3,
}
PLURALS = {
    "lifecycle": "beginnings and ends of attempts",
    "alert": "alerts raised or cleared",
    "action": "actions",
    "exit": "exits of processes",
    "checkpoint": "checkpoints",
    "evaluation": "evaluations",
    "word": "last words of ranks",
    "model": "models built",
    "phase": "phases",
    "note": "notes",
    "stuck": "looks at stuck ranks",
    "epoch": "ends of epochs",
}
COME_AND_GO = ("worker", "sensor")  # how they end is told when it was no plain end
LONGEST = 300  # characters of an entry
MOST_STEPS = 24  # of all attempts together, beside the first and the last of each


def kind_of(record: codec.Any_) -> str:
    """The kind of moment that a record is; empty for none. A record of a week has very many of
    a few types: each type is judged once, but for exits: with each epoch all workers leave."""
    if isinstance(record, events.ProcessExit):
        plain = record.signal is None and not record.status
        return "" if plain and record.role in COME_AND_GO else "exit"
    kind = _kinds.get(type(record))
    if kind is None:
        kind = _kinds[type(record)] = _kind_of(record)
    return kind


_kinds: dict[type, str] = {}


def _kind_of(record: codec.Any_) -> str:
    match record:
        case (
            events.RunStarted()
            | events.AttemptStarted()
            | events.AttemptEnded()
            | events.RunEnded()
            | events.DataPlanned()
        ):
            return "lifecycle"
        case events.RankEnded():
            return "word"
        case events.ModelBuilt():
            return "model"
    name = type(record).__name__.lower()
    return name if name in KEPT else ""


class Timeline:
    """Takes moments as they are read, and gives entries in order of time."""

    def __init__(self) -> None:
        self._ends: dict[str, _Ends] = {}
        self._steps: list[Entry] = []

    def add(self, kind: str, place: Evidence) -> None:
        text = place.text if len(place.text) <= LONGEST else f"{place.text[:LONGEST]}…"
        entry = Entry(t=place.t, source=place.source, line=place.line, text=text)
        self._ends.setdefault(kind, _Ends(KEPT[kind])).add(entry)

    def add_steps(self, entries: list[Entry]) -> None:
        """Of one file of steps, in its order."""
        self._steps += entries

    def entries(self) -> list[Entry]:
        found = list(_thinned(self._steps))
        for kind, ends in self._ends.items():
            found += ends.entries(PLURALS[kind])
        return in_order(found)


def in_order(entries: list[Entry]) -> list[Entry]:
    """By time; those without one first, as they were read."""
    return sorted(entries, key=lambda entry: entry.t or 0.0)


class _Ends:
    """The first and the last of many."""

    def __init__(self, kept: int) -> None:
        self._first: list[Entry] = []
        self._last: deque[Entry] = deque(maxlen=kept)
        self._kept = kept
        self._omitted = 0
        self._newest_omitted: Entry | None = None

    def add(self, entry: Entry) -> None:
        if len(self._first) < self._kept:
            self._first.append(entry)
            return
        if len(self._last) == self._kept:
            self._omitted += 1
            self._newest_omitted = self._last[0]
        self._last.append(entry)

    def entries(self, plural: str) -> Iterator[Entry]:
        yield from self._first
        omitted = self._newest_omitted
        if omitted is not None:
            text = f"… {self._omitted:,} more {plural} before this are in the record"
            yield Entry(t=omitted.t, source=omitted.source, line=omitted.line, text=text)
        yield from self._last


def _thinned(entries: list[Entry]) -> list[Entry]:
    """Evenly, with the first and the last among them."""
    if len(entries) <= MOST_STEPS:
        return entries
    share = (len(entries) - 1) / (MOST_STEPS - 1)
    return [entries[round(i * share)] for i in range(MOST_STEPS)]


class Sampled:
    """Some of very many lines, evenly: every so many-th is kept, and twice as few each time
    there are too many. `last` is the newest, whatever its number."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.kept: list[tuple[int, bytes]] = []
        self.first: tuple[int, bytes] | None = None
        self.last: tuple[int, bytes] | None = None
        self.count = 0
        self._most = most
        self._every = 1

    def add(self, numbers: list[int], lines: list[bytes]) -> None:
        if not lines:
            return
        self.first = self.first or (numbers[0], lines[0])
        self.last = (numbers[-1], lines[-1])
        at = -self.count % self._every  # of the first whose place is a multiple
        while at < len(lines):
            self.kept.append((numbers[at], lines[at]))
            if len(self.kept) > 2 * self._most:
                self.kept = self.kept[::2]
                self._every *= 2
                at += -(self.count + at) % self._every or self._every
            else:
                at += self._every
        self.count += len(lines)

    def lines(self) -> list[tuple[int, bytes]]:
        """Fewer than about twice as many as wanted, in order, the last among them."""
        ends = [self.last] if self.last and self.last != self.kept[-1] else []
        return [*self.kept, *ends]
