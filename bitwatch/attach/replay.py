"""A finished run for a screen, played in a thread of its own: `attach.follow.Feed` of the past.

It only reads. No supervisor is started, nothing is written, no process is looked at, and what a
person might want done to the run is refused: what is on the screen is over.
"""

from __future__ import annotations

import math
import os
import queue
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bitwatch.attach import choose
from bitwatch.attach.gone import with_alert
from bitwatch.attach.playing import Played, Playing
from bitwatch.attach.recording import streams
from bitwatch.attach.telling import Snapshot, Telling
from bitwatch.record import rundir
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.view import View

TICK_S = 0.25  # between two pictures
USUAL_SPEED = 60.0
REFUSED = "this is a replay of what is over: nothing can be done to it"

Wish = Callable[[Playing], None]


def speed(word: str | None) -> float:
    """How many times as fast as it happened. Raises RunDirError."""
    try:
        factor = USUAL_SPEED if word is None else float(word)
    except ValueError:
        factor = 0.0
    if not 0.0 < factor < math.inf:
        raise RunDirError(f"--speed {word}: give a number above 0, as in --speed 60")
    return factor


def opened(home: Path, word: str) -> RunDir:
    """The run that a word names, if it can be played. Raises RunDirError.

    One that is live is not: its record has no end yet, so that "it is over" would be a lie, and
    what has been of it so far is on its own screen."""
    if os.path.isfile(os.path.join(word, "run.json")):
        run = RunDir(Path(word).absolute())
    elif os.path.exists(word):
        raise RunDirError(f"{word}: is no run; --replay takes a run's id or its folder")
    else:
        run = rundir.find(home, word)
    run.identity()
    if choose.is_live(run):
        raise RunDirError(
            f"{run.id}: is still going on; `bitwatch attach {run.id}` shows it, and --replay plays "
            "it when it has ended"
        )
    return run


class Replay(Telling):
    """A source of pictures (`tui.app.Source`) that plays from the beginning. The clock waits for
    the first picture to be seen. Raises RunDirError when nothing was recorded."""

    def __init__(
        self, run: RunDir, speed: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(run, self._play, "replay")
        self._playing = Playing(run, speed, clock)
        if self._playing.recording.is_empty:
            raise RunDirError(f"{run.path}: {_nothing(run)}, so there is nothing to replay")
        self._playing.tick(math.inf)
        self.latest = self._playing.picture()
        self._wishes: queue.SimpleQueue[Wish | None] = queue.SimpleQueue()

    def close(self) -> None:
        super().close()
        self._wishes.put(None)

    def wish(self, wish: Wish) -> None:
        """What a person wants of the clock; done by the thread, at once."""
        self._wishes.put(wish)

    # -- the playing thread -----------------------------------------------------------------

    def _play(self) -> None:
        self._go_on.wait()
        shown: Played | None = None
        due = 0.0
        while not self._closed.is_set():
            try:
                if (wish := self._next_wish(shown)) is not None:
                    wish(self._playing)
                self._playing.tick()
                picture = self._playing.picture()
            except Exception as error:  # a picture that stands still would be a lie
                self._hand_over(self._failed(error))
                return
            changed = shown is None or (picture.place, picture.text) != (shown.place, shown.text)
            # While much is read, each picture would only say so, and cost more than the reading.
            if changed and (picture.place.reading is None or time.monotonic() >= due):
                due = time.monotonic() + TICK_S
                self._hand_over(picture)
            shown = picture

    def _next_wish(self, shown: Played | None) -> Wish | None:
        """Waits for the next tick, or for a wish; not at all while there is much to read."""
        is_reading = shown is not None and shown.place.reading is not None
        try:
            return self._wishes.get(timeout=0.001 if is_reading else TICK_S)
        except queue.Empty:
            return None

    def _failed(self, error: Exception) -> Snapshot:
        text = f"this run cannot be played on ({type(error).__name__}: {error})"
        seen = self.latest.view if self.latest else View()
        now = self.latest.now if self.latest else 0.0
        return Snapshot(with_alert(seen, "record-unreadable", text, self.run, now), now, text=text)


class Refusing:
    """Commands of a screen that shows the past."""

    def stop(self, run: RunDir, attempt: int) -> str:
        raise RunDirError(REFUSED)

    def clean(self, run: RunDir) -> str:
        raise RunDirError(REFUSED)

    def end_left(self, run: RunDir, targets: Sequence[tuple[int, int]]) -> str:
        raise RunDirError(REFUSED)

    def relaunch(self, run: RunDir, attempt: int, correction: str) -> str:
        raise RunDirError(REFUSED)

    def signal(self, run: RunDir, targets: Sequence[tuple[int, int]], name: str) -> str:
        raise RunDirError(REFUSED)


def _nothing(run: RunDir) -> str:
    if any(path.stat().st_size for stream in streams(run) for path in stream.paths):
        return "nothing in its files is a record that this version knows"
    return "it has no records"
