"""What a long log said before its newest lines: read behind them, in a thread that takes only
what nobody else needs, and thinned out to what a curve can show."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from bitwatch.attach.dialects import Listener
from bitwatch.attach.log_file import LogError, pieces
from bitwatch.attach.sieve import Sieve
from bitwatch.attach.steps import Restart
from bitwatch.attach.translate import Translator
from bitwatch.record import codec, events

MOST_STEPS = 20_000
MANY = 8_000  # lines of one kind
SHAPE_BYTES = 64
MOST_SHAPES = 5_000
NUMBERS = b"0123456789. "
NICE = 10  # the training goes first
IN_HISTORY = (events.Step, events.Evaluation, events.Checkpoint)


class Thinned(Sieve):
    """Of lines that differ in nothing but their numbers, as those of steps do, lets pass the
    first thousands, and then ever fewer: a curve needs no more, and nobody has to look at the
    others. A line like no other always passes."""

    def __init__(self, inner: Sieve) -> None:
        self._inner = inner
        self._seen: dict[bytes, int] = {}

    def spans(self, block: bytes) -> list[tuple[int, int]]:
        seen, kept = self._seen, []
        for begin, end in self._inner.spans(block):
            shape = block[begin : min(end, begin + SHAPE_BYTES)].translate(None, NUMBERS)
            number = seen.get(shape, 0)
            if number or len(seen) < MOST_SHAPES:
                seen[shape] = number + 1
            if number % (1 if number < MANY else 8 if number < 10 * MANY else 64) == 0:
                kept.append((begin, end))
        return kept


class Past:
    """Of one gap in one log. Once it is `done`, `kept` are the steps, evaluations and checkpoints
    of the newest attempt in it, `others` what else there is to say: the model, and what was wrong.
    `starts` is how often it began again there."""

    def __init__(
        self, path: Path, gap: tuple[int, int], listener: Listener, ranks: int, t: float
    ) -> None:
        self._path = path
        self._gap = gap
        self._listener = listener
        self._translator = Translator(ranks)
        self._t = t  # of lines without a time
        self._left = threading.Event()
        self._every = 1
        self._seen = 0
        self._steps: list[events.Step] = []
        self._rare: list[events.Evaluation | events.Checkpoint] = []
        self.others: list[events.Record] = []
        self.starts = 0
        self.trouble = ""
        self._thread = threading.Thread(target=self._read, name="past", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def done(self) -> bool:
        return self._thread.ident is not None and not self._thread.is_alive()

    def leave(self) -> None:
        self._left.set()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def kept(self) -> list[events.Record]:
        return [*self._rare, *self._steps]

    def encoded(self) -> bytes:
        return b"".join(codec.encode(record) for record in self.kept)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # of this thread alone
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        listener = self._listener
        try:
            for lines in pieces(self._path, *self._gap, Thinned(listener.sieve())):
                self._take(listener, lines)
                if self._left.is_set():
                    return
        except LogError as error:
            self.trouble = str(error)

    def _take(self, listener: Listener, lines: list) -> None:
        for told in self._translator.hear(listener.hear(lines), self._t):
            if isinstance(told, Restart):
                self.starts += 1
                self._steps, self._rare, self._every, self._seen = [], [], 1, 0
            elif isinstance(told, events.Step):
                self._keep(told)
            elif isinstance(told, events.Evaluation | events.Checkpoint):
                self._rare.append(told)
                del self._rare[:-MOST_STEPS]
            elif not isinstance(told, events.Phase):
                self.others.append(told)

    def _keep(self, step: events.Step) -> None:
        """Every second one goes when there are too many, and from then on twice as few come."""
        self._seen += 1
        if self._seen % self._every:
            return
        self._steps.append(step)
        if len(self._steps) > MOST_STEPS:
            del self._steps[::2]
            self._every *= 2
