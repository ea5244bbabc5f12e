"""Full-rate samples in one file an hour; the last two hours stay."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter

HOURS_KEPT = 2


class SampleWriter:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hour = ""
        self._writer: JournalWriter | None = None

    def write(self, record: events.Record) -> None:
        hour = time.strftime("%Y-%m-%dT%H", time.gmtime(record.t))
        if hour != self._hour or self._writer is None:
            self.close()
            with contextlib.suppress(OSError):  # a full disk: the next sample tries again
                self._writer = JournalWriter(self._folder / f"{hour}.jsonl")
                self._hour = hour
                self._prune()
        if self._writer is not None:
            self._writer.write(record)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _prune(self) -> None:
        for old in sorted(self._folder.glob("*.jsonl"))[:-HOURS_KEPT]:
            old.unlink(missing_ok=True)
