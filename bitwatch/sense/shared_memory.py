"""Files below /dev/shm: which a process has mapped, and which nobody has.

A process that is killed leaves the names that it made. They may be unlinked when they were
recorded while it lived, are ours, and no process maps them any more. A record is text that
anybody may have written: what is no plain name of a plain file there is not touched.
"""

from __future__ import annotations

import contextlib
import os
import stat as modes
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
        # The path comes last: another folder may be called so too, as in /home/me/dev/shm/.
        path = line.split(None, 5)[5:]
        if path and path[0].startswith(PREFIX) and not path[0].endswith(GONE):
            found.add(os.fsdecode(path[0][len(PREFIX) :]))
    return {name for name in found if _is_plain(name)}


def unlink_unused(names: Iterable[str], everything: Iterable[Stat]) -> list[str]:
    """Deletes those of `names` that are ours and that nobody of `everything` maps; which."""
    here = {name for name in names if _is_plain(name) and _is_ours(FOLDER / name)}
    if here:
        for stat in everything:
            here -= mapped(stat)
    gone = []
    for name in sorted(here):
        with contextlib.suppress(OSError):
            (FOLDER / name).unlink()
            gone.append(name)
    return gone


def _is_plain(name: str) -> bool:
    """Whether it can only mean something in the folder itself."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def _is_ours(path: Path) -> bool:
    """A file of this user. Nobody maps a link by its own name, so none was ever recorded."""
    try:
        facts = path.lstat()
    except (OSError, UnicodeError):
        return False
    return modes.S_ISREG(facts.st_mode) and facts.st_uid == os.getuid()
