"""Files below /dev/shm: which a process has mapped, and which nobody has.

A process that is killed leaves the names that it made. They may be unlinked when they were
recorded while it lived, are ours, and no process maps them any more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from bitwatch.sense.entry import opened
from bitwatch.sense.stat import Stat

FOLDER = Path("/dev/shm")
PREFIX = b"/dev/shm/"
GONE = b" (deleted)"
MAPS_BYTES = 16 << 20


def free_mib() -> float | None:
    """Room below /dev/shm; None where there is none."""
    try:
        facts = os.statvfs(FOLDER)
    except OSError:
        return None
    return facts.f_bavail * facts.f_frsize / 2**20


def mapped(stat: Stat) -> set[str]:
    """The names that it has mapped and that are still there; empty where it may not be known."""
    try:
        with opened(stat) as entry:
            data = entry.read_memory("maps", MAPS_BYTES)
    except OSError:
        return set()
    found = set()
    for line in data.splitlines():
        at = line.find(PREFIX)
        if at > 0 and not line.endswith(GONE):
            found.add(os.fsdecode(line[at + len(PREFIX) :]))
    return {name for name in found if "/" not in name}


def unlink_unused(names: Iterable[str], everything: Iterable[Stat]) -> list[str]:
    """Deletes those of `names` that are ours and that nobody of `everything` maps; which."""
    here = {name for name in names if _is_ours(FOLDER / name)}
    if here:
        for stat in everything:
            here -= mapped(stat)
    gone = []
    for name in sorted(here):
        with contextlib.suppress(OSError):
            (FOLDER / name).unlink()
            gone.append(name)
    return gone


def _is_ours(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False
