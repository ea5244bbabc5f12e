"""GPUs through NVML, sampled in a process of their own.

A driver call can hang for ever; then this process is abandoned and nothing else waits. It
prints one `gpus` record a line on stdout and ends with its parent. What a GPU cannot say is
None, one that is lost stays in every record, and so do all of them when the driver goes away
while we look; it is asked again from time to time.

    python -m bitwatch.sense.gpus SECONDS PARENT_PID
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from bitwatch.record import codec, events
from bitwatch.record.gpu import DOES_NOT_ANSWER, NO_ANSWER, of_old
from bitwatch.sense.gpu_fields import Card, DriverGone

PR_SET_PDEATHSIG = 1
RETRY_S = 10.0  # between two attempts to initialise NVML again


def main() -> None:
    interval_s, parent = float(sys.argv[1]), int(sys.argv[2])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    nvml, why = start_nvml()
    if nvml is None:
        emit(events.Gpus(source="cpu", note=why))
        return
    cards = Cards(nvml)
    first = True
    while True:
        began = time.monotonic()
        record = cards.sample()
        if first and not record.note and (driver := driver_version(nvml)):
            record.note = f"driver {driver}"
        first = False
        emit(record)
        time.sleep(max(0.05, interval_s - (time.monotonic() - began)))


def emit(record: events.Gpus) -> None:
    try:
        os.write(1, codec.encode(record))
    except OSError:
        os._exit(0)  # nobody reads any more


def start_nvml() -> tuple[Any, str]:
    """The initialised module, or None and why there are no GPUs to read."""
    try:
        import pynvml
    except ImportError:
        return None, "nvidia-ml-py is not installed"
    try:
        pynvml.nvmlInit()
        if pynvml.nvmlDeviceGetCount() == 0:
            return None, "no NVIDIA GPU"
    except pynvml.NVMLError as error:
        return None, f"no NVIDIA driver ({error})"
    return pynvml, ""


def driver_version(nvml: Any) -> str | None:
    try:
        version = nvml.nvmlSystemGetDriverVersion()
    except nvml.NVMLError:
        return None
    return version.decode(errors="replace") if isinstance(version, bytes) else version


class Cards:
    """All GPUs of the machine, from sample to sample; NVML is initialised."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._number = 0  # of the sample
        self._cards: list[Card] = []
        self._silent = ""  # why the driver does not answer
        self._retry_at = 0.0
        with self._noticing_a_lost_driver():
            self._cards = self._find()

    def sample(self) -> events.Gpus:
        """Never raises, and never leaves out a GPU that was there."""
        if self._silent and time.monotonic() >= self._retry_at:
            self._start_again()
        if not self._silent:
            with self._noticing_a_lost_driver():
                gpus = [card.read(self._number, len(self._cards)) for card in self._cards]
                self._number += 1
                if gpus and all(card.lost for card in self._cards):
                    self._wait_for_driver()  # perhaps it is being loaded again
                return events.Gpus(source="nvml", gpus=gpus)
        return events.Gpus(
            source="nvml",
            note=f"{NO_ANSWER}: {self._silent}",
            gpus=[
                card.last if card.lost else of_old(card.last, DOES_NOT_ANSWER)
                for card in self._cards
            ],
        )

    def _find(self) -> list[Card]:
        return [self._card(index) for index in range(self._nvml.nvmlDeviceGetCount())]

    def _card(self, index: int) -> Card:
        try:
            return Card(self._nvml, index, self._nvml.nvmlDeviceGetHandleByIndex(index))
        except self._nvml.NVMLError as error:
            return Card(self._nvml, index, None, str(error))

    def _start_again(self) -> None:
        """Everything anew: old handles mean nothing any more."""
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()
        with self._noticing_a_lost_driver():
            self._nvml.nvmlInit()
            found = self._find()
            for card in found:
                card.read(self._number, len(found))
            if not found or all(card.lost for card in found):
                self._wait_for_driver()
            else:
                self._cards, self._silent = _joined(self._cards, found), ""

    @contextlib.contextmanager
    def _noticing_a_lost_driver(self) -> Iterator[None]:
        try:
            yield
        except (DriverGone, self._nvml.NVMLError) as error:
            self._silent = str(error)
            self._wait_for_driver()

    def _wait_for_driver(self) -> None:
        self._silent = self._silent or "all GPUs are lost"
        self._retry_at = time.monotonic() + RETRY_S


def _joined(before: list[Card], found: list[Card]) -> list[Card]:
    """Those that are found again keep their numbers, by which everybody knows them; one that does
    not come back with the others stays, as lost."""
    told: dict[str | None, Card] = {card.last.uuid: card for card in found if card.last.uuid}
    joined = list(told.values())
    for card in before:
        if again := told.get(card.last.uuid):
            again.last.index = card.last.index
            continue
        if not card.lost:
            card.give_up("it has not come back with the driver")
        joined.append(card)
    numbers = {card.last.index for card in joined}
    joined += [card for card in found if not card.last.uuid and card.last.index not in numbers]
    return sorted(joined, key=lambda card: card.last.index)


if __name__ == "__main__":
    main()
