"""Alerts about processes: more than the plan explains or more and more, GPU memory in other hands,
and what the machine around a run may do to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bitwatch.record import events
from bitwatch.record.view import ProcessRow, View
from bitwatch.supervise.disks import Room
from bitwatch.supervise.watch_deaths import Logs
from bitwatch.supervise.watch_gpus import NOTHING, Before
from bitwatch.supervise.watch_rows import below, of_attempt, of_ended

SLACK = 4  # processes beyond those explained: what a library starts for an instant
HELD_MIB = 64.0  # of a GPU: a context that nobody computes in
MINUTE_S = 60.0
GROWING_MINUTES = 3  # in a row, before it is growth
SHM_LOW_MIB = 64.0  # what a container has in all, where nobody asked for more
SHM_ENOUGH_MIB = 96.0  # once it was low: it changes with every block that is handed over
NAMED = 6


class Around(NamedTuple):
    """What no record says. Of the machine: room below /dev/shm, from where on that is enough,
    what the end of the session would do, what its GPUs were before, and the room on the disks. Of
    the run: its logs, and, when its processes become more and more, how many were at work in its
    first minute."""

    shm_free_mib: float | None = None
    session: Sequence[str] = ()
    logs: Logs = Logs()
    grown_from: int | None = None
    shm_enough_mib: float = SHM_LOW_MIB
    gpus: Before = NOTHING
    rooms: Sequence[Room] = ()


NOWHERE = Around()


class Growth:
    """Notices that processes become more and more. At the seam of two epochs there are twice as
    many workers for an instant: so it is the fewest of each minute that count, against the most
    of the first one in which steps were taken. Compile workers are not counted."""

    def __init__(self) -> None:
        self._began = 0.0
        self._fewest, self._most = 0, 0
        self._level: int | None = None
        self._above = 0  # minutes in a row

    def note(self, view: View, now: float) -> int | None:
        """The count of the first minute, while those since are above it; else None."""
        if not view.rank_steps or not view.processes:  # `step` may be an earlier attempt's
            return None
        count = len(_counted(view))
        since_s = now - self._began
        if 0 <= since_s < MINUTE_S:
            self._fewest, self._most = min(self._fewest, count), max(self._most, count)
            return self._told()
        if MINUTE_S <= since_s < 2 * MINUTE_S:  # else it is the first, or a clock was set
            self._level = self._most if self._level is None else self._level
            self._above = self._above + 1 if self._fewest > self._level + SLACK else 0
        self._began, self._fewest, self._most = now, count, count
        return self._told()

    def _told(self) -> int | None:
        return self._level if self._above >= GROWING_MINUTES else None


def _counted(view: View) -> list[ProcessRow]:
    """Compile workers come and go in numbers that are torch's own, and the pool that prepares the
    text has one process a core: neither they nor what they start are counted."""
    pools = {row.pid for row in view.processes if row.role in ("prepare", "compile worker")}
    of_pools = below(view.processes, pools)
    return [
        row
        for row in of_attempt(view)
        if row.state not in ("Z", "X") and row.role != "compile worker" and row.pid not in of_pools
    ]


def about_processes(view: View, around: Around, most: int | None) -> Iterator[events.Alert]:
    """`most` is watch.max_processes, None where only the plan counts."""
    yield from process_count(view, most, around.grown_from)
    yield from gpu_held(view)
    yield from shm_low(view, around)
    if around.session:
        yield events.Alert(
            id="session-will-kill",
            severity="warning",
            text="the end of your session may end or break this run: " + "; ".join(around.session),
            evidence=list(around.session),
            next="loginctl enable-linger, once; then the run outlives the session",
        )


def shm_low(view: View, around: Around) -> Iterator[events.Alert]:
    """Without workers nobody hands anything over. How much is left changes at every look, and is
    evidence: a changed sentence would be a line in the journal."""
    free_mib = around.shm_free_mib
    if free_mib is None or free_mib >= around.shm_enough_mib or not view.workers:
        return
    yield events.Alert(
        id="shm-low",
        severity="warning",
        text="/dev/shm is almost full: workers hand blocks over in it, and die with a bus error "
        "once it is full",
        evidence=[f"{free_mib:.0f} MiB were left when it was seen"],
        next="start the container with a larger --shm-size, or take fewer workers",
    )


def process_count(view: View, most: int | None, grown_from: int | None) -> Iterator[events.Alert]:
    if view.phase in ("prepare", "compile"):
        return  # their pools and compilers are as many as the machine has cores
    counted_ = _counted(view)
    # Supervisor, sensor and agent; and of each rank itself, its workers, twice at the seam of
    # two epochs, and a tracker.
    explained = 3 + view.ranks * (2 + 2 * view.workers)
    limit = explained + SLACK if most is None else most
    too_many = bool(view.ranks) and len(counted_) > limit
    if not too_many and grown_from is None:
        return
    roles: dict[str, int] = {}
    for row in counted_:
        roles[row.role] = roles.get(row.role, 0) + 1
    why = "watch.max_processes allows" if most is not None else "the plan explains"
    text = f"more processes than {why}: over {limit}"
    if not too_many:
        text = f"processes become more and more: over {grown_from} + {SLACK} for minutes, where "
        text += f"{grown_from} were at work in the first"
    yield events.Alert(
        id="process-count",
        severity="warning",
        text=text,
        evidence=[f"{number} x {role}" for role, number in sorted(roles.items())],
        next="look at the processes (key 4); key c ends what ended attempts have left, key S stops this one",
    )


def gpu_held(view: View) -> Iterator[events.Alert]:
    """Memory of a GPU of this run in the hands of somebody else."""
    if view.gpus is None or view.gpus.source != "nvml" or view.device != "cuda":
        return
    own = {row.pid for row in of_attempt(view)}
    left = of_ended(view)
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
        next="key c ends what ended attempts have left"
        if ours
        else "they are not of this run; `bitwatch clean` lists what may be left of others",
    )
