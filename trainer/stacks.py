"""Lets a process say where it is: on SIGUSR1 it writes the stacks of all its threads to a file.

The handler is C and runs in an instant, also where the process hangs in an import, a read or a
collective. Imports only what is built into Python: it begins before anything heavy is loaded.
"""

import contextlib
import faulthandler
import os
import signal

VARIABLE = "BITWATCH_STACKS"  # the begin of the name of a worker's file, for the rank's workers

_files: list[int] = []  # open for good: the handler writes to its descriptor


def answer(path: str) -> bool:
    """Whether the process answers the signal, in `path`, from now on. A disk that takes no file
    must not stop a training: the process then has no handler, which whoever asks can see."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.open(path, flags, 0o600)
    except OSError:
        return False
    try:
        faulthandler.register(signal.SIGUSR1, file, all_threads=True, chain=False)
    except (OSError, RuntimeError, ValueError):
        os.close(file)
        return False
    while _files:  # of the rank, as a fork has it
        os.close(_files.pop())
    _files.append(file)
    return True


def answer_as_rank(path: str) -> None:
    """As a rank, whose dataloader workers will answer in files of their own beside this one."""
    os.environ[VARIABLE] = os.path.splitext(path)[0]
    answer(path)


def answer_as_worker(worker: int) -> None:
    """A fork would write into the file of its rank. Where its own cannot be made, the signal does
    nothing to it."""
    rank = os.environ.get(VARIABLE)
    if rank is None or answer(f"{rank}-worker{worker}.txt"):
        return
    with contextlib.suppress(OSError, ValueError):
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
