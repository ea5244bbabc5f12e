"""All files of a finished run, read as one story in the order in which it happened.

Of every file only a piece is in memory, however long it is: a record of a week is never read as
a whole. `Recording.fold_to` takes what was recorded up to a moment; to go back, it begins again
from the nearest of a few states that it has kept on its way.
"""

from __future__ import annotations

import bisect
import copy
import heapq
import math
import os
import time
from operator import attrgetter, lt
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bitwatch.record import codec, events
from bitwatch.record.follow import ASIDE_FILE, RANK_FILE, READER_FILE
from bitwatch.record.journal import JournalReader
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.series import Series
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, Source, fold

PIECE_BYTES = 128 << 10
WINDOW = 64  # records of a file that may stand before one that happened earlier
ENDS_BYTES = (64 << 10, 1 << 20, 8 << 20)  # looked at for a first and a last time
LATEST_T = 253_402_300_800.0  # the year 10,000: no clock is set so
STRIDES = 500  # of the whole time: all files are read up to the end of one before the next
KEPT_STATES = 12
KEPT_EVERY = 20_000  # records between two kept states, at first

_time = attrgetter("t")


class Ends(NamedTuple):
    """The times of the first and the last record of a stream."""

    first: float
    last: float


class Stream:
    """Files of one source, one after the other, as if they were one, in order of time. A record
    with an impossible time counts as written with the one before it."""

    def __init__(self, source: Source, paths: list[Path]) -> None:
        self.source = source
        self.paths = paths  # that are still to be read
        self._skipped = 0
        self._reader: JournalReader | None = None
        self._waiting: list[codec.Any_] = []
        self._before = 0.0

    @property
    def skipped(self) -> int:
        """Lines so far that were no record."""
        return self._skipped + (self._reader.skipped if self._reader else 0)

    def ends(self) -> Ends | None:
        """None without any record. Reads the ends of its first and its last file alone."""
        first = next((found for path in self.paths if (found := _ends(path))), None)
        last = next((found for path in reversed(self.paths) if (found := _ends(path))), None)
        return Ends(first.first, last.last) if first and last else None

    def next_t(self) -> float | None:
        """When the next record was written; None after the last."""
        self._fill()
        return self._waiting[0].t if self._waiting else None

    def take(self, until: float) -> list[codec.Any_]:
        """Some of the records up to and with this time, the next ones."""
        self._fill()
        number = bisect.bisect_right(self._waiting, until, key=_time)
        if self.paths:  # what comes may have happened before what waits
            number = min(number, len(self._waiting) - WINDOW)
        taken = self._waiting[:number]
        del self._waiting[:number]
        return taken

    def copied(self) -> Stream:
        """One that goes on from here by itself."""
        other = copy.copy(self)
        other.paths = list(self.paths)
        other._reader = copy.copy(self._reader)
        other._waiting = list(self._waiting)
        return other

    def _fill(self) -> None:
        """Until more than a window waits, or there is no more."""
        while self.paths and len(self._waiting) <= WINDOW:
            self._reader = self._reader or JournalReader(self.paths[0])
            before = self._reader.offset
            records = self._reader.read(PIECE_BYTES)
            if self._reader.offset == before:
                self._skipped += self._reader.skipped
                self._reader = None
                del self.paths[0]
                continue
            times = list(map(_time, records))
            if times and not (min(times) > 0.0 and max(times) < LATEST_T):
                self._mend(records)
            self._before = records[-1].t if records else self._before
            self._waiting += records
            times = list(map(_time, self._waiting))
            if any(map(lt, times[1:], times)):
                self._waiting.sort(key=_time)

    def _mend(self, records: list[codec.Any_]) -> None:
        before = self._before
        for record in records:
            if not 0.0 < record.t < LATEST_T:
                record.t = before
            before = record.t


class Kept(NamedTuple):
    """Where a recording stood once. `newest` is the latest time of what had been folded."""

    newest: float
    state: RunState
    minute: events.Minute | None
    streams: list[Stream]
    queue: list[tuple[float, int]]


class Recording:
    """`state` is the fold of what was recorded up to a moment, `newest` the time of the last
    record of that, `minute` the last aggregate. `begin` and `end` are the times of the whole,
    `spans` those between which its attempts wrote."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self.state = RunState()
        self.minute: events.Minute | None = None
        self._streams = streams(run)
        self._queue: list[tuple[float, int]] = []  # (next time, number of the stream)
        found: dict[int, Ends] = {}
        for number, stream in enumerate(self._streams):
            if ends := stream.ends():
                found[number] = ends
                self._queue.append((ends.first, number))
        heapq.heapify(self._queue)
        self.is_empty = not found
        self.begin = self.newest = min((ends.first for ends in found.values()), default=0.0)
        self.end = max((self.begin, *(ends.last for ends in found.values())))
        self.spans = self._spans(found)
        if _is_foreign(run):  # its log may tell of hours before somebody began to record it
            self.state.journal.run = events.RunStarted(run=run.id, foreign=True, t=self.begin)
        self._stride_s = max(1.0, (self.end - self.begin) / STRIDES)
        self._folded = 0  # records since a state was kept
        self._every = KEPT_EVERY
        self._kept = [self._keep()]

    @property
    def next_t(self) -> float | None:
        return self._queue[0][0] if self._queue else None

    @property
    def skipped(self) -> int:
        return sum(stream.skipped for stream in self._streams)

    def fold_to(self, t: float, limit_s: float = math.inf) -> bool:
        """Folds in what was recorded up to and with this time; whether that is all of it, after
        about `limit_s` seconds."""
        deadline = time.monotonic() + limit_s
        while self._queue and self._queue[0][0] <= t:
            upto = min(t, self._queue[0][0] + self._stride_s)
            while self._queue and self._queue[0][0] <= upto:
                if time.monotonic() >= deadline:
                    return False
                _, number = heapq.heappop(self._queue)
                stream = self._streams[number]
                self._fold(stream.source, stream.take(upto))
                following = stream.next_t()
                if following is not None:
                    heapq.heappush(self._queue, (following, number))
            if self._folded >= self._every and self.newest > self._kept[-1].newest:
                self._remember()
        return True

    def seek(self, t: float) -> None:
        """Stands as near before this moment as it can at once, and never after it."""
        last = next(kept for kept in reversed(self._kept) if kept.newest <= max(t, self.begin))
        if self.newest <= t and self.newest >= last.newest:
            return
        self.newest, self.minute = last.newest, last.minute
        self.state, self._queue = copied(last.state), list(last.queue)
        self._streams = [stream.copied() for stream in last.streams]
        self._folded = 0

    def _fold(self, source: Source, records: list[codec.Any_]) -> None:
        if not records:
            return
        fold(self.state, source, records)
        self.newest = max(self.newest, records[-1].t)
        if source == JOURNAL:
            minutes = [record for record in records if isinstance(record, events.Minute)]
            self.minute = minutes[-1] if minutes else self.minute
        self._folded += len(records)

    def _remember(self) -> None:
        self._folded = 0
        self._kept.append(self._keep())
        if len(self._kept) > KEPT_STATES:
            del self._kept[1::2]
            self._every *= 2

    def _keep(self) -> Kept:
        streams = [stream.copied() for stream in self._streams]
        return Kept(self.newest, copied(self.state), self.minute, streams, list(self._queue))

    def _spans(self, found: dict[int, Ends]) -> list[Ends]:
        """Of each attempt by its own files: the journal and the samples go on between them."""
        spans: dict[int, Ends] = {}
        for number, ends in found.items():
            attempt = self._streams[number].source.attempt
            if attempt:
                known = spans.get(attempt, ends)
                spans[attempt] = Ends(min(known.first, ends.first), max(known.last, ends.last))
        return sorted(spans.values())


def streams(run: RunDir) -> list[Stream]:
    """Of all files there are. Those of a reader's incarnations are one, and so are the samples."""
    files: dict[Source, list[tuple[int, Path]]] = {JOURNAL: [(0, run.journal)]}
    for at, name in enumerate(_names(run.samples)):
        files.setdefault(SAMPLES, []).append((at, run.samples / name))
    for attempt in run.attempts():
        folder = run.attempt(attempt)
        for kind, path in (("prepare", run.prepare(attempt)), ("history", run.history(attempt))):
            files[Source(kind, attempt)] = [(0, path)]
        for name in _names(folder):
            if match := RANK_FILE.fullmatch(name):
                files[Source("rank", attempt, int(match[1]))] = [(0, folder / name)]
            elif match := ASIDE_FILE.fullmatch(name):
                files[Source("unwritten", attempt, int(match[1]))] = [(0, folder / name)]
        for name in _names(folder / "readers"):
            if match := READER_FILE.fullmatch(name):
                source = Source("reader", attempt, name=match[1])
                files.setdefault(source, []).append((int(match[2]), folder / "readers" / name))
    return [
        Stream(source, [path for _, path in sorted(paths) if path.is_file()])
        for source, paths in files.items()
    ]


def copied(state: Any) -> Any:
    """A state that can be folded into while the other stays. Records are never changed."""
    match state:
        case Series():
            return state.copy()
        case events.Record():
            return state
        case msgspec.Struct():
            fields = {name: copied(getattr(state, name)) for name in state.__struct_fields__}
            return msgspec.structs.replace(state, **fields)
        case dict():
            return {key: copied(value) for key, value in state.items()}
        case list() | set():
            return state.copy()
    return state


def _ends(path: Path) -> Ends | None:
    for size in ENDS_BYTES:
        times = [record.t for record in JournalReader(path, size).read()]
        times = [t for t in times if 0.0 < t < LATEST_T]
        if times:  # what happened first need not stand first
            return Ends(min(times), max(times))
    return None


def _is_foreign(run: RunDir) -> bool:
    try:
        return run.identity().foreign
    except RunDirError:
        return False


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
