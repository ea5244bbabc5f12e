"""The text that the processes of an attempt have printed, shown literally.

Log text is untrusted: a control character is shown as its escape, never sent to a terminal.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.supervise import begin
from bitwatch.text import literal

POLL_S = 0.5
BLOCK_BYTES = 1 << 16
LONGEST_LINE_BYTES = 1 << 20  # a longer line is shown in pieces


class LogFile:
    """Gives the lines of one growing file, marked with who wrote them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.label = path.stem
        self._offset = 0
        self._rest = b""

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
        if final and self._rest:
            found.append(_show(self._rest))
            self._rest = b""
        return found


def show(run: RunDir, rank: int | None, follow: bool) -> int:
    """Prints the logs of the newest attempt. Raises RunDirError when there are none."""
    attempts = run.attempts()
    if not attempts:
        raise RunDirError(f"{run.id}: has no attempt yet")
    folder = run.logs(attempts[-1])
    files: dict[Path, LogFile] = {}
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
                    print(f"{log.label:<{width}}  {line}" if rank is None else line)
            sys.stdout.flush()
            if not live:
                return 0
            time.sleep(POLL_S)
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _show(line: bytes) -> str:
    return literal(line.decode(errors="replace").rstrip("\r").replace("\t", "    "))
