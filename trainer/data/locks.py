"""Locks on files of the cache: one writer, or any number of readers, until the end of the
process at the latest. A lock file is never deleted: whoever waited for it would hold nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

import msgspec

from bitwatch.record.kernel import own_starttime, pid_namespace
from bitwatch.record.rundir import Holder


def try_to_write(path: Path) -> int | None:
    """Takes the lock for this process alone and leaves its name in it; None when somebody
    else has it. Raises OSError when there can be no such file."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _try(fd, fcntl.LOCK_EX):
        return None
    me = Holder(pid=os.getpid(), starttime=own_starttime(), pid_namespace=pid_namespace())
    with contextlib.suppress(OSError):  # a full disk: the lock itself still holds
        os.ftruncate(fd, 0)
        os.pwrite(fd, msgspec.json.encode(me), 0)
    return fd


def try_to_read(path: Path) -> int | None:
    """Takes the lock beside other readers; None while somebody writes. Needs no right to
    write. Raises OSError, FileNotFoundError above all."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return fd if _try(fd, fcntl.LOCK_SH) else None


def holder(path: Path) -> Holder | None:
    """Who took the lock for itself last."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return None


def _try(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return False
    except OSError:
        os.close(fd)
        raise
    return True
