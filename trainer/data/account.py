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
from bitwatch.record.journal import JournalReader, JournalWriter
from bitwatch.record.kernel import own_starttime
from bitwatch.record.rundir import RunDir
from trainer.telemetry import process_start

SELDOM_S = 1.0  # between two looks at a reader that is at work
LEAVE_S = 2.0  # longest that anything waits for a look whose disk does not answer, or is full
AGAIN_S = 0.1  # between two tries to write the last word
ENDS_BYTES = 1 << 16  # of an account that is read again: its last record is enough

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
                longest_read_s=self._longest_read_s(worker, epoch - 1),
            ),
        )

    def _longest_read_s(self, worker: int, epoch: int) -> float | None:
        """By the last word of the reader that this one follows."""
        path = RunDir(self.folder).reader(self.attempt, self.rank, self.loader, worker, str(epoch))
        told = [r for r in JournalReader(path, ENDS_BYTES).read() if isinstance(r, events.Reader)]
        if not told or not (told[-1].rows or told[-1].samples):
            return told[-1].longest_read_s if told else None
        return told[-1].longest_read_s or 0.0  # over before anybody looked


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
        self._unsaid = False  # a look has failed, or could not be taken
        self._where: Where = _nowhere
        self._place: object = None
        self._over = threading.Event()
        self._watcher: threading.Thread | None = None
        self._unwatched = False
        self._at = 0.0  # `moved` as the last look found it
        self._still_s = 0.0  # in the read that goes on, as far as looks have seen it
        self.say("starting")

    def begin(self, where: Where) -> None:
        """Reading begins: from now on the account is looked after until its end."""
        self._where = where
        self.say("reading")
        watcher = threading.Thread(target=self._watch, name="account", daemon=True)
        try:
            watcher.start()
            self._watcher = watcher
        except RuntimeError as error:  # one thread too many: the text can still be read
            record = self.record
            print(
                f"rank {record.rank}, {record.loader} reader {record.worker}: {error}, so nothing "
                "says what it does while it reads; raise the limit of processes (ulimit -u, or "
                "of the container)",
                flush=True,
            )
            self._unwatched = True
            self.say("reading")

    def say(self, state: events.ReaderState, error: str = "") -> None:
        self.record.error, self.record.moved = error, time.time()
        self.record.state = state
        self._unsaid = True
        self._look_within(LEAVE_S)

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
        """Waits for the last word to be written, but not long. A write that hangs keeps its
        descriptor: the process takes it along."""
        until = time.monotonic() + LEAVE_S
        self._over.set()
        if self._watcher:
            self._watcher.join(LEAVE_S)
        while self._unsaid and time.monotonic() < until:
            time.sleep(AGAIN_S)
            self._look_within(until - time.monotonic())
        if self._lock.acquire(timeout=max(0.0, until - time.monotonic())):
            if self._journal:
                self._journal.close()
                self._journal = None
            self._lock.release()

    def _watch(self) -> None:
        while not self._over.wait(SELDOM_S):
            with self._lock:
                self._time_the_read()
                self._look()

    def _time_the_read(self) -> None:
        """By looks, not by a clock: no read is long because a machine slept or was set right."""
        record, at = self.record, self._at
        self._at = record.moved
        if record.error:
            self._still_s = 0.0  # it broke off, and a pause is no read
        elif record.state == "reading" and at == record.moved:
            self._still_s += SELDOM_S
        else:
            if record.rows or record.samples or self._still_s:
                record.longest_read_s = max(record.longest_read_s or 0.0, self._still_s)
            self._still_s = 0.0

    def _look_within(self, seconds: float) -> None:
        """Another look that hangs is waited for so long."""
        if self._lock.acquire(timeout=max(0.0, seconds)):
            try:
                self._look()
            finally:
                self._lock.release()

    def _look(self) -> None:
        """Writes the account if anything of it is new. The record changes meanwhile: what is
        written is a copy, and what a look has missed, or a full disk, the next one finds."""
        try:
            self.record.shard, place = self._where()
        except Exception:  # the inside of a library, while it changes: not known just now
            self.record.shard, place = None, self._place
        if place != self._place:
            self._place = place
            self.record.moved = time.time()
        now = copy.copy(self.record)
        if self._unwatched:
            now.moved = 0.0  # nobody knows: it may have moved since without a word
        if self._said is not None:
            now.t, now.m = self._said.t, self._said.m
            now.longest_read_s = self._said.longest_read_s  # goes along with what is new
            if now == self._said:
                self._unsaid = False
                return
            now.longest_read_s = self.record.longest_read_s
        now.t, now.m = time.time(), time.monotonic()
        self._unsaid = self._journal is not None and not self._journal.write(now)
        if not self._unsaid:
            self._said = now


def _nowhere() -> tuple[Shard, object]:
    return None, None
