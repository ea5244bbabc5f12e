"""The text that the processes of an attempt have printed, shown literally.

Log text is untrusted: a control character is shown as its escape, never sent to a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bitwatch.attach.log_file import LogFile
from bitwatch.attach.said import Line
from bitwatch.headless import say
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.supervise import begin

POLL_S = 0.5
READ_BYTES = 8 << 20  # of a log at a time: a large one is never held whole


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
                    files.setdefault(path, LogFile(path, raw=True))
            width = max((len(path.stem) for path in files), default=0)
            for path, log in files.items():
                for line in _whole(log, final=not live):
                    printed = True
                    print(f"{path.stem:<{width}}  {line.text}" if rank is None else line.text)
            sys.stdout.flush()
            if not live:
                if not printed:
                    say(f"{run.id}: nothing was printed yet")
                return 0
            time.sleep(POLL_S)
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _whole(log: LogFile, final: bool) -> Iterator[Line]:
    """All that a log has by now, a part at a time."""
    while lines := log.new(most_bytes=READ_BYTES):
        yield from lines
    if final:
        yield from log.new(final=True)
