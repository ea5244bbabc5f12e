"""A finished run as it happened: a clock of its own over the record, and the picture it shows.

Nothing here looks at this machine or writes anything; without a thread and with a clock that is
handed in, so that every moment can be asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from bitwatch.attach import recorded_life
from bitwatch.attach.follow import apart, too_new
from bitwatch.attach.gone import trouble_with, with_alert
from bitwatch.attach.recording import Ends, Recording
from bitwatch.attach.telling import Snapshot
from bitwatch.record.rundir import RunDir
from bitwatch.record.series import Copies
from bitwatch.record.view import View, view
from bitwatch.text import duration

GAP_S = 300.0  # without a record: nobody was there who would have written one every minute
LINGER_S = 2.0  # that a picture stays before a gap is jumped over; of the real clock
SAID_S = 6.0  # that a jump is said, of the real clock
SLICE_S = 0.05  # of reading at a stretch
LOOK_S = 2.0  # between two looks at whether the folder is still there
SLOWEST, FASTEST = 1 / 64, 1 << 20


class Place(msgspec.Struct, frozen=True):
    """Where a replay stands. `share` is of the time in which something was recorded. `said`: what
    was jumped over. `reading`: how much of what must be read first has been; None when all.
    `skipped`: lines of the record that are damaged, or of a newer version."""

    at: float
    end: float
    share: float
    speed: float
    paused: bool = False
    over: bool = False
    said: str = ""
    reading: float | None = None
    skipped: int = 0


class Played(Snapshot, frozen=True, kw_only=True):
    """A picture of then."""

    place: Place


class Scale:
    """Time in which something was recorded, as a share of all of it. What lies between two
    attempts, be it a weekend, has no length."""

    def __init__(self, begin: float, end: float, spans: Sequence[Ends]) -> None:
        self._spans: list[Ends] = []
        for span in sorted([Ends(begin, begin), *spans, Ends(end, end)]):
            last = self._spans[-1] if self._spans else span
            if span.first - last.last <= GAP_S:
                joined = Ends(last.first, max(last.last, span.last))
                self._spans[-1:] = [joined]
            else:
                self._spans.append(span)
        self._length = sum(span.last - span.first for span in self._spans)

    def share(self, t: float) -> float:
        before = sum(max(0.0, min(t, span.last) - span.first) for span in self._spans)
        return min(1.0, before / self._length) if self._length else float(t >= self._spans[-1].last)

    def at(self, share: float) -> float:
        left = max(0.0, share) * self._length
        for span in self._spans:
            if left <= span.last - span.first:
                return span.first + left
            left -= span.last - span.first
        return self._spans[-1].last


class Playing:
    """`tick` moves the clock and reads on; the other methods are what a person asks for."""

    def __init__(
        self, run: RunDir, speed: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.run = run
        self.speed = speed
        self.paused = False
        self.recording = Recording(run)
        self.at = self.recording.begin
        self._clock = clock
        self._before = clock()
        self._scale = Scale(self.recording.begin, self.recording.end, self.recording.spans)
        self._is_reading = False
        self._read_from = self.at
        self._backwards = False
        self._said, self._said_until = "", 0.0
        self._copies = Copies()
        self._too_new = too_new(run)
        self._trouble, self._look_next = "", 0.0
        self._last: View | None = None

    @property
    def over(self) -> bool:
        return self.at >= self.recording.end

    # -- what a person asks for ------------------------------------------------------------

    def pause(self) -> None:
        self.paused = not self.paused

    def faster(self, factor: float) -> None:
        speed = self.speed * factor
        if SLOWEST <= speed <= FASTEST or abs(speed - 1) < abs(self.speed - 1):
            self.speed = speed

    def jump(self, seconds: float) -> None:
        self.go_to(self.at + seconds)

    def leap(self, share: float) -> None:
        """By a share of all that was recorded."""
        self.go_to(self._scale.at(self._scale.share(self.at) + share))

    def home(self) -> None:
        self.go_to(self.recording.begin)

    def to_end(self) -> None:
        self.go_to(self.recording.end)

    def go_to(self, t: float) -> None:
        t = min(max(t, self.recording.begin), self.recording.end)
        self._backwards = t < self.at
        self.at, self._said = t, ""
        self.recording.seek(t)
        self._is_reading, self._read_from = True, self.recording.newest

    # -- the clock -------------------------------------------------------------------------

    def tick(self, limit_s: float = SLICE_S) -> None:
        """Lets the time pass that has passed, and reads what was recorded in it; no more than
        about `limit_s` long, and the clock stands still until all of it is read."""
        now = self._clock()
        passed, self._before = now - self._before, now
        if now >= self._look_next:
            self._look_next, self._trouble = now + LOOK_S, trouble_with(self.run)
        if self._trouble:
            return
        if not (self.paused or self._is_reading):
            self.at = min(self.recording.end, self.at + passed * self.speed)
            self._read_from = self.recording.newest
        self._is_reading = not self.recording.fold_to(self.at, limit_s)
        if not self._is_reading:
            self._over_a_gap(now)

    def _over_a_gap(self, now: float) -> None:
        """Who goes back into one sees what was before it; else the clock goes on behind it."""
        newest, following = self.recording.newest, self.recording.next_t
        backwards, self._backwards = self._backwards, False
        if following is None or following > self.recording.end:
            return
        silent_s, lingers_s = following - newest, LINGER_S * self.speed
        if silent_s <= max(GAP_S, lingers_s) or self.at - newest <= lingers_s:
            return
        if backwards:
            self.at = newest
        elif not self.paused:
            self._said = f"{duration(silent_s)} without a record"
            self._said_until = now + SAID_S
            self.at = following
            self._is_reading = not self.recording.fold_to(following, SLICE_S)

    # -- the picture -----------------------------------------------------------------------

    def picture(self) -> Played:
        """While something is still being read, the last one, and how far that is."""
        if self._last is None or not (self._is_reading or self._trouble):
            self._last = self._seen()
        seen = self._last
        if text := self._trouble or self._too_new:
            name = "record-unreadable" if self._trouble else "newer-version"
            seen = with_alert(seen, name, text, self.run, self.at)
        return Played(view=seen, now=self.at, text=text, place=self._place())

    def _seen(self) -> View:
        recording = self.recording
        following = recording.next_t
        silent = following is None or following - recording.newest > GAP_S
        silent = silent and (self.at > recording.newest or self.over)
        life = recorded_life.liveness(recording.state, self.at, silent=silent)
        seen = view(recording.state, self.at, life)
        seen = recorded_life.with_what_was_known(seen, recording.state, recording.minute, self.at)
        return apart(seen, self.run, self._copies)

    def _place(self) -> Place:
        reading = None
        if self._is_reading:
            whole = self.at - self._read_from
            read = self.recording.newest - self._read_from
            reading = min(1.0, max(0.0, read / whole)) if whole > 0 else 0.0
        return Place(
            at=self.at,
            end=self.recording.end,
            share=self._scale.share(self.at),
            speed=self.speed,
            paused=self.paused,
            over=self.over and not self._is_reading,
            said=self._said if self._clock() < self._said_until else "",
            reading=reading,
            skipped=self.recording.skipped,
        )
