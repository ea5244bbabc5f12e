"""Findings about what this machine has left, and what it will do by itself: disk, shared memory,
the end of a login session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from bitwatch.report import meanings
from bitwatch.report.model import Evidence, Finding
from bitwatch.sense import session, shared_memory
from bitwatch.supervise.watch_processes import SHM_LOW_MIB
from bitwatch.text import size

DISK_LOW_GIB, DISK_FULL_GIB = 5.0, 0.25


def findings(home: Path, trains: bool) -> Iterator[Finding]:
    """`trains`: whether something goes on here that could be hit."""
    yield from _disk(home)
    yield from _shared_memory()
    ends = session.will_kill()
    if ends:
        yield Finding(
            id="session-will-kill",
            severity="warning" if trains else "info",
            title="the end of your session may end or break what runs: " + "; ".join(ends),
            evidence=[Evidence(source="logind.conf", text=text) for text in ends],
            why=meanings.why("session-will-kill"),
            next="loginctl enable-linger, once; then runs outlive the session",
        )


def _disk(home: Path) -> Iterator[Finding]:
    folder = home
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        return
    if free_bytes / 2**30 >= DISK_LOW_GIB:
        return
    yield Finding(
        id="disk-low",
        severity="error" if free_bytes / 2**30 < DISK_FULL_GIB else "warning",
        title=f"{size(free_bytes)} are free where runs are recorded",
        evidence=[Evidence(source=str(folder), text=f"{free_bytes:,} bytes free")],
        why="A record grows by at most 30 MB a week; a checkpoint may be many GiB, and one that "
        "finds no room is lost.",
        next="make room, or set checkpoint.folder to a larger disk",
    )


def _shared_memory() -> Iterator[Finding]:
    free_mib = shared_memory.free_mib()
    if free_mib is None or free_mib >= SHM_LOW_MIB:
        return
    yield Finding(
        id="shm-low",
        severity="warning",
        title=f"{free_mib:.0f} MiB are free in {shared_memory.FOLDER}",
        evidence=[Evidence(source=str(shared_memory.FOLDER), text=f"{free_mib:.1f} MiB free")],
        why=meanings.why("shm-low"),
        next="bitwatch clean deletes what ended runs have left there; a container needs a larger "
        "--shm-size",
    )
