"""Ties a process to its parent, so that no rank outlives its agent and no worker its rank.

Runs before anything heavy is imported: while torch loads, a process must already be tied.
Imports nothing but ctypes, gc, os, signal and what answers a signal, and must stay so.
"""

import ctypes
import gc
import os
import signal

from trainer import stacks

PR_SET_PDEATHSIG = 1  # linux/prctl.h

# Where the kernel looks first when memory runs out. A lost worker costs a step, a lost rank
# the attempt, a lost supervisor (at 0) the sight of both.
RANK_OOM_SCORE = 300
WORKER_OOM_SCORE = 600


def hold_rank() -> None:
    """First act of a rank: dies with the agent whose pid is in BITWATCH_AGENT, and tells its
    own pid to the workers it will start."""
    hold_prepare()
    _offer_to_oom_killer(RANK_OOM_SCORE)


def hold_prepare() -> None:
    """First act of what prepares the text, in the same way."""
    die_with(os.environ.get("BITWATCH_AGENT"))
    os.environ["BITWATCH_PARENT"] = str(os.getpid())


def hold_child() -> None:
    """First act of what one of ours has started, whose pid is in BITWATCH_PARENT."""
    die_with(os.environ.get("BITWATCH_PARENT"))


def hold_worker(worker: int | None = None) -> None:
    """First act of a dataloader worker, and under fork its `worker_init_fn`.

    Leaves the rank's process group: the agent signals groups, and a worker killed before its
    rank would crash the rank's step.
    """
    hold_child()
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)  # a fork has the rank's
    gc.enable()  # and its collector, which the rank calls by itself
    _offer_to_oom_killer(WORKER_OOM_SCORE)
    if worker is not None:
        stacks.answer_as_worker(worker)


def die_with(parent: str | None) -> None:
    """Asks the kernel for SIGKILL at the parent's death, and exits if it is dead already.

    The signal is not retroactive, so the parent's pid, known from outside, is compared after
    it is set. Without that pid only the signal is set.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != int(parent):
        os._exit(1)


def _offer_to_oom_killer(score: int) -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(score))
    except OSError:
        pass  # a container may forbid it; it only orders who dies first
