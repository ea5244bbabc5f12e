"""What the GPUs of a picture mean for the run: which it uses, whose their memory is, which rank
sits on which, why one is slow. Pure: no widths, no colours.
"""

from __future__ import annotations

from typing import NamedTuple

from bitwatch.record import events
from bitwatch.record.gpu_history import answers, identity
from bitwatch.record.view import END_STATES, ProcessRow, View
from bitwatch.record.visible import are_whole, in_order
from bitwatch.text import duration
from bitwatch.tui.draw import plain

STALE_S = 10.0
GIB = 1024.0  # MiB
NORMAL = "power cap"  # an L4 at full load is held at its power limit all day
BAD = ("slowdown", "brake")  # of the reasons for low clocks: heat, power supply, hardware
NEARLY = 0.95  # of the highest clock: above that nothing is lost


class Seat(NamedTuple):
    """A rank on a GPU. `guessed`: from its number, as no process id tells."""

    rank: int
    guessed: bool


class Held(NamedTuple):
    """Whose the used memory of a GPU is, in MiB; each None where it cannot be told. `rest` is
    what no process is told to hold: the driver's own. `others_pid`: of the only other process."""

    ours: float | None
    leftovers: float | None
    others: float | None
    rest: float | None
    others_pid: int | None = None


class Facts:
    """Everything about the GPUs of one picture that takes all of them to know."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.gpus = last_known(view)
        self._own = {row.pid for row in view.processes}
        self._left = {process.pid for process in view.leftovers}
        known = self._own | self._left
        # Process ids of another namespace (a container's host) say nothing about whose.
        self.pids_are_ours = any(pid in known for g in self.gpus for pid, _ in g.processes or ())
        self._ordered = in_order(self.gpus, view.visible_devices)
        self._are_whole = are_whole(self.gpus, view.visible_devices)
        self.seats = self._seats()
        self.used = self._used()
        self.predicted_mib = predicted_mib(view)

    def held(self, gpu: events.Gpu) -> Held:
        if gpu.processes is None or (not self.pids_are_ours and self._should_hold(gpu)):
            return Held(None, None, None, None)
        parts: list[list[tuple[int, float | None]]] = [[], [], []]
        for pid, mib in gpu.processes:
            whose = 0 if pid in self._own else 1 if pid in self._left else 2
            parts[whose].append((pid, mib))
        ours, leftovers, others = (_sum(part) for part in parts)
        rest = None
        used = gpu.memory_used_mib
        if used is not None and None not in (ours, leftovers, others):
            rest = max(0.0, used - (ours or 0) - (leftovers or 0) - (others or 0))
        one = parts[2][0][0] if len(parts[2]) == 1 else None
        return Held(ours, leftovers, others, rest, one)

    def step_on(self, gpu: events.Gpu) -> events.Step | None:
        """The newest step record of the rank on it: what its allocator says."""
        seats = self.seats.get(gpu.index, [])
        return self.view.rank_steps.get(seats[0].rank) if len(seats) == 1 else None

    def _should_hold(self, gpu: events.Gpu) -> bool:
        """Whether some rank has certainly memory there, whatever the process ids say."""
        running = self.view.state not in END_STATES and self.view.device == "cuda"
        return running and self.view.step > 0 and gpu.index in self.used

    def _seats(self) -> dict[int, list[Seat]]:
        view = self.view
        ranks = {row.pid: row.rank for row in view.processes if row.role == "rank"}
        seats: dict[int, list[Seat]] = {}
        seen: set[int] = set()
        for gpu in self.gpus:
            for pid, _ in gpu.processes or ():
                rank = ranks.get(pid)
                if rank is not None and rank not in seen:
                    seen.add(rank)
                    seats.setdefault(gpu.index, []).append(Seat(rank, False))
        if view.device == "cuda" and view.state not in END_STATES and self._are_whole:
            for rank, index in zip(range(view.ranks), self._ordered, strict=False):
                if rank not in seen:
                    seats.setdefault(index, []).append(Seat(rank, True))
        return seats

    def _used(self) -> set[int]:
        view = self.view
        if view.device == "cpu":
            return set()
        used = set(self._ordered)
        if view.device == "cuda" and view.ranks and not view.foreign and self._are_whole:
            alike = len({gpu.name for gpu in self.gpus if gpu.name and gpu.index in used}) < 2
            # A rank takes the GPU of its number; of unlike ones CUDA numbers the fastest first.
            used = set(self._ordered[: view.ranks] if alike else self._ordered)
        return used | set(self.seats)


def predicted_mib(view: View) -> float | None:
    memory = view.plan.get("memory") or {}
    gib = (memory.get("per_gpu_gib") or {}).get("total")
    return gib * GIB if gib else None


def held_down(gpu: events.Gpu) -> list[str]:
    """Why its clocks are lower than they could be, what slows it down first."""
    words = [plain(word) for word in gpu.throttle or ()]
    return sorted(words, key=lambda word: not any(bad in word for bad in BAD))


def is_slow(gpu: events.Gpu) -> bool:
    """Whether it is really slower, and not by its settings or at its power limit."""
    clock, most = gpu.clock_sm_mhz, gpu.clock_sm_most_mhz
    if clock is not None and most and clock >= NEARLY * most:
        return False
    return any(bad in word for word in gpu.throttle or () for bad in BAD)


def in_a_word(why: str) -> str:
    """thermal slowdown -> heat, power brake -> brake, hardware slowdown -> hardware"""
    if "thermal" in why:
        return "heat"
    return "brake" if "brake" in why else why.removesuffix(" slowdown")


def is_gone(gpu: events.Gpu) -> bool:
    return gpu.lost or bool(gpu.error)


def last_known(view: View) -> list[events.Gpu]:
    """The GPUs of the newest sample; where NVML does not answer, as they were when it last did."""
    if view.gpus is None:
        return []
    before = view.gpu_history.answered
    if before is None or answers(view.gpus):
        return view.gpus.gpus
    told = {identity(gpu): gpu for gpu in before.gpus}
    if not view.gpus.gpus and view.gpus.source == "nvml":
        return before.gpus
    return [gpu if gpu.lost else told.get(identity(gpu), gpu) for gpu in view.gpus.gpus]


def trouble(view: View, now: float) -> str:
    """Why what is shown of the GPUs is not of now; empty where it is."""
    record = view.gpus
    if record is None:
        return ""
    if answers(record) or record.source != "nvml":
        return age(now - record.t)
    before = view.gpu_history.answered
    old = age(now - before.t) if before else ""
    return f"{old} · {plain(record.note)}" if old else plain(record.note)


def age(seconds: float) -> str:
    if seconds < STALE_S:
        return ""
    return f"{seconds:.0f} s old" if seconds < 120 else f"{duration(seconds)} old"


def name_of(gpu: events.Gpu) -> str:
    """NVIDIA L4 -> L4: every name begins with the same words."""
    return plain(gpu.name or "GPU").removeprefix("NVIDIA ").removeprefix("Tesla ")


def shows_ranks(view: View) -> bool:
    """Whether the ranks' processor time and memory stand in for GPUs: there are none, or the
    run computes on the CPU beside them."""
    if last_known(view):
        return view.device == "cpu" and bool(ranks_of(view))
    return not expects_gpus(view)


def expects_gpus(view: View) -> bool:
    """Whether GPUs are to be expected, though no sample of them is there."""
    return view.device == "cuda" or bool(view.gpus and view.gpus.source == "nvml")


def ranks_of(view: View) -> list[ProcessRow]:
    return sorted(
        (row for row in view.processes if row.role == "rank"), key=lambda row: row.rank or 0
    )


def rows_wanted(view: View) -> int:
    """Lines of the small form."""
    gpus = last_known(view)
    return len(ranks_of(view)) if shows_ranks(view) or not gpus else len(gpus)


def _sum(part: list[tuple[int, float | None]]) -> float | None:
    values = [mib for _, mib in part]
    return None if None in values else sum(value or 0.0 for value in values)
