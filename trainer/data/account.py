"""A reader's own account of what it was given and what it made of it.

It is written by the process that reads, so it is true when no library says anything.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.kernel import own_starttime
from bitwatch.record.rundir import RunDir
from trainer.telemetry import process_start

SELDOM_S = 1.0  # between two looks at a reader that is at work
LEAVE_S = 2.0  # longest that the end waits for a last look, whose disk may not answer

Shard = int | str | None
# The shard that a reader is in, where that is known, and what changes while it reads even though
# no row may come of it yet (a shuffle buffer that fills).
Where = Callable[[], tuple[Shard, object]]


@dataclasses.dataclass(frozen=True)
class Desk:
    """Where the readers of one loader of one rank keep their accounts."""

    folder: Path  # of the run
    attempt: int
    rank: int
    loader: str

    def open(self, worker: int, workers: int, epoch: int, shards: list[int | str]) -> Account:
        path = RunDir(self.folder).reader(self.attempt, self.rank, self.loader, worker, str(epoch))
        journal = None
        try:
            journal = JournalWriter(path)
        except OSError:  # a full disk: the text can still be read
            traceback.print_exc()
        if journal and workers:  # a process of its own; else the rank has said so already
            journal.write(process_start("worker", self.rank, worker, self.attempt))
        return Account(
            journal,
            events.Reader(
                rank=self.rank,
                loader=self.loader,
                worker=worker,
                pid=os.getpid(),
                starttime=own_starttime(),
                shards=shards,
            ),
        )


class Account:
    """Counts rows, packed sequences and text bytes, and writes what has changed.

    A reader that is held up, in a read or because nobody takes what it has read, cannot write.
    So from `begin` to `close` a thread looks at it, once a second; the reader itself only sets
    fields of its record: counts, then `moved`, then `state`, so that no look between two of
    them sees an old movement with the state "reading".
    """

    def __init__(self, journal: JournalWriter | None, record: events.Reader) -> None:
        self.record = record
        self._journal = journal
        self._lock = threading.Lock()  # of what is written
        self._said: events.Reader | None = None
        self._where: Where = _nowhere
        self._place: object = None
        self._over = threading.Event()
        self._watcher: threading.Thread | None = None
        self.say("starting")

    def begin(self, where: Where) -> None:
        """Reading begins: from now on the account is looked after until its end."""
        self._where = where
        self.say("reading")
        self._watcher = threading.Thread(target=self._watch, name="account", daemon=True)
        self._watcher.start()

    def say(self, state: events.ReaderState, error: str = "") -> None:
        with self._lock:
            self.record.error, self.record.moved = error, time.time()
            self.record.state = state
            self._look()

    def say_again(self, error: str) -> None:
        """Reading broke off and is tried again: in the account until it goes on, and in the
        log of the rank for good."""
        record = self.record
        print(f"rank {record.rank}, {record.loader} reader {record.worker}: {error}", flush=True)
        self.say("reading", error)

    def waits(self) -> None:
        """What was read waits to be taken; `reads` when it was."""
        self.record.moved = time.time()
        self.record.state = "waiting"

    def reads(self) -> None:
        self.record.moved = time.time()
        self.record.state = "reading"

    def close(self) -> None:
        self._over.set()
        if self._watcher:
            self._watcher.join(LEAVE_S)
        with self._lock:
            if self._journal:
                self._journal.close()
                self._journal = None

    def _watch(self) -> None:
        while not self._over.wait(SELDOM_S):
            with self._lock:
                self._look()

    def _look(self) -> None:
        """Writes the account if anything of it is new. The record changes meanwhile: what is
        written is a copy, and what a look has missed the next one finds."""
        try:
            self.record.shard, place = self._where()
        except Exception:  # the inside of a library, while it changes: not known just now
            self.record.shard, place = None, self._place
        if place != self._place:
            self._place = place
            self.record.moved = time.time()
        now = copy.copy(self.record)
        if self._said is not None:
            now.t, now.m = self._said.t, self._said.m
            if now == self._said:
                return
        now.t, now.m = time.time(), time.monotonic()
        self._said = now
        if self._journal:
            self._journal.write(now)


def _nowhere() -> tuple[Shard, object]:
    return None, None
