"""The sensor as a real process, whose records a test reads while it changes the GPUs."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable
from types import TracebackType

from bitwatch.record import codec, events
from tests.conftest import PATIENCE_S, until
from tests.nvml.standin import Standin

MANY = 150  # samples that can pass before what a test waits for: a pipe holds some 60 of them


class Sensing:
    """`changes` are Python statements that are run in it first, on the module `gpus`."""

    def __init__(self, standin: Standin | None, changes: str = "", **environment: str) -> None:
        code = f"from bitwatch.sense import gpus\n{changes}\ngpus.main()"
        seen = standin.counting if standin else {}
        self._child = subprocess.Popen(
            [sys.executable, "-c", code, "0.05", str(os.getpid())],
            stdout=subprocess.PIPE,
            env={**os.environ, **seen, **environment},
        )

    @property
    def pid(self) -> int:
        return self._child.pid

    def next(self) -> events.Gpus:
        assert self._child.stdout
        assert select.select([self._child.stdout], [], [], PATIENCE_S)[0], "no record comes"
        record = codec.decode(self._child.stdout.readline())
        assert isinstance(record, events.Gpus)
        return record

    def find(self, wanted: Callable[[events.Gpus], object], what: str) -> events.Gpus:
        """The first record of which it is true; each one is one sample."""
        for _ in range(MANY):
            if wanted(record := self.next()):
                return record
        raise AssertionError(f"not in {MANY} samples: {what}")

    def ended(self) -> bool:
        until(lambda: self._child.poll() is not None, "the sensor to end")
        return True

    def __enter__(self) -> Sensing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._child.kill()
        self._child.communicate()
