"""The text that the processes of an attempt have printed, shown literally.

Log text is untrusted: a control character is shown as its escape, never sent to a terminal.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

from bitwatch.headless import say
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.supervise import begin
from bitwatch.text import literal

POLL_S = 0.5
BLOCK_BYTES = 1 << 16
NEWEST_BYTES = 128 << 10  # of each log, what a screen begins with
LONGEST_LINE_BYTES = 1 << 20  # a longer line is shown in pieces


class LogFile:
    """Gives the lines of one growing file, marked with who wrote them. With `newest_bytes`
    it begins with the first whole line of only so many at the end."""

    def __init__(self, path: Path, newest_bytes: int | None = None) -> None:
        self.path = path
        self.label = path.stem
        self._offset = 0
        self._rest = b""
        self._cut = False
        if newest_bytes is not None:
            with contextlib.suppress(OSError):
                self._offset = max(0, path.stat().st_size - newest_bytes)
            self._cut = self._offset > 0

    def lines(self, *, final: bool = False) -> list[str]:
        """Whole lines since the last call; with `final` also a last one without an end."""
        found: list[str] = []
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                while block := file.read(BLOCK_BYTES):
                    self._offset += len(block)
                    *lines, self._rest = (self._rest + block).split(b"\n")
                    if len(self._rest) > LONGEST_LINE_BYTES:
                        lines, self._rest = [*lines, self._rest], b""
                    found += [_show(line) for line in lines]
        except OSError:
            pass
        if self._cut and found:
            self._cut = False
            del found[0]
        if final and self._rest:
            found.append(_show(self._rest))
            self._rest = b""
        return found


class Tail:
    """The newest lines of all logs in a folder, then those that are added, each with who
    printed it. Nobody knows the order in which two processes printed between two looks."""

    def __init__(self, folder: Path, newest_bytes: int = NEWEST_BYTES) -> None:
        self._folder = folder
        self._newest_bytes = newest_bytes
        self._files: dict[Path, LogFile] = {}

    def new(self) -> list[str]:
        for path in sorted(self._folder.glob("*.log")):
            if path not in self._files:
                self._files[path] = LogFile(path, self._newest_bytes)
        width = max((len(log.label) for log in self._files.values()), default=0)
        return [
            f"{log.label:<{width}}  {line}" for log in self._files.values() for line in log.lines()
        ]


def show(run: RunDir, rank: int | None, follow: bool) -> int:
    """Prints the logs of the newest attempt. Raises RunDirError when there are none."""
    attempts = run.attempts()
    if not attempts:
        raise RunDirError(f"{run.id}: has no attempt yet")
    folder = run.logs(attempts[-1])
    files: dict[Path, LogFile] = {}
    printed = False
    if rank is not None and not follow and not (folder / f"rank{rank}.log").exists():
        raise RunDirError(f"{folder}: there is no log of rank {rank}")
    try:
        while True:
            live = follow and begin.still_lives(run)
            for path in sorted(folder.glob("*.log")):
                if rank is None or path.name == f"rank{rank}.log":
                    files.setdefault(path, LogFile(path))
            width = max((len(log.label) for log in files.values()), default=0)
            for log in files.values():
                for line in log.lines(final=not live):
                    printed = True
                    print(f"{log.label:<{width}}  {line}" if rank is None else line)
            sys.stdout.flush()
            if not live:
                if not printed:
                    say(f"{run.id}: nothing was printed yet")
                return 0
            time.sleep(POLL_S)
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _show(line: bytes) -> str:
    return literal(line.decode(errors="replace").rstrip("\r").replace("\t", "    "))
