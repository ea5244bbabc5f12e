"""The supervisor's end of the GPU sensor: a child that may hang, and is then abandoned."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time

from bitwatch.record import codec, events
from bitwatch.sense import processes

SILENT_S = 10.0  # without a line for so long, a driver call hangs
RESTARTS = 3  # a driver that hangs each time is left alone after that


class Sensor:
    """`latest` is the newest sample; `pids` are the children that may still be there."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._pipe = -1
        self._rest = b""
        self._heard = 0.0
        self._starts = 0
        self._current = 0
        self.latest: events.Gpus | None = None
        self.pids: dict[int, int] = {}

    def start(self, selector: selectors.BaseSelector) -> None:
        reading, writing = os.pipe2(os.O_CLOEXEC)
        command = [
            sys.executable, "-m", "bitwatch.sense.gpus", str(self._interval_s), str(os.getpid()),
        ]  # fmt: skip
        self._current = os.posix_spawn(
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
        os.close(writing)
        stat = processes.read_stat(self._current)
        self.pids[self._current] = stat.starttime if stat else 0
        os.set_blocking(reading, False)
        self._pipe, self._rest, self._heard = reading, b"", time.monotonic()
        self._starts += 1
        selector.register(reading, selectors.EVENT_READ, "sensor")

    def read(self, selector: selectors.BaseSelector) -> list[events.Gpus]:
        """What it has said since. A closed pipe means that it has ended."""
        try:
            block = os.read(self._pipe, 1 << 20)
        except BlockingIOError:
            return []
        if not block:
            self._close(selector)
            return []
        self._heard = time.monotonic()
        *lines, self._rest = (self._rest + block).split(b"\n")
        records = [
            record for line in lines if isinstance(record := codec.decode(line), events.Gpus)
        ]
        if records:
            self.latest = records[-1]
        return records

    def check(self, selector: selectors.BaseSelector) -> None:
        """Replaces a sensor that has fallen silent; one that ended by itself had no GPU."""
        if self._pipe < 0 or time.monotonic() - self._heard < SILENT_S + self._interval_s:
            return
        self._close(selector)
        self.stop()
        if self._starts <= RESTARTS:
            self.start(selector)
        self.latest = events.Gpus(note="NVML does not answer")

    def note_exit(self, pid: int) -> None:
        self.pids.pop(pid, None)

    def stop(self) -> None:
        for pid, starttime in self.pids.items():
            processes.send_signal(pid, starttime, signal.SIGKILL)

    def _close(self, selector: selectors.BaseSelector) -> None:
        selector.unregister(self._pipe)
        os.close(self._pipe)
        self._pipe = -1
