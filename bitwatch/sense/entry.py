"""/proc/PID held open, so that all that is read through it is of one process.

A path can mean another process from one open to the next; a descriptor of the directory
cannot: once its process is gone, nothing can be opened below it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from bitwatch.sense.stat import Stat, parse_stat, read_raw, thread_states

BLOCK_BYTES = 1 << 16


class Entry:
    """`stat` is how the process is now, read through the same descriptor."""

    def __init__(self, folder: int, stat: Stat) -> None:
        self.folder = folder
        self.stat = stat

    def read_memory(self, name: str, limit: int) -> bytes:
        """A file that the kernel takes from the process's memory (cmdline, environ).

        For that it waits for a lock which a thread in state D may hold for ever, so it is
        read of none that has one. Raises OSError.
        """
        fd = os.open(self._way_in() + name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.folder)
        data = b""
        try:
            while len(data) < limit and (block := os.read(fd, min(BLOCK_BYTES, limit - len(data)))):
                data += block
        finally:
            os.close(fd)
        return data

    def may_wait(self) -> bool:
        """Whether looking at its memory could wait without end."""
        try:
            self._way_in()
        except ProcessLookupError:
            return True
        return False

    def _way_in(self) -> str:
        """Where its memory is found: a dead first thread has let go of it, the others have not."""
        if self.stat.threads > 1:
            states = thread_states(self.stat.pid, self.folder)
        else:
            states = {self.stat.pid: self.stat.state}
        live = [thread for thread, state in states.items() if state not in "ZX"]
        if not live or "D" in states.values():
            raise ProcessLookupError("dead, or waiting in the kernel")
        return "" if self.stat.pid in live else f"task/{live[0]}/"


@contextlib.contextmanager
def opened(stat: Stat) -> Iterator[Entry]:
    """Raises OSError when this process is gone or may not be seen."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(f"/proc/{stat.pid}", flags)
    try:
        data = read_raw("stat", folder)
        now = parse_stat(data) if data else None
        if now is None or now.key != stat.key:
            raise ProcessLookupError("another process has its pid")
        yield Entry(folder, now)
    finally:
        os.close(folder)
