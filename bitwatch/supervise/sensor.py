"""The supervisor's end of the GPU sensor: a child that may hang, and is then abandoned."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time

from bitwatch.record import codec, events
from bitwatch.record.gpu import DOES_NOT_ANSWER, NO_ANSWER, Gpu, of_old
from bitwatch.sense import processes

SILENT_S = 10.0  # without a line for so long, a driver call hangs
RESTARTS = 3  # at once; after that one more every CALM_S, once no child hangs in the driver
CALM_S = 60.0


class Sensor:
    """`latest` is the newest sample; `pids` are the children that may still be there. GPUs that
    were once told of stay in it, whatever becomes of the driver or of the child."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._pipe = -1
        self._rest = b""
        self._heard = self._started = self._told = 0.0
        self._starts = 0
        self._refused_at: float | None = None  # when the newest start was not allowed
        self._current = 0
        self._silent = ""  # why nothing is heard of the GPUs
        self._known: list[Gpu] = []
        self.latest: events.Gpus | None = None
        self.pids: dict[int, int] = {}

    def start(self, selector: selectors.BaseSelector) -> None:
        """Where no more processes or files are allowed, `check` tries again later."""
        try:
            self._current, reading = self._spawn()
        except OSError:
            self._refused_at = time.monotonic()
            return
        self._refused_at = None
        stat = processes.read_stat(self._current)
        self.pids[self._current] = stat.starttime if stat else 0
        os.set_blocking(reading, False)
        self._pipe, self._rest = reading, b""
        self._heard = self._started = time.monotonic()
        self._starts += 1
        selector.register(reading, selectors.EVENT_READ, "sensor")

    def _spawn(self) -> tuple[int, int]:
        """The child, and where to read what it says."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        command = [
            sys.executable, "-m", "bitwatch.sense.gpus", str(self._interval_s), str(os.getpid()),
        ]  # fmt: skip
        try:
            pid = os.posix_spawn(
                command[0],
                command,
                dict(os.environ),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, writing, 1),
                ],
                setsid=True,
                setsigdef=[signal.SIGHUP, signal.SIGINT, signal.SIGTERM],
            )
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return pid, reading

    def read(self, selector: selectors.BaseSelector) -> list[events.Gpus]:
        """What it has said since. A closed pipe means that it has ended."""
        try:
            block = os.read(self._pipe, 1 << 20)
        except BlockingIOError:
            return []
        if not block:
            self._close(selector)
            if self._known and not self._silent:
                self._silent = "what reads the GPUs has ended"
            return []
        self._heard = time.monotonic()
        *lines, self._rest = (self._rest + block).split(b"\n")
        records = [
            self._taken(record)
            for line in lines
            if isinstance(record := codec.decode(line), events.Gpus)
        ]
        if records:
            self.latest = records[-1]
        return records

    def _taken(self, record: events.Gpus) -> events.Gpus:
        if record.source != "nvml" and self._known:  # there were some; so there is no driver now
            self._silent = record.note
            return self._unanswered()
        self._silent = ""
        self._known = record.gpus or self._known
        return record

    def check(self, selector: selectors.BaseSelector) -> list[events.Gpus]:
        """Replaces a sensor that has fallen silent, and gives what is to be recorded as long as
        nothing is heard. One that ended by itself, and never saw a GPU, needs no other."""
        now = time.monotonic()
        if self._pipe >= 0 and now - self._heard >= SILENT_S + self._interval_s:
            self._close(selector)
            self.stop()
            self._silent, self._told = "a call of the driver hangs", 0.0
        wanted = bool(self._silent) or self._refused_at is not None
        if wanted and self._pipe < 0 and self._may_start(now):
            self.start(selector)
        if not self._silent:
            return []
        if now - self._told < SILENT_S:
            return []
        self._told = now
        self.latest = self._unanswered()
        return [self.latest]

    def _may_start(self, now: float) -> bool:
        """A child that hangs may be impossible to end: it must not become one a minute."""
        if self._refused_at is not None and now - self._refused_at < SILENT_S:
            return False
        if self._starts <= RESTARTS:
            return True
        return not self.pids and now - self._started >= CALM_S

    def _unanswered(self) -> events.Gpus:
        """A record of now, of the GPUs that were there."""
        return events.Gpus(
            note=f"{NO_ANSWER}: {self._silent}",
            gpus=[gpu if gpu.lost else of_old(gpu, DOES_NOT_ANSWER) for gpu in self._known],
        )

    def note_exit(self, pid: int) -> None:
        self.pids.pop(pid, None)

    def stop(self) -> None:
        for pid, starttime in self.pids.items():
            processes.send_signal(pid, starttime, signal.SIGKILL)

    def _close(self, selector: selectors.BaseSelector) -> None:
        selector.unregister(self._pipe)
        os.close(self._pipe)
        self._pipe = -1
