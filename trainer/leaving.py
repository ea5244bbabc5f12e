"""A SIGTERM from outside, of a scheduler or of a person, taken as a wish to stop with a
checkpoint: torchrun passes it on to every rank, and would end them at once otherwise.

Our own supervisor sends one too, when a stop was asked for long ago or is to be at once: that
one ends the rank. So does any when another rank has died, which is why torchrun sends it then,
and when the others no longer answer. A thread waits for the signal, since the main thread may
hang in a collective or in a read.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bitwatch.record.follow import lives

LEAST_PATIENCE_S = 30.0
LOOK_S = 0.2  # between two looks at the other ranks
STEPS = 3  # after so many the ranks have agreed, if they still can
OLD_S = 5.0  # of a request to stop: then the signal is its escalation


class Leaving:
    """`asked` becomes true with the signal. `patience_s` is how long it may then take until
    `heard` is called, when all ranks have agreed to stop; then the rank ends by itself."""

    def __init__(self, stop_file: Path, peers: Sequence[tuple[int, int]]) -> None:
        self.asked = False
        self._peers = peers  # pid and start time of the other ranks
        self.patience_s = LEAST_PATIENCE_S
        self._stop_file = stop_file
        self._heard = threading.Event()
        self._reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(writing, False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._wait, name="leaving", daemon=True).start()

    def steps_take(self, step_s: float) -> None:
        self.patience_s = max(LEAST_PATIENCE_S, STEPS * step_s)

    def cause(self) -> str:
        """The signal, where it and no request in the attempt's file is why the ranks stop: for
        this rank's last word. Empty for a rank that did not get it."""
        return "SIGTERM" if self.asked and not self._is_asked() else ""

    def heard(self) -> None:
        self._heard.set()

    def _wait(self) -> None:
        self._next_signal()
        if not self._is_escalation():
            self.asked = True
            until_m = time.monotonic() + self.patience_s
            while time.monotonic() < until_m and all(lives(*peer) for peer in self._peers):
                if self._heard.wait(LOOK_S):
                    self._next_signal()  # a second one does not wait
                    break
        os._exit(128 + signal.SIGTERM)

    def _next_signal(self) -> None:
        while signal.SIGTERM not in os.read(self._reading, 64):
            pass

    def _is_escalation(self) -> bool:
        try:
            request = json.loads(self._stop_file.read_bytes())
            return bool(request.get("now")) or time.time() - request.get("t", 0.0) > OLD_S
        except FileNotFoundError:
            return False
        except OSError:
            return self._is_asked()
        except (ValueError, AttributeError, TypeError):
            return True  # an empty file is a request too

    def _is_asked(self) -> bool:
        """By the file. Where nobody can look for it (a file system is away) nobody is known to
        have asked: Path.exists would raise there, and end a rank that has yet to save."""
        return os.path.exists(self._stop_file)
