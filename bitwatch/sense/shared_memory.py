"""Files below /dev/shm: which a process has mapped, and which nobody has.

A process that is killed leaves the names that it made. They may be unlinked when they were
recorded while it lived, are ours, no process maps them any more, and only torch or Python makes
names like them: what a person has put there, such as the data itself, is mapped as well. A record
is text that anybody may have written: what is no plain name of a plain file is not touched.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat as modes
from collections.abc import Iterable
from pathlib import Path

from bitwatch.sense.entry import opened
from bitwatch.sense.stat import Stat

FOLDER = Path("/dev/shm")
PREFIX = b"/dev/shm/"
GONE = b" (deleted)"
MAPS_BYTES = 16 << 20
GENERATED = re.compile(
    r"""torch_\d+_\d+(_\d+)?      # of a tensor that is shared: pid, a random number, a counter
    | psm_[0-9a-f]{8}            # multiprocessing.shared_memory
    | sem\.mp-[a-z0-9_]{8}       # a lock, a semaphore or a queue of multiprocessing
    | pym-\d+-[a-z0-9_]{8}       # what multiprocessing keeps its arrays in
    | nccl-[A-Za-z0-9]{6}        # between the GPUs of one machine
    """,
    re.VERBOSE | re.ASCII,
)


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
    """Deletes those of `names` that were generated, are ours and that nobody of `everything`
    maps; which."""
    here = {name for name in names if GENERATED.fullmatch(name) and _is_ours(FOLDER / name)}
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
