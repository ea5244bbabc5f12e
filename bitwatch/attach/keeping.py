"""Sees to it, for one viewer of a training that bitwatch did not start, that somebody watches it.

Of several viewers the lock decides who has the watcher; when that one leaves, the next starts one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time

from bitwatch.record import rundir
from bitwatch.record.follow import lives
from bitwatch.record.rundir import Identity, RunDir, RunDirError
from bitwatch.record.state import RunState
from bitwatch.supervise import ending, launch, notify

MODULE = "bitwatch.attach.watcher"
AGAIN_S = 3.0  # between two tries


class Keeper:
    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._identity: Identity | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._next = 0.0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the watcher that was started from here, while it runs."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if self._process is not None and running else None

    def look(self, state: RunState) -> None:
        """Starts a watcher where one is wanted and nobody has one."""
        if self._closed or time.monotonic() < self._next or self.pid is not None:
            return
        self._next = time.monotonic() + AGAIN_S
        identity = self._known()
        if identity is None or self._run.lock_is_held() or not _is_wanted(identity, state):
            return
        with contextlib.suppress(OSError):  # a full disk, or too many processes: tried again
            self._start()

    def _known(self) -> Identity | None:
        """Of a foreign run of this user whose processes can be here; None of any other."""
        if self._identity is None:
            with contextlib.suppress(RunDirError):
                self._identity = self._run.identity()
        identity = self._identity
        if identity is None or not identity.foreign or identity.uid != os.getuid():
            return None
        return None if rundir.is_here(identity) else identity

    def _start(self) -> None:
        with open(self._run.path / "watcher.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, str(self._run.path)],
                env=notify.hand_down(launch.clean_environment(dict(os.environ))),
                cwd="/",
                stdin=subprocess.PIPE,  # our end closes when we are gone, however that comes
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        if self._closed:  # while it was started
            self.close()

    def close(self) -> None:
        """Lets the watcher go. It leaves by itself, within a fraction of a second."""
        self._closed = True
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


def _is_wanted(identity: Identity, state: RunState) -> bool:
    """While something lives, while its end is not on record, and while a log alone can grow."""
    if identity.root is None:
        return any(os.path.exists(path) for path in identity.logs)
    journal = state.journal
    attempt = state.newest_attempt()
    if not attempt or not ending.is_over(state, attempt):
        return True
    return any(lives(*key) for key in journal.processes.keys() - journal.exits.keys())
