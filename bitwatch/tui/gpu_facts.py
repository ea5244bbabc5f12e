"""What the GPUs of a picture mean for the run: which it uses, whose their memory is, which rank
sits on which, why one is slow. Pure: no widths, no colours.
"""

from __future__ import annotations

from typing import NamedTuple

from bitwatch.record import events
from bitwatch.record.gpu_history import answers
from bitwatch.record.view import END_STATES, ProcessRow, View
from bitwatch.record.visible import visible
from bitwatch.text import duration
from bitwatch.tui.draw import plain

STALE_S = 10.0
GIB = 1024.0  # MiB
NORMAL = "power cap"  # an L4 at full load is held at its power limit all day


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
        self.gpus = view.gpus.gpus if view.gpus else []
        self._own = {row.pid for row in view.processes}
        self._left = {process.pid for process in view.leftovers}
        known = self._own | self._left
        # Process ids of another namespace (a container's host) say nothing about whose.
        self.pids_are_ours = any(pid in known for g in self.gpus for pid, _ in g.processes or ())
        self._ordered = in_order(self.gpus, view.visible_devices)
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
        if view.device == "cuda" and view.state not in END_STATES:
            for rank, index in zip(range(view.ranks), self._ordered, strict=False):
                if rank not in seen:
                    seats.setdefault(index, []).append(Seat(rank, True))
        return seats

    def _used(self) -> set[int]:
        view = self.view
        if view.device == "cpu":
            return set()
        used = set(self._ordered)
        if view.device == "cuda" and view.ranks and not view.foreign:
            used = set(self._ordered[: view.ranks])  # a rank takes the GPU of its number
        return used | set(self.seats)


def in_order(gpus: list[events.Gpu], value: str | None) -> list[int]:
    """Indexes of the visible GPUs as CUDA numbers them: in the order in which they are named."""
    seen = visible(gpus, value)
    named: list[int] = []
    for entry in (value or "").split(","):
        named += sorted((visible(gpus, entry.strip()) & seen) - set(named))
    return [*named, *sorted(seen - set(named))]


def predicted_mib(view: View) -> float | None:
    memory = view.plan.get("memory") or {}
    gib = (memory.get("per_gpu_gib") or {}).get("total")
    return gib * GIB if gib else None


def held_down(gpu: events.Gpu) -> list[str]:
    """Why its clocks are lower than they could be, what is not normal first."""
    return sorted((plain(word) for word in gpu.throttle or ()), key=lambda word: word == NORMAL)


def is_slow(gpu: events.Gpu) -> bool:
    return any(word != NORMAL for word in gpu.throttle or ())


def in_a_word(why: str) -> str:
    lower = why.lower()
    if "therm" in lower or "temp" in lower or "heat" in lower:
        return "heat"
    return "brake" if "brake" in lower else why


def is_gone(gpu: events.Gpu) -> bool:
    return gpu.lost or bool(gpu.error)


def trouble(view: View, now: float) -> str:
    """Why what is shown of the GPUs is not of now; empty where it is."""
    record = view.gpus
    if record is None or not record.gpus:
        return ""
    if not answers(record) and record.note:
        return plain(record.note)
    return age(now - record.t)


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
    if view.gpus and view.gpus.gpus:
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
    if shows_ranks(view) or not (view.gpus and view.gpus.gpus):
        return len(ranks_of(view))
    return len(view.gpus.gpus)


def _sum(part: list[tuple[int, float | None]]) -> float | None:
    values = [mib for _, mib in part]
    return None if None in values else sum(value or 0.0 for value in values)
