"""Alerts about processes: more than the plan explains, GPU memory in other hands, ranks that
died, and what the machine around a run may do to it."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bitwatch.record import events
from bitwatch.record.view import END_STATES, View

SLACK = 4  # processes beyond those explained: what a library starts for an instant
HELD_MIB = 64.0  # of a GPU: a context that nobody computes in
SHM_LOW_MIB = 64.0  # what a container has in all, where nobody asked for more
NAMED = 6


class Around(NamedTuple):
    """Of the machine: room below /dev/shm, and what the end of the session would do."""

    shm_free_mib: float | None = None
    session: Sequence[str] = ()


NOWHERE = Around()


def about_processes(view: View, around: Around, most: int | None) -> Iterator[events.Alert]:
    """`most` is watch.max_processes, None where only the plan counts."""
    yield from process_count(view, most)
    yield from gpu_held(view)
    yield from rank_died(view)
    if around.shm_free_mib is not None and around.shm_free_mib < SHM_LOW_MIB:
        yield events.Alert(
            id="shm-low",
            severity="warning",
            text=f"only {around.shm_free_mib:.0f} MiB are left of /dev/shm: workers hand blocks "
            "over in it, and die with a bus error when it is full",
            next="start the container with a larger --shm-size, or take fewer workers",
        )
    if around.session:
        yield events.Alert(
            id="session-will-kill",
            severity="warning",
            text="the end of your session may end or break this run: " + "; ".join(around.session),
            evidence=list(around.session),
            next="loginctl enable-linger, once; then the run outlives the session",
        )


def process_count(view: View, most: int | None) -> Iterator[events.Alert]:
    """Compile workers come and go in numbers that are torch's own, and are not counted."""
    alive = [row for row in view.processes if row.state not in ("Z", "X")]
    counted_ = [row for row in alive if row.role != "compile worker"]
    # Supervisor, sensor and agent; and of each rank itself, its workers, twice at the seam of
    # two epochs, and a tracker.
    explained = 3 + view.ranks * (2 + 2 * view.workers)
    limit = explained + SLACK if most is None else most
    if not view.ranks or len(counted_) <= limit:
        return
    roles: dict[str, int] = {}
    for row in counted_:
        roles[row.role] = roles.get(row.role, 0) + 1
    why = "watch.max_processes allows" if most is not None else "the plan explains"
    yield events.Alert(
        id="process-count",
        severity="warning",
        text=f"more processes than {why}: over {limit}",
        evidence=[f"{number} x {role}" for role, number in sorted(roles.items())],
        next="look at panel 4; c ends what ended attempts have left, S stops this one",
    )


def gpu_held(view: View) -> Iterator[events.Alert]:
    """Memory of a GPU of this run in the hands of somebody else."""
    if view.gpus is None or view.gpus.source != "nvml" or view.device != "cuda":
        return
    own = {row.pid for row in view.processes}
    left = {process.pid for process in view.leftovers}
    used = {gpu.index for gpu in view.gpus.gpus for pid, _ in gpu.processes or () if pid in own}
    others = [
        (gpu.index, pid, mib)
        for gpu in view.gpus.gpus
        if gpu.index in used
        for pid, mib in gpu.processes or ()
        if pid not in own and (mib or 0.0) >= HELD_MIB
    ]
    if not others:
        return
    gpus = sorted({index for index, _, _ in others})
    ours = [pid for _, pid, _ in others if pid in left]
    yield events.Alert(
        id="gpu-held",
        severity="warning",
        text=f"other processes hold memory of GPU {', '.join(map(str, gpus))}",
        evidence=[
            f"GPU {index}: pid {pid} holds {mib:,.0f} MiB"
            + (", left of an ended attempt" if pid in left else "")
            for index, pid, mib in others[:NAMED]
        ],
        next="c ends what ended attempts have left"
        if ours
        else "they are not of this run; `bitwatch clean` lists what may be left of others",
    )


def rank_died(view: View) -> Iterator[events.Alert]:
    """Until torchrun has ended the others: seconds, in which this is what is known. Only the
    agent, whose children they are, learns how they ended."""
    if view.state in END_STATES:
        return
    words = view.last_words
    died = [
        exit
        for exit in sorted(view.exits, key=lambda exit: exit.t)
        if exit.rank is not None and (exit.rank not in words or words[exit.rank].state == "failed")
    ]
    if not died:
        return
    first = died[0]
    yield events.Alert(
        id="rank-died",
        severity="error",
        text=f"rank {first.rank} {_how(first, words)}; the others are ended with it",
        evidence=[f"pid {exit.pid}: rank {exit.rank} {_how(exit, words)}" for exit in died[:NAMED]],
        next=f"R goes on from the newest checkpoint once it has ended; bitwatch logs {view.run} "
        f"--rank {first.rank} shows its last lines",
    )


def _how(exit: events.ProcessExit, words: dict[int, events.RankEnded]) -> str:
    if exit.rank in words:
        return f"failed: {words[exit.rank].cause}"
    if exit.signal is None and exit.status is None:
        return "is gone without a last word"
    if exit.signal is None:
        return f"ended with exit code {exit.status}"
    try:
        return f"was killed by {signal.Signals(exit.signal).name}"
    except ValueError:
        return f"was killed by signal {exit.signal}"
