"""Full-rate samples in one file an hour; the last two hours stay."""

from __future__ import annotations

import calendar
import contextlib
import time
from pathlib import Path

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter

HOURS_KEPT = 2
HOUR_S = 3600
NAME = "%Y-%m-%dT%H"


class SampleWriter:
    """The newest sample always stands at the end of the file with the latest name, also when the
    clock is set back: then a file still holds an hour, and is named after the one before it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hour = 0  # of the epoch
        self._opened_m = 0.0
        self._writer: JournalWriter | None = None

    def write(self, record: events.Record) -> None:
        hour = int(record.t // HOUR_S)
        if self._writer is None:
            hour = max(hour, self._newest())
        elif hour < self._hour:
            hour = self._hour + (time.monotonic() - self._opened_m >= HOUR_S)
        if hour != self._hour or self._writer is None:
            self.close()
            with contextlib.suppress(OSError):  # a full disk: the next sample tries again
                name = time.strftime(NAME, time.gmtime(hour * HOUR_S))
                self._writer = JournalWriter(self._folder / f"{name}.jsonl")
                self._hour, self._opened_m = hour, time.monotonic()
                self._prune()
        if self._writer is not None:
            self._writer.write(record)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _newest(self) -> int:
        """The hour of the latest file that is there; 0 where there is none."""
        with contextlib.suppress(OSError, ValueError):  # not to be looked at, or of somebody else
            names = [path.stem for path in self._folder.glob("*.jsonl")]
            return calendar.timegm(time.strptime(max(names), NAME)) // HOUR_S
        return 0

    def _prune(self) -> None:
        for old in sorted(self._folder.glob("*.jsonl"))[:-HOURS_KEPT]:
            old.unlink(missing_ok=True)
