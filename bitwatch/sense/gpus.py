"""GPUs through NVML, sampled in a process of their own.

A driver call can hang for ever; then this process is abandoned and nothing else waits. It
prints one `gpus` record a line on stdout and ends with its parent. Each field is read by
itself: what a GPU cannot say is None, what it cannot do at all is its `error`.

    python -m bitwatch.sense.gpus SECONDS PARENT_PID
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from bitwatch.record import codec, events

PR_SET_PDEATHSIG = 1
MIB = 2**20
NO_PID = (0, 0xFFFFFFFF)  # what NVML says when it cannot tell whose memory it is


def main() -> None:
    interval_s, parent = float(sys.argv[1]), int(sys.argv[2])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    nvml, why = start_nvml()
    if nvml is None:
        emit(events.Gpus(source="cpu", note=why))
        return
    driver = _ask(nvml.nvmlSystemGetDriverVersion)
    first = True
    while True:
        began = time.monotonic()
        record = events.Gpus(source="nvml", gpus=read_all(nvml))
        if first and driver:
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


def read_all(nvml: Any) -> list[events.Gpu]:
    count = _ask(nvml.nvmlDeviceGetCount) or 0
    return [read_one(nvml, index) for index in range(count)]


def read_one(nvml: Any, index: int) -> events.Gpu:
    gpu = events.Gpu(index=index)
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        gpu.error = str(error)
        return gpu
    gpu.uuid = _text(_ask(nvml.nvmlDeviceGetUUID, handle))
    gpu.name = _text(_ask(nvml.nvmlDeviceGetName, handle))
    memory = _ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    if memory is not None:
        gpu.memory_used_mib = memory.used / MIB
        gpu.memory_total_mib = memory.total / MIB
    rates = _ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    gpu.utilization_percent = None if rates is None else float(rates.gpu)
    gpu.temperature_c = _number(
        _ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
    )
    gpu.power_w = _number(_ask(nvml.nvmlDeviceGetPowerUsage, handle), 1000)
    gpu.power_limit_w = _number(_ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle), 1000)
    held = _ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    if held is not None:
        gpu.processes = [
            (p.pid, None if p.usedGpuMemory is None else p.usedGpuMemory / MIB)
            for p in held
            if p.pid not in NO_PID
        ]
    if memory is None and rates is None:
        gpu.error = "does not answer"
    return gpu


def _ask(call: Callable[..., Any], *arguments: Any) -> Any:
    """What NVML answers, or None: one missing field never costs another."""
    try:
        return call(*arguments)
    except Exception:  # NVMLError, or what a mismatched library makes ctypes raise
        return None


def _number(value: Any, divisor: float = 1) -> float | None:
    return None if value is None else value / divisor


def _text(value: Any) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


if __name__ == "__main__":
    main()
