"""GPUs and a driver that go away while the sensor looks: nothing ends, nobody is forgotten."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from bitwatch.record import events
from bitwatch.sense import processes
from bitwatch.supervise import sensor as sensing_module
from bitwatch.supervise.sensor import Sensor
from tests.conftest import PATIENCE_S, alive, until
from tests.nvml.standin import Standin
from tests.sense.gpu_reading import Sensing


def lost(record: events.Gpus) -> list[int]:
    return [gpu.index for gpu in record.gpus if gpu.lost]


def test_a_lost_gpu_stays_and_is_never_called_again(standin: Standin) -> None:
    with Sensing(standin) as sensing:
        assert lost(sensing.next()) == []
        standin.set(3, gpu_state="lost")
        told = sensing.find(lost, "the loss")
        assert lost(told) == [3]
        gone = told.gpus[3]
        assert (gone.name, gone.memory_total_mib, gone.error) == (
            "NVIDIA L4", 23034.0, "GPU is lost",
        )  # fmt: skip
        assert gone.uuid and gone.uuid.startswith("GPU-3")
        assert (gone.memory_used_mib, gone.utilization_percent, gone.processes) == (None,) * 3
        calls, others = len(standin.calls(3)), len(standin.calls(2))
        standin.set(3, gpu_state="healthy")  # whatever it would say now
        for _ in range(15):
            assert sensing.next().gpus[3] == gone
        assert len(standin.calls(3)) == calls
        assert len(standin.calls(2)) > others
        assert sensing.next().gpus[2].utilization_percent == 97.0


def test_a_gpu_that_is_off_the_bus_from_the_beginning(standin: Standin) -> None:
    standin.set(1, gpu_state="off")
    standin.set(3, gpu_state="error 4")
    with Sensing(standin) as sensing:
        record = sensing.next()
        assert lost(record) == [1]  # which is not what one is that may not be looked at
        errors = [gpu.error for gpu in record.gpus]
        assert errors == [None, "GPU is lost", None, "Insufficient Permissions"]
        assert [gpu.error for gpu in sensing.next().gpus] == errors
    assert standin.calls(1) == standin.calls(3) == []


@pytest.mark.parametrize("error", [1, 9, 15])
def test_a_driver_that_goes_and_comes_back(standin: Standin, error: int) -> None:
    """Uninitialized, not loaded, or each GPU lost: it differs by driver. One of the GPUs does not
    come back, so the others change their numbers: each keeps the one that it is known by."""
    before = "gpus.RETRY_S = 0.2"
    with Sensing(standin, before) as sensing:
        known = sensing.next()
        standin.set("driver", state="gone", error=error)
        gone = sensing.find(lambda r: "does not answer" in r.note, "the driver's end")
        assert [gpu.uuid for gpu in gone.gpus] == [gpu.uuid for gpu in known.gpus]
        assert all(gpu.error and gpu.utilization_percent is None for gpu in gone.gpus)
        assert lost(gone) == ([0, 1, 2, 3] if error == 15 else [])
        tries = standin.calls().count("nvmlInit")
        until(lambda: sensing.next() and standin.calls().count("nvmlInit") > tries + 1, "tries")
        uuids = [gpu.uuid for gpu in known.gpus]
        standin.set(1, uuid=uuids[2])
        standin.set(2, uuid=uuids[3])
        standin.set("driver", state="running", count=3)
        back = sensing.find(lambda r: not r.note, "the driver's return")
        assert lost(back) == [1]
        assert [gpu.uuid for gpu in back.gpus] == uuids
        assert [gpu.index for gpu in back.gpus] == [0, 1, 2, 3]
        assert [gpu.utilization_percent for gpu in back.gpus] == [97.0, None, 97.0, 97.0]


def test_a_driver_that_is_gone_is_not_asked_at_every_sample(standin: Standin) -> None:
    with Sensing(standin, "gpus.RETRY_S = 600.0") as sensing:
        sensing.next()
        standin.set("driver", state="gone")
        sensing.find(lambda r: r.note.startswith("NVML does not answer: "), "the driver's end")
        calls = standin.calls()
        for _ in range(10):
            assert len(sensing.next().gpus) == 4
        assert standin.calls() == calls


def test_a_sensor_dies_with_its_parent_even_while_the_driver_hangs(standin: Standin) -> None:
    """Its output goes nowhere, so that no broken pipe could end it: only the kernel can."""
    standin.set("*", gpu_state="hangs")
    code = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'bitwatch.sense.gpus', '0.1',"
        " str(os.getpid())], stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **standin.counting},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout
    pid = int(parent.stdout.readline())
    stat = processes.read_stat(pid)
    assert stat
    until(lambda: standin.calls(0), "the call that hangs")
    assert alive(stat.key)
    parent.kill()
    parent.communicate()
    until(lambda: not alive(stat.key), "the orphaned sensor to be gone")
    assert not alive(stat.key)


class Supervised:
    """The supervisor's end of the sensor, in the supervisor's own loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, standin: Standin) -> None:
        for variable, text in standin.counting.items():
            monkeypatch.setenv(variable, text)
        # A sensor that only begins slowly, as on a busy machine, has not fallen silent.
        for name, value in (("SILENT_S", PATIENCE_S), ("CALM_S", 0.3), ("RESTARTS", 1)):
            monkeypatch.setattr(sensing_module, name, value)
        self.sensor = Sensor(0.05)
        self._selector = selectors.DefaultSelector()
        self.sensor.start(self._selector)
        self.pids = set(self.sensor.pids)

    def turn(self) -> list[events.Gpus]:
        """Records, as the supervisor would write them."""
        records = []
        for _ in self._selector.select(0.05):
            records += self.sensor.read(self._selector)
        records += self.sensor.check(self._selector)
        self.pids |= set(self.sensor.pids)
        for pid in list(self.sensor.pids):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self.sensor.note_exit(pid)
        return records

    def find(self, wanted: Callable[[events.Gpus], object], what: str) -> events.Gpus:
        return until(lambda: next((r for r in self.turn() if wanted(r)), None), what)

    def end(self) -> None:
        self.sensor.stop()
        ended = set(self.sensor.pids)
        until(lambda: self.turn() is not None and not ended & set(self.sensor.pids), "their end")


def test_a_call_that_hangs_costs_one_gpu_until_it_comes_back(standin: Standin) -> None:
    with Sensing(standin, "gpus.HANG_S = 0.3") as sensing:
        sensing.next()
        standin.set(2, power_w="hangs")
        record = sensing.find(lambda r: r.gpus[2].error, "the call that hangs")
        hung = record.gpus[2]
        assert hung.error == "does not answer: a call of the driver hangs"
        assert (hung.name, hung.lost, hung.utilization_percent) == ("NVIDIA L4", False, None)
        calls = standin.calls(2)
        standin.set(3, utilization_percent=50)
        after = sensing.find(lambda r: r.gpus[3].utilization_percent == 50.0, "the others' values")
        assert after.gpus[2] == hung
        assert not after.note
        assert standin.calls(2) == calls  # nothing more is asked of it
        standin.set("driver", state="hangs")
        silent = sensing.find(lambda r: r.note, "the silence of all")
        assert silent.note == "NVML does not answer: a call of the driver hangs"
        assert {gpu.error for gpu in silent.gpus} == {"does not answer"}
        assert [gpu.uuid for gpu in silent.gpus] == [gpu.uuid for gpu in after.gpus]
        standin.set(2, power_w=30)
        standin.set("driver", state="running")
        back = sensing.find(lambda r: not any(gpu.error for gpu in r.gpus), "their return")
        assert (back.gpus[2].power_w, back.note) == (30.0, "")
        threads = f"/proc/{sensing.pid}/task"  # the one that reads, and the one that looks after it
        until(lambda: sensing.next() and len(os.listdir(threads)) == 2, "one thread to go on")


WAITS_AT_3 = """
import time
gpus.HANG_S, seen, read = 0.3, {}, gpus.Card.read
def waiting(card, number, of):
    told = read(card, number, of)
    seen[told.index] = card
    while told.index == 3 and seen[2].hangs:
        time.sleep(0.01)
    return told
gpus.Card.read = waiting
"""


def test_a_call_that_comes_back_within_a_sample_is_no_answer_in_it(standin: Standin) -> None:
    """The sample has passed that GPU over, so what it knows of it is old."""
    with Sensing(standin, WAITS_AT_3) as sensing:
        assert sensing.next().gpus[2].power_w != 30.0
        standin.set(2, power_w="hangs")
        sensing.find(lambda r: r.gpus[2].error, "the call that hangs")
        standin.set(2, power_w=30)
        back = sensing.find(lambda r: not r.gpus[2].error, "its return")
        assert back.gpus[2].power_w == 30.0


def test_a_sensor_that_is_silent_is_replaced_and_the_gpus_are_not_forgotten(
    standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised = Supervised(monkeypatch, standin)
    healthy = supervised.find(lambda r: len(r.gpus) == 4, "a first sample")
    assert healthy.gpus[2].utilization_percent == 97.0
    (first,) = supervised.pids
    standin.set("driver", state="hangs")  # so even the beginning of the next one does
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr(sensing_module, "SILENT_S", 0.8)
    silent = supervised.find(lambda r: r.note.startswith("NVML"), "the silence")
    assert silent.note == "NVML does not answer: a call of the driver hangs"
    assert [gpu.uuid for gpu in silent.gpus] == [gpu.uuid for gpu in healthy.gpus]
    assert {gpu.error for gpu in silent.gpus} == {"does not answer"}
    assert silent.gpus[2].memory_total_mib == 23034.0
    assert silent.gpus[2].utilization_percent is None
    assert supervised.sensor.latest == silent
    until(lambda: supervised.turn() is not None and first not in supervised.sensor.pids, "its end")
    # It is told again and again, with the time of now, and each child is abandoned in turn.
    again = supervised.find(lambda r: r.note and r.t > silent.t, "a second word")
    assert [gpu.uuid for gpu in again.gpus] == [gpu.uuid for gpu in healthy.gpus]
    until(lambda: supervised.turn() is not None and len(supervised.pids) > 3, "calm restarts")
    monkeypatch.setattr(sensing_module, "SILENT_S", PATIENCE_S)
    standin.set("driver", state="running")
    back = supervised.find(lambda r: not r.note.startswith("NVML"), "the driver's answer")
    assert back.gpus[2].utilization_percent == 97.0
    # One that is killed is replaced too, and so is one that no longer finds a driver.
    standin.set("driver", state="gone")
    supervised.end()
    gone = supervised.find(lambda r: "no NVIDIA driver" in r.note, "a child without a driver")
    assert gone.source == "nvml" and len(gone.gpus) == 4
    standin.set("driver", state="running")
    supervised.find(lambda r: r.note.startswith("driver"), "the driver's return")
    supervised.sensor.stop()


def test_a_machine_without_gpus_needs_no_second_sensor(
    standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    standin.set("driver", count=0)
    supervised = Supervised(monkeypatch, standin)
    record = supervised.find(lambda r: True, "a word")
    assert (record.source, record.gpus) == ("cpu", [])
    until(lambda: supervised.turn() is not None and not supervised.sensor.pids, "its end")
    for _ in range(20):
        assert supervised.turn() == []
    assert len(supervised.pids) == 1
