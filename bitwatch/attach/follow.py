"""A run for a screen: read in a thread of its own, handed over as one picture a tick.

The newest picture comes first, then the history behind it in small pieces, then what is
written from now on. Whoever shows the pictures never reads a file and never looks into /proc.
What can happen to a run directory meanwhile (deleted, unreadable, moved to another host, from
a newer version) is a state of the picture with a sentence, never an exception.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import msgspec

from bitwatch.attach.gone import trouble_with, with_alert, without_record
from bitwatch.attach.keeping import Keeper
from bitwatch.attach.others import Other, Others, with_leftovers
from bitwatch.attach.telling import Mode, Snapshot, Telling
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower, Liveness
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.series import Copies
from bitwatch.record.state import RunState
from bitwatch.record.view import END_STATES, View, view
from bitwatch.supervise import begin, leftovers

TICK_S = 0.25  # between two looks at the journal: what is done to the run is seen at once
PICTURE_S = 1.0  # between two looks at everything else, as often as it is sampled
LEFTOVERS_S = 2.0
FAILED_S = 2.0
FILL_S = 0.01  # of history at a stretch; the screen's thread runs in between
BREATH_S = 0.005
FORMAT = 1  # of run.json, the newest that is understood here

Key = tuple[int, int]


class Feed(Telling):
    """Reads one run until `close`; the history waits for `go_on`. A training that bitwatch did not
    start is watched, and recorded, for as long as somebody reads it so."""

    def __init__(self, run: RunDir) -> None:
        super().__init__(run, self._read, "feed")
        self._keeper = Keeper(run)

    def close(self) -> None:
        super().close()
        self._keeper.close()

    @property
    def watcher(self) -> int | None:
        """The pid of the process that records a training which is not bitwatch's, if it is ours."""
        return self._keeper.pid

    # -- the reading thread ---------------------------------------------------------------

    def _read(self) -> None:
        reading = Reading(self.run)
        shown = 0.0
        taken_over = False
        while not self._closed.is_set():
            began = time.monotonic()
            try:
                due = began - shown > PICTURE_S - TICK_S / 2
                news = reading.poll() if due or reading.filling else reading.poll_journal()
                if due or news:
                    shown = began
                    self._hand_over(reading.snapshot())
                self._go_on.wait()
                if not taken_over:
                    taken_over = True
                    self._take_over()
                self._keeper.look(reading.state)
                while reading.behind and time.monotonic() - began < TICK_S:
                    reading.fill(FILL_S)
                    if self._closed.wait(BREATH_S):
                        return
                reading.look_around()
            except Exception as error:  # a picture that stands still would be a lie
                self._hand_over(reading.failed(error))
                reading = Reading(self.run)
                self._closed.wait(FAILED_S)
            self._closed.wait(max(0.0, TICK_S - (time.monotonic() - began)))

    def _take_over(self) -> None:
        """Who comes to look after a run brings it a supervisor, if it has lost its own. What
        stands in the way is on the picture already: that it has none."""
        if not self._closed.is_set():
            with contextlib.suppress(RunDirError, OSError):
                begin.take_over(self.run, f"the screen (pid {os.getpid()})", "attach")


class Reading:
    """What the thread does, without the thread."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self._follower = Follower(run, newest_first=True)
        self._trouble = ""
        self._elsewhere = ""  # as it was when the folder could be read
        self._too_new = ""
        self._behind_of = 0
        self._filled = False
        self._mode: Mode = "live"
        self._leftovers_next = 0.0
        self._leftovers: tuple[events.ProcessStart, ...] = ()
        self._last: View | None = None
        self._copies = Copies()
        self._watch = Others(run)
        self._home_is_read = False
        self._others: tuple[Other, ...] | None = None  # None before the first look
        self._seen_with_others: set[Key] = set()

    @property
    def state(self) -> RunState:
        return self._follower.state

    @property
    def filling(self) -> bool:
        """Whether the picture has grown behind its newest part since it was made."""
        return self._filled

    @property
    def behind(self) -> bool:
        """Whether something old is still to be read: the history, then the other runs' records."""
        follower = self._follower
        return bool(follower.history or follower.gpu_past) or not self._home_is_read

    def poll(self) -> bool:
        """Reads what is new; whether the picture may have changed."""
        trouble = trouble_with(self.run)
        changed = trouble != self._trouble
        if changed:
            before, self._trouble = self._trouble, trouble
            self._watch.look_soon()  # what belongs to no run any more is another's, or nobody's
            if not trouble and before:  # it is back, and may be another one
                self._follower = Follower(self.run, newest_first=True)
        elif not trouble and not self._too_new:
            self._too_new = too_new(self.run)
        news = False if trouble else self._follower.poll()
        self._behind_of = max(self._behind_of, len(self._follower.history))
        return news or self._filled or changed

    def poll_journal(self) -> bool:
        """The same of what is done to the run and what befalls it, which shows at once."""
        return not self._trouble and self._follower.poll_journal()

    def fill(self, limit_s: float) -> None:
        """Some of the history, newest attempt first; then of what `look_around` needs."""
        if not self._follower.history and not self._follower.gpu_past:
            self._home_is_read = self._watch.read(limit_s)
            return
        self._filled = True
        deadline = time.monotonic() + limit_s
        while self._follower.history and time.monotonic() < deadline:
            past = self._follower.history[0]
            past.piece()
            if past.done:
                self._follower.history.pop(0)
        while (gpu_past := self._follower.gpu_past) and time.monotonic() < deadline:
            gpu_past.piece()
            if gpu_past.done:
                self._follower.gpu_past = None

    def look_around(self) -> None:
        """Who is there beside the live attempt. Between two pictures, for it may take a while."""
        if self._last is None or self.behind:
            return
        found = {(one.pid, one.starttime) for one in self._leftovers}
        if not self._watch.is_due() and found == self._seen_with_others:
            return
        self._seen_with_others = found
        before, self._others = self._others, ()
        if not self._is_elsewhere():
            self._others = self._watch.look(self._follower.state)
        self._filled = self._filled or before != self._others

    def _is_elsewhere(self) -> bool:
        """Whether the run is of another machine: who is on this one has nothing to do with it."""
        try:
            return rundir.is_here(self.run.identity()) not in ("", rundir.REBOOTED)
        except RunDirError:
            return self._elsewhere not in ("", rundir.REBOOTED)

    def snapshot(self) -> Snapshot:
        self._filled = False
        now = time.time()
        if self._trouble and self._last:
            return self._without_record(self._last, now)
        follower = self._follower
        alive = self._alive()
        seen = view(follower.state, now, alive)
        if seen.state in END_STATES:
            self._mode = "ended"
        else:
            lost = seen.supervisor == "gone" and not seen.foreign
            self._mode = "reconnecting" if lost else "live"
        seen = apart(seen, self.run, self._copies)
        seen = with_leftovers(seen, self._others or (), now)
        if text := self._trouble or self._too_new:
            name = "record-unreadable" if self._trouble else "newer-version"
            seen = with_alert(seen, name, text, self.run, now)
        self._last = seen
        return self._picture(seen, now, text)

    def _without_record(self, last: View, now: float) -> Snapshot:
        """Of what cannot be read only the processes can be known, on the machine that they are of."""
        if self._elsewhere:
            seen = with_alert(last, "record-unreadable", self._trouble, self.run, now)
        else:
            state = self._follower.state
            seen = without_record(self.run, last, state, self._trouble, now)
            seen = with_leftovers(seen, self._others or (), now)
        mode: Mode = "ended" if seen.state in END_STATES else "reconnecting"
        text = seen.alerts[0].text
        return Snapshot(seen, now, mode, text, self._share(), self._others or ())

    def _picture(self, seen: View, now: float, text: str) -> Snapshot:
        return Snapshot(seen, now, self._mode, text, self._share(), self._others or ())

    def _alive(self) -> Liveness:
        """What lives, with the leftovers of ended attempts; those are looked for less often."""
        alive = self._follower.liveness()
        self._elsewhere = alive.elsewhere
        if alive.elsewhere:
            return alive
        if time.monotonic() >= self._leftovers_next:
            self._leftovers_next = time.monotonic() + LEFTOVERS_S
            state = self._follower.state
            ours = state.journal.run is None or not state.journal.run.foreign
            ended = leftovers.ended_attempts(state) if ours else set()
            self._leftovers = tuple(leftovers.find(state, ended))
        return msgspec.structs.replace(alive, leftovers=tuple(self._agreed()))

    def _agreed(self) -> Iterator[events.ProcessStart]:
        """Once the machine has been looked at, only those that this calls leftovers too."""
        known = {other.key for other in self._others or () if other.group == "leftover"}
        for start in self._leftovers:
            if self._others is None or (start.pid, start.starttime) in known:
                yield start

    def failed(self, error: Exception) -> Snapshot:
        """When reading fails in a way that nobody foresaw: said, and tried again."""
        text = f"this run cannot be followed ({type(error).__name__}: {error}); trying again"
        now = time.time()
        seen = with_alert(self._last or View(), "record-unreadable", text, self.run, now)
        return Snapshot(seen, now, "reconnecting", text)

    def _share(self) -> float:
        left = self._follower.history
        if not left:
            return 1.0
        whole = self._behind_of - len(left)
        return (whole + left[0].share) / self._behind_of


def too_new(run: RunDir) -> str:
    """A sentence about a run that a newer version has made; empty otherwise."""
    try:
        made = run.identity().format
    except RunDirError:
        return ""
    if made <= FORMAT:
        return ""
    return (
        f"made by a newer version of bitwatch (format {made}, this one knows {FORMAT}): "
        "what this version understands is shown"
    )


def apart(seen: View, run: RunDir, copies: Copies) -> View:
    """A picture that another thread may look at while the state behind it is folded on."""
    copies.begin()
    return msgspec.structs.replace(
        seen,
        run=seen.run or run.id,
        recent=list(seen.recent),
        gpu_history=seen.gpu_history.picture(),
        loss=[(attempt, copies.of(series)) for attempt, series in seen.loss],
        curves={
            name: [(attempt, copies.of(series)) for attempt, series in curves]
            for name, curves in seen.curves.items()
        },
    )
