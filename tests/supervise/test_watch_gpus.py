"""Alerts about GPUs: what the sensor really says of them goes through the supervisor's watch into
a journal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bitwatch.record import events
from bitwatch.record.gpu import Gpu
from bitwatch.record.journal import JournalReader, JournalWriter
from bitwatch.record.view import ProcessRow, View
from bitwatch.supervise.watch import Watch
from bitwatch.supervise.watch_gpus import (
    FREE_SAMPLES,
    HELD_SAMPLES,
    UNANSWERED_SAMPLES,
    held_down,
)
from tests.nvml.standin import Standin
from tests.sense.gpu_reading import Sensing

HOT = Gpu(
    index=0, name="NVIDIA L4", temperature_c=93.0, slowdown_c=92.0, clock_sm_mhz=1050.0,
    clock_sm_most_mhz=2040.0, power_w=60.0, power_limit_w=72.0, throttle=["thermal slowdown"],
    ecc_uncorrected=0, ecc_corrected=12,
)  # fmt: skip
FINE = msgspec.structs.replace(HOT, throttle=["power cap"], clock_sm_mhz=1425.0, temperature_c=71.0)


class Watched:
    """One attempt, whose newest sample of GPUs changes; what stands and what was written."""

    def __init__(self, folder: Path, **facts: Any) -> None:
        journal = folder / "journal.jsonl"
        self._writer, self._reader = JournalWriter(journal), JournalReader(journal)
        self._reader.read()  # what an earlier one has written
        self.watch = Watch(self._writer)
        self.view = View(state="running", attempt=1, device="cuda", ranks=4, **facts)
        self.standing: dict[str, events.Alert] = {}
        self._t = 1000.0

    def look(self, gpus: events.Gpus | list[Gpu], samples: int = 1) -> list[events.Alert]:
        """The alerts that were written meanwhile, cleared ones among them."""
        for _ in range(samples):
            self._t += 1
            known = gpus if isinstance(gpus, events.Gpus) else events.Gpus(gpus=gpus)
            self.view.gpus = msgspec.structs.replace(known, t=self._t)
            self.watch.look(self.view, self._t)
            self.watch.look(self.view, self._t + 0.5)  # a second look at the same sample
        written = [record for record in self._reader.read() if isinstance(record, events.Alert)]
        for alert in written:
            if alert.cleared:
                self.standing.pop(alert.id, None)  # it may be of an earlier supervisor
            else:
                self.standing[alert.id] = alert
        return written


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def cards(*given: Gpu, count: int = 4) -> list[Gpu]:
    """`given`, and healthy ones up to `count`."""
    return [
        msgspec.structs.replace(given[index] if index < len(given) else FINE, index=index)
        for index in range(count)
    ]


def test_a_lost_gpu_and_a_silent_driver_are_told_until_they_are_back(
    standin: Standin, watched: Watched
) -> None:
    with Sensing(standin, "gpus.RETRY_S = 0.2") as sensing:
        assert watched.look(sensing.next()) == []
        standin.set(3, gpu_state="lost")
        watched.look(sensing.find(lambda r: r.gpus[3].lost, "the loss"))
        (alert,) = watched.standing.values()
        assert (alert.id, alert.severity) == ("gpu-lost-3", "error")
        assert alert.text == "GPU 3 is lost"
        assert "the driver says: GPU is lost" in alert.evidence
        assert any("71 °C (it slows down at 92)" in line for line in alert.evidence)
        assert any("GPU-3b2c3d4e" in line for line in alert.evidence)
        assert watched.look(sensing.next(), samples=5) == []  # once is enough
        standin.set("driver", state="gone")
        watched.look(sensing.find(lambda r: r.note, "the silence"))
        assert set(watched.standing) == {"gpu-lost-3", "nvml-silent"}  # not one for each GPU
        assert "Uninitialized" in watched.standing["nvml-silent"].evidence[0]
        standin.set(3, gpu_state="healthy")
        standin.set("driver", state="running")
        watched.look(sensing.find(lambda r: not r.note, "its return"))
        assert watched.standing == {}
        answers_nothing = dict.fromkeys(
            ("memory_used_mib", "utilization_percent", "temperature_c", "power_w"), "error 999"
        )
        standin.set(1, **answers_nothing)
        unanswered = sensing.find(lambda r: r.gpus[1].error, "a GPU without an answer")
        watched.look(unanswered, samples=UNANSWERED_SAMPLES)
        assert watched.standing["gpu-lost-1"].text == "GPU 1 does not answer"


def test_clocks_held_down_by_heat_are_told_after_some_samples_and_once(watched: Watched) -> None:
    assert watched.look(cards(HOT), samples=HELD_SAMPLES - 1) == []
    assert watched.look(cards(), samples=3) == []  # it was an instant
    assert watched.look(cards(HOT), samples=HELD_SAMPLES - 1) == []
    (alert,) = watched.look(cards(HOT))
    assert (alert.id, alert.severity) == ("gpu-throttled-0", "warning")
    assert alert.text == "GPU 0 is slowed down by heat, and the other ranks wait for it"
    assert alert.evidence[0] == (
        "clock 1,050 of 2,040 MHz, 93 °C (it slows down at 92), 60 of 72 W"
    )
    assert "thermal slowdown" in alert.evidence[1]
    assert "fans" in alert.next
    for _ in range(3):  # to and fro around the threshold: one line in the journal
        assert watched.look(cards(), samples=FREE_SAMPLES - 1) == []
        assert watched.look(cards(HOT)) == []
    (cleared,) = watched.look(cards(), samples=FREE_SAMPLES)
    assert (cleared.id, cleared.cleared) == ("gpu-throttled-0", True)


def test_a_power_cap_alone_is_how_an_l4_works(watched: Watched) -> None:
    assert watched.look(cards(), samples=HELD_SAMPLES * 3) == []
    assert held_down(msgspec.structs.replace(HOT, throttle=["sync boost", "clock setting"])) == ()
    assert held_down(msgspec.structs.replace(HOT, clock_sm_mhz=2010.0)) == ()  # nothing is lost
    assert held_down(msgspec.structs.replace(HOT, throttle=None)) == ()
    unknown = msgspec.structs.replace(HOT, clock_sm_mhz=None)
    assert held_down(unknown) == ("thermal slowdown",)


@pytest.mark.parametrize(
    ("reasons", "why"),
    [(["power cap", "power brake"], "its power supply"), (["hardware slowdown"], "its hardware")],
)
def test_a_brake_is_told_apart_from_heat(watched: Watched, reasons: list[str], why: str) -> None:
    watched.view.ranks = 1
    braked = msgspec.structs.replace(HOT, throttle=reasons, temperature_c=50.0)
    watched.look([braked], samples=HELD_SAMPLES)
    alert = watched.standing["gpu-throttled-0"]
    assert alert.text == f"GPU 0 is slowed down by {why}"
    assert "fans" not in alert.next


def test_uncorrected_memory_errors_count_from_the_beginning_of_the_attempt(
    watched: Watched,
) -> None:
    def with_errors(uncorrected: int) -> list[Gpu]:
        return cards(msgspec.structs.replace(FINE, ecc_uncorrected=uncorrected))

    assert watched.look(with_errors(7)) == []
    assert watched.look(with_errors(7)) == []
    (alert,) = watched.look(with_errors(8))
    assert (alert.id, alert.severity) == ("ecc-errors-0", "error")
    assert alert.text == "GPU 0: an uncorrected memory error since the attempt began"
    assert alert.evidence == [
        "8 since the driver was loaded, 7 of them before", "corrected ones: 12",
    ]  # fmt: skip
    (more,) = watched.look(with_errors(10), samples=2)
    assert "3 uncorrected memory errors" in more.text
    corrected = [msgspec.structs.replace(gpu, ecc_corrected=99) for gpu in with_errors(10)]
    assert watched.look(corrected) == []
    watched.view.attempt = 2
    (cleared,) = watched.look(with_errors(10))
    assert cleared.cleared
    watched.look(with_errors(0))  # the driver was loaded anew
    assert watched.standing == {}
    watched.look(with_errors(1))
    assert "ecc-errors-0" in watched.standing


def test_a_later_supervisor_of_the_attempt_keeps_what_was_told(tmp_path: Path) -> None:
    bad = cards(msgspec.structs.replace(HOT, ecc_uncorrected=3))
    first = Watched(tmp_path)
    first.look(cards())
    first.look(bad, samples=HELD_SAMPLES)
    assert set(first.standing) == {"ecc-errors-0", "gpu-throttled-0"}
    second = Watched(tmp_path)
    second.watch.adopt(first.standing.values())
    second._t = time.time() + 1.0
    assert not any(alert.cleared for alert in second.look(bad, samples=3))
    cleared = second.look(cards(msgspec.structs.replace(FINE, ecc_uncorrected=3)), FREE_SAMPLES)
    assert [alert.id for alert in cleared] == ["gpu-throttled-0"]


def seen_on(*pids: int) -> list[ProcessRow]:
    return [
        ProcessRow(pid=pid, starttime=1, ppid=1, role="rank", state="R", rank=rank)
        for rank, pid in enumerate(pids)
    ]


def all_lost(count: int) -> list[Gpu]:
    return [Gpu(index=index, error="GPU is lost", lost=True) for index in range(count)]


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"device": "cpu"}, set()),
        ({"ranks": 2}, {0, 1}),
        ({"ranks": 2, "visible_devices": "5,3,1"}, {5, 3}),
        ({"ranks": 4, "visible_devices": ""}, set()),
    ],
)
def test_only_gpus_of_the_run_are_told_of(
    watched: Watched, facts: dict[str, Any], told: set[int]
) -> None:
    for name, value in facts.items():
        setattr(watched.view, name, value)
    watched.look(all_lost(8))
    assert set(watched.standing) == {f"gpu-lost-{index}" for index in told}


def test_a_mig_instance_may_be_on_any_gpu_in_that_mode(watched: Watched) -> None:
    watched.view.ranks, watched.view.visible_devices = 1, "MIG-0a1b2c3d"
    watched.look([msgspec.structs.replace(gpu, mig=gpu.index > 0) for gpu in all_lost(3)])
    assert set(watched.standing) == {"gpu-lost-1", "gpu-lost-2"}


def test_where_its_processes_were_seen_is_what_a_run_uses(watched: Watched) -> None:
    """CUDA may count otherwise than NVML; and a GPU that is lost no longer tells of processes."""
    watched.view.ranks, watched.view.processes = 2, seen_on(71, 72)
    gpus = cards(count=6)
    gpus[4].processes, gpus[5].processes, gpus[0].processes = [(71, 9.0)], [(72, 9.0)], [(9, 9.0)]
    assert watched.look(gpus) == []
    hot = [msgspec.structs.replace(HOT, index=0), *gpus[1:4], *all_lost(6)[4:]]
    watched.look(hot, samples=HELD_SAMPLES)
    assert set(watched.standing) == {"gpu-lost-4", "gpu-lost-5"}


def test_what_was_sampled_before_the_attempt_is_not_told_of_it(tmp_path: Path) -> None:
    watched = Watched(tmp_path, attempt_started=1002.5)
    assert watched.look(all_lost(4), samples=2) == []
    assert watched.look(events.Gpus(note="NVML does not answer: it hung")) != []  # of this one
    assert set(watched.standing) == {"nvml-silent"}
    watched.view.attempt, watched.view.attempt_started = 2, 1006.5
    assert [alert.cleared for alert in watched.look(cards(), samples=2)] == []
    assert [alert.id for alert in watched.look(all_lost(4), samples=1)] == []
    assert set(watched.standing) == {"nvml-silent"}
    watched.look(all_lost(1), samples=1)
    assert set(watched.standing) == {"gpu-lost-0"}


def test_a_later_supervisor_waits_for_a_sample_of_its_own(tmp_path: Path) -> None:
    first = Watched(tmp_path)
    first.look(all_lost(1))
    assert set(first.standing) == {"gpu-lost-0"}
    second = Watched(tmp_path)
    second.watch.adopt(first.standing.values())
    assert second.look(all_lost(4)) == []  # from before: neither raised nor cleared
    second._t = time.time() + 1.0
    assert [(alert.id, alert.cleared) for alert in second.look(cards())] == [("gpu-lost-0", True)]


def test_a_gpu_that_does_not_answer_once_is_no_error(watched: Watched) -> None:
    mute = Gpu(index=0, error="does not answer (Unknown Error)")
    for _ in range(3):
        assert watched.look(cards(mute), samples=UNANSWERED_SAMPLES - 1) == []
        assert watched.look(cards()) == []
    (alert,) = watched.look(cards(mute), samples=UNANSWERED_SAMPLES)
    assert (alert.id, alert.text) == ("gpu-lost-0", "GPU 0 does not answer")
    (cleared,) = watched.look(cards())
    assert cleared.cleared


def test_heat_that_comes_and_goes_every_minute_is_one_alert(watched: Watched) -> None:
    """A pair of lines each time would fill the journal in the weeks of a run."""
    watched.look(cards(HOT), samples=HELD_SAMPLES)
    for _ in range(3):
        assert watched.look(cards(), samples=60) == []
        assert watched.look(cards(HOT), samples=HELD_SAMPLES) == []
    assert set(watched.standing) == {"gpu-throttled-0"}


def test_the_rules_go_on_when_the_clock_is_set_back(watched: Watched) -> None:
    assert watched.look(cards()) == []
    watched._t -= 600.0
    watched.look(cards(HOT), samples=HELD_SAMPLES)
    assert set(watched.standing) == {"gpu-throttled-0"}
