"""One GPU: each of its fields asked by itself, and only as often as it changes.

What it does not support is not asked again. A GPU that the driver says is lost is never called
again: a call can take the driver seconds, or hang.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from bitwatch.record.gpu import BRAKES, THROTTLES, Gpu, of_old

MIB = 2**20
NO_PID = (0, 0xFFFFFFFF)  # what NVML says when it cannot tell whose memory it is
SLOW_EVERY = 10  # samples: of what hardly ever changes
PCIE_EVERY = 5  # samples at least: both directions take the driver 40 ms, the GPUs take turns
ALL_LINKS = 0xFFFFFFFF  # UINT_MAX as a scope: the sum over all NVLinks
# NVML's names for the codes, as nvidia-ml-py has them.
GONE = ("UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH")
LOST = ("GPU_IS_LOST", "RESET_REQUIRED", "GPU_NOT_FOUND")
NEVER = ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "ARGUMENT_VERSION_MISMATCH", "DEPRECATED")


class DriverGone(Exception):
    """No call of any GPU will be answered before NVML is initialised again."""


class GpuLost(Exception):
    """The driver says that this GPU is gone."""


class TooLate(Exception):
    """A call has come back that was given up."""


class Card:
    """A GPU and what is known of it. `given_up`: it is never called again. `hangs`: a call about it
    was given up, and has not come back."""

    def __init__(self, nvml: Any, index: int, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._unsupported: set[str] = set()
        self._turn = index  # of the samples: what is asked seldom, the GPUs tell in turns
        self._last = Gpu(index=index)
        self._slow: dict[str, Any] = {}
        self._link_counts: tuple[float, float, float] | None = None  # when, KiB in, KiB out
        self._codes = {
            kind: {getattr(nvml, f"NVML_ERROR_{name}", None) for name in names}
            for kind, names in (("gone", GONE), ("lost", LOST), ("never", NEVER))
        }
        self._trouble = ""  # of the newest call that failed in another way
        self._lock = threading.Lock()  # between the thread that asks and the one that gives up
        self._asked_at = 0.0
        self.hangs = False
        self.given_up = False

    @property
    def last(self) -> Gpu:
        return self._last

    def give_up(self, why: str, *, lost: bool = True) -> None:
        self.given_up = True
        self._last = of_old(self._last, why, lost=lost)

    def give_up_call(self, since: float) -> bool:
        """Whether a call has not come back since then; it is not waited for any more."""
        with self._lock:
            self.hangs = self.hangs or 0.0 < self._asked_at < since
            return self.hangs

    def read(self, number: int, of: int) -> Gpu:
        """What it says in sample `number`, as one of `of` GPUs. Raises DriverGone and TooLate."""
        if not self.given_up:
            try:
                self._last = self._read(number, of)
            except GpuLost as error:
                self.give_up(str(error))
        return self._last

    def _read(self, number: int, of: int) -> Gpu:
        nvml, handle = self._nvml, self._handle
        self._trouble = ""
        memory = self._first(
            ("nvmlDeviceGetMemoryInfo_v2", lambda: nvml.nvmlDeviceGetMemoryInfo(
                handle, nvml.nvmlMemory_v2)),  # in the older one, what is reserved counts as used
            ("nvmlDeviceGetMemoryInfo", lambda: nvml.nvmlDeviceGetMemoryInfo(handle)),
        )  # fmt: skip
        rates = self._ask("nvmlDeviceGetUtilizationRates")
        celsius = self._first(
            ("nvmlDeviceGetTemperatureV", lambda: nvml.nvmlDeviceGetTemperatureV(handle, 0)),
            ("nvmlDeviceGetTemperature", lambda: nvml.nvmlDeviceGetTemperature(handle, 0)),
        )
        gpu = Gpu(
            index=self._last.index,
            memory_used_mib=None if memory is None else memory.used / MIB,
            memory_total_mib=self._last.memory_total_mib if memory is None else memory.total / MIB,
            utilization_percent=None if rates is None else float(rates.gpu),
            temperature_c=_number(celsius),
            power_w=_number(self._ask("nvmlDeviceGetPowerUsage"), 1000),
            clock_sm_mhz=_number(self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)),
            clock_memory_mhz=_number(self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM)),
            throttle=self._throttle(),
            pcie_in_mib_s=self._last.pcie_in_mib_s,
            pcie_out_mib_s=self._last.pcie_out_mib_s,
        )
        period = max(PCIE_EVERY, of)
        if number % period == self._turn % period:
            gpu.pcie_in_mib_s, gpu.pcie_out_mib_s = self._pcie()
        if number % SLOW_EVERY == self._turn % SLOW_EVERY or not self._slow:
            self._slow = self._read_slow(celsius)
        for name, value in self._slow.items():
            if name not in ("graphics", "links"):
                setattr(gpu, name, value)
        gpu.processes = self._processes()
        gpu.nvlink_in_mib_s, gpu.nvlink_out_mib_s = self._links()
        if self._trouble and (memory, rates, celsius, gpu.power_w) == (None,) * 4:
            gpu = of_old(gpu, f"does not answer ({self._trouble})")
        return gpu

    def _read_slow(self, celsius: int | None) -> dict[str, Any]:
        nvml, ask = self._nvml, self._ask
        slowdown = ask(
            "nvmlDeviceGetTemperatureThreshold", nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        )
        if slowdown is None and celsius is not None:  # newer ones tell how far it is
            margin = ask("nvmlDeviceGetMarginTemperature")
            slowdown = None if margin is None else celsius + margin
        kinds = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        since_loaded = nvml.NVML_VOLATILE_ECC
        mig = ask("nvmlDeviceGetMigMode")
        return {
            "uuid": self._last.uuid or _text(ask("nvmlDeviceGetUUID")),
            "name": self._last.name or _text(ask("nvmlDeviceGetName")),
            "slowdown_c": _number(slowdown),
            "power_limit_w": _number(ask("nvmlDeviceGetEnforcedPowerLimit"), 1000),
            "fan_percent": _number(ask("nvmlDeviceGetFanSpeed")),
            "clock_sm_most_mhz": _number(ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM)),
            "pcie_generation": ask("nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_lanes": ask("nvmlDeviceGetCurrPcieLinkWidth"),
            "ecc_corrected": ask("nvmlDeviceGetTotalEccErrors", kinds[0], since_loaded),
            "ecc_uncorrected": ask("nvmlDeviceGetTotalEccErrors", kinds[1], since_loaded),
            "mig": None if mig is None else bool(mig[0]),
            "graphics": ask("nvmlDeviceGetGraphicsRunningProcesses"),
            "links": self._values([nvml.NVML_FI_DEV_NVLINK_LINK_COUNT])[0],
        }  # fmt: skip

    def _throttle(self) -> list[str] | None:
        bits = self._first(
            ("nvmlDeviceGetCurrentClocksEventReasons", None),
            ("nvmlDeviceGetCurrentClocksThrottleReasons", None),
        )
        return None if bits is None else throttle_words(bits)

    def _pcie(self) -> tuple[float | None, float | None]:
        """Into the GPU and out of it, in MiB/s; the driver says it in KiB/s."""
        nvml, ask = self._nvml, self._ask
        into = ask("nvmlDeviceGetPcieThroughput", nvml.NVML_PCIE_UTIL_RX_BYTES)
        out = ask("nvmlDeviceGetPcieThroughput", nvml.NVML_PCIE_UTIL_TX_BYTES)
        return _number(into, 1024), _number(out, 1024)

    def _links(self) -> tuple[float | None, float | None]:
        """The traffic over all NVLinks since the sample before; the driver counts KiB."""
        if not self._slow.get("links"):
            return None, None
        nvml, before = self._nvml, self._link_counts
        received, sent = self._values(
            [
                (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS),
                (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
            ]
        )
        if received is None or sent is None:
            self._link_counts = None
            return None, None
        now = time.monotonic()
        self._link_counts = now, received, sent
        if before is None or now <= before[0] or received < before[1] or sent < before[2]:
            return None, None  # the first look, or counters that were set back
        scale = 1024 * (now - before[0])
        return (received - before[1]) / scale, (sent - before[2]) / scale

    def _values(self, fields: list[Any]) -> list[int | None]:
        """Values that NVML has no call of their own for. Each may be missing by itself."""
        wanted = [field for field in fields if f"field {field}" not in self._unsupported]
        told = self._ask("nvmlDeviceGetFieldValues", wanted) if wanted else None
        found: dict[str, int] = {}
        for field, value in zip(wanted, told or (), strict=False):
            if value.nvmlReturn == self._nvml.NVML_SUCCESS:
                unsigned = value.valueType == self._nvml.NVML_VALUE_TYPE_UNSIGNED_INT
                found[f"field {field}"] = int(value.value.uiVal if unsigned else value.value.ullVal)
            elif value.nvmlReturn in self._codes["never"]:
                self._unsupported.add(f"field {field}")
        return [found.get(f"field {field}") for field in fields]

    def _processes(self) -> list[tuple[int, float | None]] | None:
        """Those that compute, and those that draw; one that does both has the same memory."""
        told = self._ask("nvmlDeviceGetComputeRunningProcesses")
        drawing = self._slow.get("graphics")
        if told is None and drawing is None:
            return None
        return list((_by_pid(drawing or ()) | _by_pid(told or ())).items())

    # -- asking -------------------------------------------------------------------------

    def _first(self, *ways: tuple[str, Callable[[], Any] | None]) -> Any:
        """The answer of the first call that the driver and the library have."""
        for name, call in ways:
            answer = self._ask(name, call=call)
            if answer is not None:
                return answer
        return None

    def _ask(self, name: str, *arguments: Any, call: Callable[[], Any] | None = None) -> Any:
        """What NVML answers to the function `name`, or None: one missing field never costs
        another. Raises GpuLost, DriverGone and TooLate."""
        self._asked_at = time.monotonic()
        try:
            return self._answer(name, arguments, call)
        finally:
            with self._lock:
                self._asked_at, too_late, self.hangs = 0.0, self.hangs, False
            if too_late:
                raise TooLate

    def _answer(self, name: str, arguments: tuple[Any, ...], call: Callable[[], Any] | None) -> Any:
        key = f"{name} {arguments}"
        if key in self._unsupported:
            return None
        try:
            return call() if call else getattr(self._nvml, name)(self._handle, *arguments)
        except self._nvml.NVMLError as error:
            code = getattr(error, "value", None)
            if code in self._codes["gone"]:
                raise DriverGone(str(error)) from None
            if code in self._codes["lost"]:
                raise GpuLost(str(error)) from None
            if code in self._codes["never"]:
                self._unsupported.add(key)
            else:
                self._trouble = str(error)
        except Exception:  # what an older nvidia-ml-py, or a mismatched library, makes of it
            self._unsupported.add(key)
        return None


def throttle_words(bits: int) -> list[str]:
    """Why clocks are held down, each reason once."""
    words = [word for bit, word in THROTTLES.items() if bits & bit]
    if len(words) > 1 and bits & (0x40 | 0x80):
        words = [word for word in words if word != BRAKES[0]]
    return list(dict.fromkeys(words))


def _by_pid(processes: Iterable[Any]) -> dict[int, float | None]:
    """MiB of each, over the MIG instances that it may have several of."""
    held: dict[int, float | None] = {}
    for process in processes:
        if process.pid not in NO_PID:
            mib, before = _number(process.usedGpuMemory, MIB), held.get(process.pid)
            held[process.pid] = mib if before is None else before + (mib or 0.0)
    return held


def _number(value: Any, divisor: float = 1) -> float | None:
    return None if value is None else value / divisor


def _text(value: Any) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
