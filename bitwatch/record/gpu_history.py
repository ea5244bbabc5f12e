"""How busy and how full each GPU was: the last ten minutes sample by sample, and the whole run.

Fed from the samples and from the aggregates of the journal, in any order: what is kept never
depends on which file came first. Where no GPU is, the ranks' processor time and resident memory
take their place.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Protocol

import msgspec

from bitwatch.record import events
from bitwatch.record.series import Series

RECENT_S = 600.0
RECENT_LIMIT = 1200  # samples of a GPU: ten minutes, also when two a second are taken
WHOLE_LIMIT = 512  # buckets of a curve of the whole run: a graph here is never wider
BACKLOG_LIMIT = 4096  # aggregates that nobody has asked for yet; of more every second
ABSORBED = 32  # aggregates at a stretch: a millisecond

ALL = -1  # in the place of an index: all processes of the run together


class Recent(msgspec.Struct):
    """Samples in order of time. `busy` in percent, of a GPU or of one processor core."""

    times: list[float] = []
    busy: list[float | None] = []
    memory_mib: list[float | None] = []

    def add(
        self, t: float, busy: float | None, memory_mib: float | None, *, in_order: bool = False
    ) -> None:
        """`in_order`: it was taken after all that are here. When its time is long before theirs
        the clock has been set back, and all begins anew."""
        if in_order and self.times and t < self.times[-1] - RECENT_S:
            self.times, self.busy, self.memory_mib = [], [], []
        at = len(self.times)
        if at and t <= self.times[-1]:
            at = bisect.bisect_left(self.times, t)
            if self.times[at] == t or t < self.times[-1] - RECENT_S:
                return
        self.times.insert(at, t)
        self.busy.insert(at, busy)
        self.memory_mib.insert(at, memory_mib)
        old = bisect.bisect_left(self.times, self.times[-1] - RECENT_S)
        old = max(old, len(self.times) - RECENT_LIMIT)
        if old > 0:
            del self.times[:old], self.busy[:old], self.memory_mib[:old]

    def copy(self) -> Recent:
        return Recent(list(self.times), list(self.busy), list(self.memory_mib))


class Whole(msgspec.Struct):
    """Curves over the seconds of the wall clock since the run began."""

    busy: Series = msgspec.field(default_factory=lambda: Series(limit=WHOLE_LIMIT))
    memory_mib: Series = msgspec.field(default_factory=lambda: Series(limit=WHOLE_LIMIT))

    def add(self, t: float, busy: float | None, memory_mib: float | None) -> None:
        self.busy.add(int(t), busy)
        self.memory_mib.add(int(t), memory_mib)

    def copy(self) -> Whole:
        return Whole(self.busy.copy(), self.memory_mib.copy())


class GpuHistory(msgspec.Struct):
    """`recent` is by the name that `identity` gives a GPU or `of_rank` a rank, `whole` by the
    index of the GPU, which is all that an aggregate knows it by; `ALL` stands for the run."""

    recent: dict[str, Recent] = {}
    whole: dict[int, Whole] = {}
    answered: events.Gpus | None = None  # the newest sample that NVML has answered
    backlog: list[events.Minute] = []
    version: int = 0  # grows with whatever is added
    _apart: int = 1  # of so many aggregates one is kept in the backlog
    _passed: int = 0  # aggregates since the last one kept
    _picture: tuple[int, GpuHistory] | None = None

    def take_gpus(self, record: events.Gpus, *, in_order: bool = False) -> None:
        if not answers(record):
            return
        self.version += 1
        if self.answered is None or in_order or self.answered.t <= record.t:
            self.answered = record
        for gpu in record.gpus:
            if gpu.lost or gpu.error:  # what it says is what was last known of it
                continue
            values = record.t, gpu.utilization_percent, gpu.memory_used_mib
            self.recent.setdefault(identity(gpu), Recent()).add(*values, in_order=in_order)
            self.whole.setdefault(gpu.index, Whole()).add(*values)

    def take_processes(
        self, t: float, processes: Iterable[Measured], *, in_order: bool = False
    ) -> None:
        self.version += 1
        cpu = rss = 0.0
        for process in processes:
            cpu += process.cpu_percent or 0.0
            rss += process.rss_mib or 0.0
            if process.role == "rank" and process.rank is not None:
                recent = self.recent.setdefault(of_rank(process.rank), Recent())
                recent.add(t, process.cpu_percent, process.rss_mib, in_order=in_order)
        self.recent.setdefault("", Recent()).add(t, cpu, rss, in_order=in_order)
        self.whole.setdefault(ALL, Whole()).add(t, cpu, rss)

    def take_minute(self, record: events.Minute) -> None:
        """Kept as it is until somebody wants to see it: a listing never does."""
        self.version += 1
        self._passed += 1
        if self._passed < self._apart:
            return
        self._passed = 0
        self.backlog.append(record)
        if len(self.backlog) > BACKLOG_LIMIT:
            del self.backlog[1::2]
            self._apart *= 2

    def absorb(self, most: int = ABSORBED) -> bool:
        """Adds the oldest of the backlog to the curves; whether there is more."""
        taken, self.backlog = self.backlog[:most], self.backlog[most:]
        if not self.backlog:
            self._apart, self._passed = 1, 0
        self.version += bool(taken)
        for minute in taken:
            if minute.cpu_percent is not None or minute.rss_mib is not None:
                run = self.whole.setdefault(ALL, Whole())
                run.add(minute.t, minute.cpu_percent, minute.rss_mib)
            used, busy = minute.gpu_memory_mib, minute.gpu_utilization_percent
            for index in range(max(len(used), len(busy))):
                self.whole.setdefault(index, Whole()).add(
                    minute.t, _at(busy, index), _at(used, index)
                )
        return bool(self.backlog)

    def picture(self) -> GpuHistory:
        """For another thread, to look at while this one grows. The same one again until
        something is added: pictures are taken more often than samples."""
        if self.backlog:
            self.absorb()
        if self._picture is None or self._picture[0] != self.version:
            copied = GpuHistory(
                {name: recent.copy() for name, recent in self.recent.items()},
                {index: whole.copy() for index, whole in self.whole.items()},
                self.answered,
                version=self.version,
            )
            self._picture = (self.version, copied)
        return self._picture[1]


class Measured(Protocol):
    """A process of a sample, or what was decoded of one."""

    role: str
    rank: int | None
    cpu_percent: float | None
    rss_mib: float | None


def identity(gpu: events.Gpu) -> str:
    """By its UUID, which stays when the order of GPUs changes; by its index where it has none."""
    return gpu.uuid or str(gpu.index)


def of_rank(rank: int) -> str:
    return f"rank {rank}"


def answers(record: events.Gpus) -> bool:
    """Whether NVML has answered for this record. Where it has not, the note says why, and the
    GPUs in it are those that were there before."""
    return record.source == "nvml" and (not record.note or record.note.startswith("driver "))


def _at(values: list[float | None], index: int) -> float | None:
    return values[index] if index < len(values) else None
