"""What a supervisor asks of the kernel for its own process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

from bitwatch import calm

PR_SET_CHILD_SUBREAPER = 36
OOM_SCORE = 100  # below the ranks' and workers': the kernel ends a worker first, us last


def settle() -> None:
    """Adopts the orphans of all below, outlives its terminal, is not the first to go when
    memory runs out, and takes little of the processor."""
    calm.collect_seldom()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def signal_pipe() -> tuple[int, int]:
    """A pipe from which the numbers of caught signals can be read, and its other end."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return reading, writing
