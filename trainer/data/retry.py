"""Rows exactly once from a source that now and then fails: a hub, a network's file system.

What may pass (nobody answers, a connection breaks, a disk is away) is tried again a few times,
with growing pauses, behind the rows that were already given. What will not get better by
waiting (a wrong column, text that is none, a damaged file) ends the stream at once.
"""

from __future__ import annotations

import gzip
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TypeVar

from trainer.failures import Failed, sentence

# Below two minutes together, and far below the time-out of a step: the other ranks wait for
# this one in a collective meanwhile.
PAUSES_S: tuple[float, ...] = (1.0, 3.0, 9.0, 27.0, 60.0)
LIMIT_S = 120.0  # since the last row: a try can itself take minutes, in a library's own tries
# Whose errors are of a connection, where they are no OSError.
NETWORK_LIBRARIES = {"aiohttp", "httpcore", "httpx", "httpx2", "requests", "urllib3"}
BUSY = {408, 425, 429}  # HTTP: time-out, too early, too many requests

Row = TypeVar("Row")


def exactly_once(
    behind: Callable[[int], Iterator[Row]], tell: Callable[[str], None]
) -> Iterator[Row]:
    """All rows of a source, each once.

    behind(n) begins to read it and leaves out its first n rows, which are always the same.
    tell hears of every try, as one sentence. Each row that comes makes the tries begin anew.
    Raises Failed with the last error when they are used up, other errors as they are.
    """
    given = tries = 0
    came_m = time.monotonic()
    while True:
        try:
            for row in behind(given):
                given += 1
                tries = 0
                yield row
                came_m = time.monotonic()
            return
        except Exception as error:
            if not passing(error):
                raise
            waited_s = time.monotonic() - came_m
            if tries == len(PAUSES_S) or waited_s + PAUSES_S[tries] > LIMIT_S:
                raise Failed(
                    f"{sentence(error)}, and again in {tries} more tries within {waited_s:.0f} s"
                ) from error
            pause_s = PAUSES_S[tries]
            tries += 1
            tell(f"{sentence(error)}; try {tries} of {len(PAUSES_S)} in {pause_s:g} s")
        time.sleep(pause_s)


def passing(error: BaseException) -> bool:
    """Whether an error is one of reaching the text, not of the text itself."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):  # an answer of the hub
        return status >= 500 or status in BUSY
    if isinstance(error, gzip.BadGzipFile):  # an OSError by name
        return False
    if type(error) is OSError and error.errno is None:
        return not _of_pyarrow(error)
    libraries = {kind.__module__.split(".")[0] for kind in type(error).__mro__}
    return isinstance(error, OSError) or bool(libraries & NETWORK_LIBRARIES)


def _of_pyarrow(error: BaseException) -> bool:
    """pyarrow calls a damaged file an OSError too, but one without an error number: those that
    it has from a file system keep theirs, and a Python file's pass through it as they are."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith("pyarrow/")
