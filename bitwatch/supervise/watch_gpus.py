"""Alerts about the GPUs of a run: one that is lost, one whose clocks are held down by heat or by
the power supply, memory that has lost bits, and a driver that tells nothing any more."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bitwatch.record import events
from bitwatch.record.gpu import BRAKES, HEAT, NO_ANSWER, Gpu
from bitwatch.record.view import View
from bitwatch.record.visible import are_whole, in_order
from bitwatch.supervise.watch_rows import of_attempt

HELD_SAMPLES = 4  # in a row with held clocks, before they are told of
FREE_SAMPLES = 120  # in a row without, before that is over: heat comes and goes within a minute
UNANSWERED_SAMPLES = 3  # in a row: a driver under load fails to answer now and then
REALLY = 0.95  # of its highest clock: above that nothing is lost
LOST, THROTTLED, ECC, SILENT = "gpu-lost", "gpu-throttled", "ecc-errors", "nvml-silent"
IDS = LOST, THROTTLED, ECC, SILENT
KERNEL_LOG = "look for Xid in the kernel log (`dmesg | grep -i xid`)"


class Before(NamedTuple):
    """What the newest sample alone does not tell. By the number of a GPU: the last sample in which
    it answered, uncorrected errors of its memory when the attempt began, and why its clocks are
    held down. `unanswered`: those that have said nothing for some samples. `used`: those that
    processes of this attempt were seen on. `is_new`: whether the newest sample is of this attempt
    and of this supervisor."""

    answered: Mapping[int, Gpu] = {}
    uncorrected: Mapping[int, int] = {}
    held: Mapping[int, tuple[str, ...]] = {}
    unanswered: frozenset[int] = frozenset()
    used: frozenset[int] = frozenset()
    is_new: bool = True


NOTHING = Before()


class Cards:
    """Remembers the GPUs from sample to sample of one attempt."""

    def __init__(self) -> None:
        self._attempt = 0
        self._sampled = 0.0
        self._since = 0.0  # what was sampled before is what somebody else has seen
        self._adopted: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        self._answered: dict[int, Gpu] = {}
        self._uncorrected: dict[int, int] = {}
        self._reasons: dict[int, tuple[str, ...]] = {}
        self._held: dict[int, int] = {}  # samples in a row
        self._free: dict[int, int] = {}
        self._unanswered: dict[int, int] = {}
        self._told: set[int] = set()
        self._used: set[int] = set()
        self._is_new = False

    def adopt(self, raised: Iterable[str]) -> None:
        """Ids that an earlier supervisor of the attempt has raised: what had grown then is no
        beginning now."""
        self._since = time.time()
        self._adopted = {id for id in raised if id.startswith((ECC, THROTTLED, LOST))}

    def note(self, view: View) -> Before:
        if view.attempt != self._attempt:
            if self._attempt:
                self._adopted = set()
            self._attempt = view.attempt
            self._forget()
        if view.gpus is None:  # a run that is over, or of which nothing is known yet
            return self._before()
        if not self._is_new and view.gpus.t < max(self._since, view.attempt_started or 0.0):
            return NOTHING._replace(is_new=False)
        self._is_new = True
        if view.gpus.source == "nvml" and view.gpus.t != self._sampled:
            self._sampled = view.gpus.t
            own = {row.pid for row in of_attempt(view)}
            silent = view.gpus.note.startswith(NO_ANSWER)
            for gpu in view.gpus.gpus:
                if gpu.error is None:
                    self._unanswered[gpu.index] = 0
                    self._adopted.discard(f"{LOST}-{gpu.index}")
                    self._note(gpu, own)
                elif not silent:
                    self._unanswered[gpu.index] = self._unanswered.get(gpu.index, 0) + 1
        return self._before()

    def _before(self) -> Before:
        held = {index: self._reasons[index] for index in self._told}
        unanswered = frozenset(
            index
            for index, samples in self._unanswered.items()
            if samples >= UNANSWERED_SAMPLES or (samples and f"{LOST}-{index}" in self._adopted)
        )
        used = frozenset(self._used)
        return Before(self._answered, self._uncorrected, held, unanswered, used)

    def _note(self, gpu: Gpu, own: set[int]) -> None:
        index = gpu.index
        self._answered[index] = gpu
        if any(pid in own for pid, _ in gpu.processes or ()):
            self._used.add(index)
        if gpu.ecc_uncorrected is not None:
            first = gpu.ecc_uncorrected - (f"{ECC}-{index}" in self._adopted)
            known = self._uncorrected.get(index, first)
            self._uncorrected[index] = min(known, gpu.ecc_uncorrected)  # a driver counts anew
        if reasons := held_down(gpu):
            self._reasons[index] = reasons
            self._held[index], self._free[index] = self._held.get(index, 0) + 1, 0
            if self._held[index] >= HELD_SAMPLES or f"{THROTTLED}-{index}" in self._adopted:
                self._told.add(index)
        else:
            self._held[index], self._free[index] = 0, self._free.get(index, 0) + 1
            if self._free[index] >= FREE_SAMPLES:
                self._told.discard(index)


def held_down(gpu: Gpu) -> tuple[str, ...]:
    """Why its clocks are lower than they should be, if they are. A power cap is none of these
    reasons: at full load an L4 is at its 72 W, and that is what it was made for."""
    reasons = tuple(word for word in gpu.throttle or () if word in (*HEAT, *BRAKES))
    clock, most = gpu.clock_sm_mhz, gpu.clock_sm_most_mhz
    if clock is not None and most and clock >= REALLY * most:
        return ()
    return reasons


def about_gpus(view: View, before: Before = NOTHING) -> Iterator[events.Alert]:
    if view.gpus is None or view.gpus.source != "nvml" or view.device != "cuda":
        return
    if not before.is_new:
        return
    silent = view.gpus.note.startswith(NO_ANSWER)
    if silent:
        yield _silent(view.gpus.note)
    wanted = of_run(view, before)
    for gpu in view.gpus.gpus:
        if gpu.index not in wanted:
            continue
        if gpu.lost or (gpu.error and not silent and gpu.index in before.unanswered):
            yield _lost(gpu, before.answered.get(gpu.index))
        elif gpu.index in before.held:
            last = before.answered.get(gpu.index, gpu)
            yield _throttled(last, before.held[gpu.index], view.ranks > 1)
        if (first := before.uncorrected.get(gpu.index)) is not None:
            yield from _ecc(before.answered.get(gpu.index, gpu), first)


def of_run(view: View, before: Before) -> set[int]:
    """The GPUs that it uses: those that its processes were seen on, where their pids can be told
    (in a container they often cannot), and what is silent among the first visible ones, one a
    rank; all of these as long as no process was seen."""
    gpus = view.gpus.gpus if view.gpus else []
    seen = in_order(gpus, view.visible_devices)
    alike = len({gpu.name for gpu in gpus if gpu.name and gpu.index in seen}) < 2
    if alike and are_whole(gpus, view.visible_devices):
        seen = seen[: view.ranks or None]  # unlike ones: CUDA puts the fastest first, not NVML
    if not before.used:
        return set(seen)
    return set(before.used) | {gpu.index for gpu in gpus if gpu.index in seen and gpu.error}


def _silent(note: str) -> events.Alert:
    return events.Alert(
        id=SILENT,
        severity="warning",
        text="NVML does not answer: nothing is known of the GPUs now",
        evidence=[note],
        next=f"see whether `nvidia-smi` answers, and {KERNEL_LOG}; while steps go on, S saves them",
    )


def _lost(gpu: Gpu, last: Gpu | None) -> events.Alert:
    what = "is lost" if gpu.lost else "does not answer"
    return events.Alert(
        id=f"{LOST}-{gpu.index}",
        severity="error",
        text=f"GPU {gpu.index} {what}",
        evidence=[
            f"the driver says: {gpu.error}",
            f"it is {gpu.name or 'a GPU'} {gpu.uuid or 'that has not told who it is'}",
            *([f"when it last answered: {_state(last)}"] if last else []),
        ],
        next=f"{KERNEL_LOG}; it computes again after a reboot, or a reset by the administrator",
    )


def _throttled(gpu: Gpu, reasons: tuple[str, ...], with_others: bool) -> events.Alert:
    by_heat = any(reason in HEAT for reason in reasons)
    why = "heat" if by_heat else "its power supply" if "power brake" in reasons else "its hardware"
    return events.Alert(
        id=f"{THROTTLED}-{gpu.index}",
        severity="warning",
        text=f"GPU {gpu.index} is slowed down by {why}"
        + (", and the other ranks wait for it" if with_others else ""),
        evidence=[_state(gpu), "the driver says: " + ", ".join(reasons)],
        next="look at the fans and the air of the machine; a lower power limit keeps it cooler"
        if by_heat
        else "have the power supply and its cables looked at; the driver cannot change this",
    )


def _ecc(gpu: Gpu, first: int) -> Iterator[events.Alert]:
    """Uncorrected errors that came since. What was corrected did no harm, and is told with them."""
    grown = (gpu.ecc_uncorrected or 0) - first
    if grown <= 0:
        return
    corrected = "unknown" if gpu.ecc_corrected is None else f"{gpu.ecc_corrected:,}"
    yield events.Alert(
        id=f"{ECC}-{gpu.index}",
        severity="error",
        text=f"GPU {gpu.index}: {grown:,} uncorrected memory errors since the attempt began"
        if grown > 1
        else f"GPU {gpu.index}: an uncorrected memory error since the attempt began",
        evidence=[
            f"{gpu.ecc_uncorrected:,} since the driver was loaded, {first:,} of them before",
            f"corrected ones: {corrected}",
        ],
        next="what it has computed since may be wrong: resume from a checkpoint of before, on "
        "another GPU, and have this one reset or replaced",
    )


def _state(gpu: Gpu) -> str:
    """Its clock, heat and power, each with what bounds it."""
    parts = []
    if gpu.clock_sm_mhz is not None:
        most = f" of {gpu.clock_sm_most_mhz:,.0f}" if gpu.clock_sm_most_mhz else ""
        parts.append(f"clock {gpu.clock_sm_mhz:,.0f}{most} MHz")
    if gpu.temperature_c is not None:
        bound = f" (it slows down at {gpu.slowdown_c:.0f})" if gpu.slowdown_c else ""
        parts.append(f"{gpu.temperature_c:.0f} °C{bound}")
    if gpu.power_w is not None:
        limit = f" of {gpu.power_limit_w:.0f}" if gpu.power_limit_w else ""
        parts.append(f"{gpu.power_w:.0f}{limit} W")
    return ", ".join(parts) or "it told nothing of its clock, heat and power"
