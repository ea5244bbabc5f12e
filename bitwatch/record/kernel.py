"""What this kernel says of itself and of processes: the facts that a record is checked against."""

from __future__ import annotations

import os
from pathlib import Path


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def starttime(pid: int) -> int | None:
    """Clock ticks since boot at which `pid` started; None when there is no such process or
    it is already dead (a zombie)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


def own_starttime() -> int:
    return starttime(os.getpid()) or 0
