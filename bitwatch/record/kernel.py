"""What this kernel says of itself and of processes: the facts that a record is checked against."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

DEAD = (b"Z", b"X")  # states of a thread, or of a process by that of its first


@lru_cache(maxsize=1)  # nothing that asks outlives a boot
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def starttime(pid: int) -> int | None:
    """Clock ticks since boot at which `pid` started; None when there is no such process or
    it is already dead (a zombie). One whose first thread alone is dead is not: the others go on,
    hold what they held, and can be killed."""
    fields = _stat(f"/proc/{pid}/stat")
    if not fields or (fields[0] in DEAD and not _has_live_thread(pid)):
        return None
    return int(fields[19])


def _has_live_thread(pid: int) -> bool:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    stats = (_stat(f"/proc/{pid}/task/{thread}/stat") for thread in threads)
    return any(fields[0] not in DEAD for fields in stats if fields)


def _stat(path: str) -> list[bytes]:
    """The fields behind the name, which may hold anything; none where nothing can be read."""
    try:
        with open(path, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def own_starttime() -> int:
    return starttime(os.getpid()) or 0
