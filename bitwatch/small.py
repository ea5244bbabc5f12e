"""Small files that are found by name: a user's, and those of a run's folder.

Anything may lie under a name. A pipe without a writer would hold whoever opens it for good, and
a device has no end; so only a plain file is read, and only so much of it.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import IO

MIB = 1024 * 1024
USERS_MIB = 1  # of what a person writes by hand
RECORDED_MIB = 64  # of what bitwatch keeps of a run: the plan of many thousands of files
# What the shell hands over, as in `bitwatch plan <(sed ... demo.toml)`: a pipe, and somebody
# writes into it.
HANDED_OVER = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def opened(path: Path | str) -> io.FileIO:
    """A plain file to read from, without a buffer. OSError where it is something else."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _check(fd, path)
        return open(fd, "rb", buffering=0)
    except OSError:
        os.close(fd)
        raise


def read(path: Path, most_mib: int = RECORDED_MIB) -> bytes:
    """All of it. OSError, whose `strerror` says it in words, where it is no plain file or has
    more."""
    if str(path).startswith(HANDED_OVER):
        with open(path, "rb") as handed:
            return _whole(handed, most_mib)
    with opened(path) as file:
        return _whole(file, most_mib)


def _check(fd: int, path: Path | str) -> None:
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file, but a pipe or a device", str(path))


def _whole(file: IO[bytes], most_mib: int) -> bytes:
    """A read without a buffer may end early, at most at the end of the file."""
    most = most_mib * MIB
    data = b""
    while len(data) <= most and (more := file.read(most + 1 - len(data))):
        data += more
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most_mib} MiB")
    return data
