"""The GPU sensor through the real nvidia-ml-py, with a small C library in NVML's place."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bitwatch.record import codec, events
from bitwatch.sense import processes
from bitwatch.supervise import sensor as sensing
from bitwatch.supervise.sensor import Sensor
from tests.conftest import alive, until

COMPILER = shutil.which("cc")


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for LD_LIBRARY_PATH with four GPUs, the last of them lost."""
    if COMPILER is None:
        pytest.skip("no C compiler to make a stand-in for NVML")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("nvml.c")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source], check=True)
    return str(folder)


def first_line(environment: dict[str, str]) -> events.Gpus:
    command = [sys.executable, "-m", "bitwatch.sense.gpus", "0.1", str(os.getpid())]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, **environment}
    ) as child:
        assert child.stdout
        record = codec.decode(child.stdout.readline())
        child.kill()
    assert isinstance(record, events.Gpus)
    return record


def test_every_field_stands_for_itself(stand_in: str) -> None:
    record = first_line({"LD_LIBRARY_PATH": stand_in})
    assert record.source == "nvml"
    assert "999.01" in record.note
    assert [gpu.index for gpu in record.gpus] == [0, 1, 2, 3]
    healthy, _, without_sensor, lost = record.gpus
    assert healthy.name == "NVIDIA L4"
    assert healthy.uuid == "GPU-0"
    assert (healthy.memory_used_mib, healthy.memory_total_mib) == (1000.0, 23034.0)
    assert healthy.utilization_percent == 90.0
    assert healthy.temperature_c == 70.0
    assert (healthy.power_w, healthy.power_limit_w) == (71.5, 72.0)
    assert healthy.processes == [(4242, 512.0)]  # 0 and 4294967295 are no processes
    assert without_sensor.temperature_c is None
    assert without_sensor.power_w == 71.5
    assert without_sensor.error is None
    assert lost.error
    assert lost.memory_used_mib is None


def test_without_a_driver_it_says_so_and_ends(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"no library")
    record = first_line({"LD_LIBRARY_PATH": str(tmp_path)})
    assert record.source == "cpu"
    assert "driver" in record.note
    assert record.gpus == []


def test_a_sensor_dies_with_its_parent_even_while_the_driver_hangs(stand_in: str) -> None:
    """Its output goes nowhere, so that no broken pipe could end it: only the kernel can."""
    code = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'bitwatch.sense.gpus', '0.1',"
        " str(os.getpid())], stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "LD_LIBRARY_PATH": stand_in, "NVML_HANGS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout
    pid = int(parent.stdout.readline())
    stat = processes.read_stat(pid)
    assert stat
    in_the_driver = Path(f"/proc/{pid}/maps")
    until(lambda: "libnvidia-ml" in in_the_driver.read_text(), "the driver to be called")
    assert alive(stat.key)
    parent.kill()
    parent.communicate()
    until(lambda: not alive(stat.key), "the orphaned sensor to be gone")
    assert not alive(stat.key)


def test_a_driver_call_that_hangs_costs_the_sensor_only(
    stand_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", stand_in)
    monkeypatch.setenv("NVML_HANGS", "1")
    monkeypatch.setattr(sensing, "SILENT_S", 0.2)
    selector = selectors.DefaultSelector()
    sensor = Sensor(0.1)
    sensor.start(selector)
    (hung,) = sensor.pids

    def replaced() -> bool:
        sensor.check(selector)
        return len(sensor.pids) > 1

    until(replaced, "a new sensor in the place of the silent one")
    assert os.waitid(os.P_PID, hung, os.WEXITED)
    assert sensor.latest
    assert "does not answer" in sensor.latest.note
    sensor.note_exit(hung)
    deadline = time.monotonic() + 60
    while sensor.pids and time.monotonic() < deadline:
        sensor.check(selector)
        sensor.stop()
        ended = os.waitid(os.P_ALL, 0, os.WEXITED)
        assert ended
        sensor.note_exit(ended.si_pid)
    assert not sensor.pids
