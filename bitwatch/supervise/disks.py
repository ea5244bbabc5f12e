"""How much room is left where a run writes. Asked for in a thread of its own: a network drive that
does not answer must not hold up the supervisor's loop."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bitwatch import config as configuration
from bitwatch.config import Config
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View

EVERY_S = 5.0
# At least: a checkpoint that is being written takes room that the one it replaces gives back.
LOOKBACK_S = 120.0
LOOKBACK_SAVES = 2.0  # and so many times as long as the last checkpoint took
CHECKPOINTS, RUN, CACHE = "the checkpoints", "the run's record", "the prepared text"


class Room(NamedTuple):
    """`free_bytes` on the file system of `folder`, which is of `what`: the most of the last
    minutes, so what is only used while a checkpoint is written is not missed."""

    what: str
    folder: str
    free_bytes: int


def folders_of(run: RunDir, config: Config) -> dict[str, Path]:
    found = {CHECKPOINTS: run.checkpoints(config.checkpoint.folder), RUN: run.path}
    if config.data.sharding == "indexed" and config.data.cache:
        found[CACHE] = configuration.cache_folder(config, configuration.User())
    return found


class Disks:
    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = dict(folders)
        self._seen: dict[str, deque[tuple[float, int]]] = {what: deque() for what in folders}
        self._thread: threading.Thread | None = None
        self._due = 0.0
        self._lookback_s = LOOKBACK_S
        self._saving_since: float | None = None

    def look(self, view: View) -> tuple[Room, ...]:
        """What was known a moment ago; never waits. What did not answer for long is left out."""
        now = time.monotonic()
        idle = self._thread is None or not self._thread.is_alive()
        if now >= self._due and idle:
            self._due = now + EVERY_S
            self._thread = threading.Thread(target=self.measure, name="disks", daemon=True)
            with contextlib.suppress(
                RuntimeError
            ):  # too many processes: it is tried again when due
                self._thread.start()
        self.note(view, now)
        return self.rooms(now)

    def note(self, view: View, now: float) -> None:
        """How far to look back: over a whole checkpoint, also over the first one, of which nobody
        knows yet how long it takes."""
        last_s = view.checkpoints[-1].seconds if view.checkpoints else 0.0
        self._lookback_s = max(LOOKBACK_S, LOOKBACK_SAVES * last_s)
        if view.phase != "checkpoint":
            self._saving_since = None
            return
        if self._saving_since is None:
            self._saving_since = now
        self._lookback_s = max(self._lookback_s, now - self._saving_since + LOOKBACK_S)

    def measure(self) -> None:
        for what, folder in self._folders.items():
            if (free := free_bytes(folder)) is not None:
                self._seen[what].append((time.monotonic(), free))

    def rooms(self, now: float) -> tuple[Room, ...]:
        """Nothing before it has been looked at for some time, and from before the checkpoint on
        that is being written."""
        found = []
        begun = now - LOOKBACK_S
        if self._saving_since is not None:
            begun = min(begun, self._saving_since)
        for what, seen in self._seen.items():
            while len(seen) > 1 and seen[1][0] <= now - self._lookback_s:
                seen.popleft()
            known = list(seen)
            if known and known[0][0] <= begun and now - LOOKBACK_S < known[-1][0]:
                most = max(free for _, free in known)
                found.append(Room(what, str(self._folders[what]), most))
        return tuple(found)


def free_bytes(folder: Path) -> int | None:
    """Of the file system that it is on, or will be on; None where nobody can tell."""
    for place in (folder, *folder.parents):
        try:
            facts = os.statvfs(place)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        return facts.f_bavail * facts.f_frsize
    return None
