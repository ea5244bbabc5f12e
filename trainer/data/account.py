"""A reader's own account of what it was given and what it made of it.

It is written by the process that reads, so it is true when no library says anything.
"""

from __future__ import annotations

import dataclasses
import os
import time
import traceback
from pathlib import Path

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.kernel import own_starttime
from bitwatch.record.rundir import RunDir
from trainer.telemetry import process_start

SELDOM_S = 1.0  # between two records of a reader that is reading


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
    """Counts rows, packed sequences and text bytes, and writes them now and then."""

    def __init__(self, journal: JournalWriter | None, record: events.Reader) -> None:
        self.record = record
        self._journal = journal
        self._written_m = time.monotonic()
        self.say("starting")

    def say(self, state: events.ReaderState, error: str = "") -> None:
        self.record.t, self.record.m = time.time(), time.monotonic()
        self.record.state, self.record.error = state, error
        self._written_m = self.record.m
        if self._journal:
            self._journal.write(self.record)

    def say_seldom(self) -> None:
        if self.record.error or time.monotonic() - self._written_m >= SELDOM_S:
            self.say("reading")

    def say_again(self, error: str) -> None:
        """Reading broke off and is tried again: in the account until it goes on, and in the
        log of the rank for good."""
        record = self.record
        print(f"rank {record.rank}, {record.loader} reader {record.worker}: {error}", flush=True)
        self.say("reading", error)

    def close(self) -> None:
        if self._journal:
            self._journal.close()
