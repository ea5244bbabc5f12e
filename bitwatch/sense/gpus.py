"""GPUs through NVML, sampled in a process of their own.

A driver call can hang for ever. Where it is one about a GPU, a thread hangs and the others go on
without that GPU; where it is any other, this process is abandoned, and nothing else waits. It
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
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bitwatch.record import codec, events
from bitwatch.record.gpu import DOES_NOT_ANSWER, NO_ANSWER, of_old
from bitwatch.sense.gpu_fields import Card, DriverGone, TooLate

PR_SET_PDEATHSIG = 1
RETRY_S = 10.0  # between two attempts to initialise NVML again
HANG_S = 4.0  # that a call may take; the supervisor waits for a line longer than that
HANGS = "a call of the driver hangs"
EMITTING = threading.Lock()


def main() -> None:
    interval_s, parent = float(sys.argv[1]), int(sys.argv[2])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    nvml, why = start_nvml()
    if nvml is None:
        emit(events.Gpus(source="cpu", note=why))
        return
    Sampling(nvml, interval_s).run()


def emit(record: events.Gpus) -> None:
    try:
        with EMITTING:
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


class Sampling:
    """The loop is in a thread. When a call about a GPU hangs in it, the next thread goes on without
    that GPU, until the call has come back after all."""

    def __init__(self, nvml: Any, interval_s: float) -> None:
        self._cards = Cards(nvml)
        self._interval_s = interval_s
        self._driver = driver_version(nvml)  # told with the first sample
        self._began = False

    def run(self) -> None:
        self._go_on()
        while True:
            time.sleep(HANG_S / 8)
            if self._cards.give_up_calls(time.monotonic() - HANG_S):
                if self._began:
                    emit(self._cards.told())  # at once: this process is not taken for silent
                self._go_on()

    def _go_on(self) -> None:
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            began = time.monotonic()
            try:
                record = self._cards.sample()
            except TooLate:
                return
            if self._driver and not record.note:
                record.note, self._driver = f"driver {self._driver}", None
            emit(record)
            self._began = True
            time.sleep(max(0.05, self._interval_s - (time.monotonic() - began)))


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
        """Never leaves out a GPU that was there. Raises TooLate in a thread that was given up."""
        if self._silent and time.monotonic() >= self._retry_at:
            self._start_again()
        passed_over: list[Card] = []  # their calls may come back before this sample is told
        if not self._silent:
            with self._noticing_a_lost_driver():
                for card in self._cards:
                    if card.hangs:
                        passed_over.append(card)
                    else:
                        card.read(self._number, len(self._cards))
                self._number += 1
                if self._cards and all(card.last.lost for card in self._cards):
                    self._silent = "all GPUs are lost"  # perhaps the driver is being loaded again
                    self._wait_for_driver()
                    return events.Gpus(gpus=[card.last for card in self._cards])
        return self.told(passed_over)

    def give_up_calls(self, since: float) -> bool:
        """Whether there was one, in the only thread that asks, that has not come back since then."""
        return any(card.give_up_call(since) for card in self._cards if not card.hangs)

    def told(self, passed_over: Sequence[Card] = ()) -> events.Gpus:
        """What is known now. `passed_over`: those that were not asked in this sample."""
        why = self._silent
        hanging = [card for card in self._cards if card.hangs or card in passed_over]
        if not why and hanging and all(card in hanging or card.given_up for card in self._cards):
            why = HANGS
        if why:
            gpus = [c.last if c.given_up else of_old(c.last, DOES_NOT_ANSWER) for c in self._cards]
            return events.Gpus(note=f"{NO_ANSWER}: {why}", gpus=gpus)
        error = f"{DOES_NOT_ANSWER}: {HANGS}"
        return events.Gpus(
            gpus=[
                of_old(card.last, error) if card in hanging else card.last for card in self._cards
            ]
        )

    def _find(self) -> list[Card]:
        return [self._card(index) for index in range(self._nvml.nvmlDeviceGetCount())]

    def _card(self, index: int) -> Card:
        try:
            return Card(self._nvml, index, self._nvml.nvmlDeviceGetHandleByIndex(index))
        except self._nvml.NVMLError as error:
            card = Card(self._nvml, index, None)
            card.give_up(str(error), lost=error.value != self._nvml.NVML_ERROR_NO_PERMISSION)
            return card

    def _start_again(self) -> None:
        """Everything anew: old handles mean nothing any more."""
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()
        with self._noticing_a_lost_driver():
            self._nvml.nvmlInit()
            found = self._find()
            for card in found:
                card.read(self._number, len(found))
            if not found or all(card.last.lost for card in found):
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
        if not card.given_up:
            card.give_up("it has not come back with the driver")
        joined.append(card)
    numbers = {card.last.index for card in joined}
    joined += [card for card in found if not card.last.uuid and card.last.index not in numbers]
    return sorted(joined, key=lambda card: card.last.index)


if __name__ == "__main__":
    main()
