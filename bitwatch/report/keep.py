"""What of a log is kept for a report: all that it says, as far as that is bounded, and its steps
as runs that follow one another.

A step that falls back begins a new run of steps. Where steps go back and forth between two
series, two trainings write into one log.
"""

from __future__ import annotations

import math
from collections import deque

from bitwatch.attach.said import Line, Said, What
from bitwatch.report.buffered import Doubts
from bitwatch.report.facts import LogSeen, StepRun, position_of

FIRST_KEPT = 500  # of each kind of thing that a log says
LAST_KEPT = 100
TRACKS = 4  # series of steps that are told apart in one log
RECENT = 64  # steps heard since a series was written to, for it to be still alive
SWITCHES = 3  # between two series, until they are two trainings
MIXED_KEPT = 6
BACKWARDS_S = 2.0  # between loggers of several processes
ENDS = ("out-of-memory", "exception", "timeout", "failure", "signal", "done")
SURVIVED_BY = 2  # steps after an end: one may be another rank's, on its way already
MOST_AWAITING = 200  # ends after which steps are awaited at a time

Key = tuple[str, object]


class _Track:
    """One series of steps."""

    def __init__(self, run: StepRun, position: float) -> None:
        self.run = run
        self.position = position
        self.jump = 0.0
        self.repeats = 0  # the same number again: several ranks print it
        self.heard_at = 0

    def goes_on(self, said: Said, position: float) -> None:
        if position > self.position:
            self.jump = position - self.position
            self.position = position
        else:
            self.repeats += 1
        self.run.last = said
        self.run.count += 1


class _End:
    """What may have ended the training, if no steps follow. `reached`: how far it is known to
    be."""

    def __init__(self, line: int, reached: float) -> None:
        self.line = line
        self.reached = reached
        self.steps = 0


class Keeper:
    """Hears what one log says, in order."""

    def __init__(self, log: LogSeen) -> None:
        self.log = log
        self._kept: list[tuple[int, Said | StepRun]] = []
        self._later: dict[What, deque[tuple[int, Said]]] = {}
        self._counts: dict[What, int] = {}
        self._heard = 0
        self._tracks: dict[Key, list[_Track]] = {}
        self._key: Key = ("", None)  # of the last step
        self._switches = 0
        self._latest: Line | None = None
        self._reached = -math.inf  # by the last step
        self._awaiting: list[_End] = []
        self._doubts = Doubts()

    def hear(self, said: Said) -> None:
        self._heard += 1
        self._time(said.line)
        self._doubts.hear(said)
        if said.what == "step":
            self._step(said)
            return
        if said.what in ENDS and said.line.number and len(self._awaiting) < MOST_AWAITING:
            self._awaiting.append(_End(said.line.number, self._reached))
            self._doubts.begin(said)
        count = self._counts[said.what] = self._counts.get(said.what, 0) + 1
        if count <= FIRST_KEPT:
            self._kept.append((self._heard, said))
        else:
            later = self._later.setdefault(said.what, deque(maxlen=LAST_KEPT))
            later.append((self._heard, said))

    def end(self, lines: int = 0) -> LogSeen:
        """`lines`: how many the log has, heard or not."""
        self._doubts.end(lines)
        for line in self._doubts.found:
            if (step := self.log.went_on.pop(line, None)) is not None:
                self.log.buffered[line] = step
        later = [one for kept in self._later.values() for one in kept]
        self.log.left_out = sum(self._counts.values()) - len(later)
        self.log.left_out -= sum(min(count, FIRST_KEPT) for count in self._counts.values())
        self.log.said = [said for _, said in sorted([*self._kept, *later], key=lambda one: one[0])]
        return self.log

    def _time(self, line: Line) -> None:
        if line.t is None:
            return
        before, log = self._latest, self.log
        if before is not None and before.t is not None and line.t < before.t - BACKWARDS_S:
            log.backwards = log.backwards or (before, line)
        self._latest = line
        log.begins = line.t if log.begins is None else min(log.begins, line.t)
        log.ends = line.t if log.ends is None else max(log.ends, line.t)

    def _step(self, said: Said) -> None:
        position = position_of(said)
        if position is None:
            return
        self._reached = position
        if self._awaiting:
            self._goes_on(said, position)
        key = (said.dialect, said.values.get("steps"))
        same = self._tracks[key] if key == self._key else []
        if len(same) == 1 and position > same[0].position and is_finite(said):
            same[0].goes_on(said, position)  # as nearly all lines of a long log
            _judge_loss(same[0].run, said)
            same[0].heard_at = self._heard
            return
        self._key = key
        tracks = self._tracks.setdefault(key, [])
        track = self._track_for(said, position, tracks)
        if track is not None:
            if tracks[-1] is not track:
                self._switched(said, tracks, track)
            track.goes_on(said, position)
        else:
            track = self._begin(said, position, tracks)
        track.heard_at = self._heard
        _judge_loss(track.run, said)

    def _goes_on(self, said: Said, position: float) -> None:
        """Which ends were none, now that this step is there."""
        for end in self._awaiting:
            if position > end.reached:
                end.reached = position
                end.steps += 1
                if end.steps == SURVIVED_BY:
                    self.log.went_on[end.line] = said
        self._awaiting = [one for one in self._awaiting if one.steps < SURVIVED_BY]

    def _track_for(self, said: Said, position: float, tracks: list[_Track]) -> _Track | None:
        """The series that this step goes on; None for a new one. The current one is last."""
        if not tracks:
            return None
        current = tracks[-1]
        if 0 < position - current.position <= current.jump:
            return current  # as evenly as before, whatever an older series has reached
        near = [
            track
            for track in tracks
            if track.position <= position
            and (track is current or self._heard - track.heard_at <= RECENT)
        ]
        if near:
            return min(reversed(near), key=lambda track: position - track.position)
        several = current.repeats > 0 or "rank" in said.values
        if several and current.position - position <= max(current.jump, 1.0):
            return current  # a rank that prints a little later than the others
        return None

    def _switched(self, said: Said, tracks: list[_Track], track: _Track) -> None:
        tracks.remove(track)
        tracks.append(track)
        self._switches += 1
        if self._switches >= SWITCHES and len(self.log.mixed) < MIXED_KEPT:
            self.log.mixed.append(said.line)

    def _begin(self, said: Said, position: float, tracks: list[_Track]) -> _Track:
        fell_back = bool(tracks) and not _was_whole(tracks[-1]) and not _next_epoch(tracks, said)
        run = StepRun(first=said, last=said, fell_back=fell_back)
        track = _Track(run, position)
        tracks.append(track)
        del tracks[:-TRACKS]
        if len(self._kept) < 20 * FIRST_KEPT:
            self._kept.append((self._heard, run))
        return track


def is_finite(said: Said) -> bool:
    loss = said.values.get("loss")
    if isinstance(loss, str):
        return loss.strip().lower().lstrip("+-") not in ("nan", "inf", "infinity")
    return loss is None or math.isfinite(loss)


def _judge_loss(run: StepRun, said: Said) -> None:
    """A loss that is no number may be one step's, which was skipped, or the end of the model."""
    if not is_finite(said):
        if run.nonfinite is None or run.finite_again is not None:
            run.nonfinite, run.finite_again = said, None
    elif run.nonfinite is not None and run.finite_again is None and "loss" in said.values:
        run.finite_again = said


def _was_whole(track: _Track) -> bool:
    """It reached its end, as a progress bar that begins again for the next epoch."""
    steps = track.run.last.values.get("steps")
    return isinstance(steps, int | float) and track.position >= steps - 1


def _next_epoch(tracks: list[_Track], said: Said) -> bool:
    before, now = tracks[-1].run.last.values.get("epoch"), said.values.get("epoch")
    return isinstance(before, int | float) and isinstance(now, int | float) and now > before
