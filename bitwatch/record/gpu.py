"""One GPU at one instant, as NVML tells of it."""

from __future__ import annotations

import msgspec


class Gpu(msgspec.Struct, omit_defaults=True):
    """Every field can be missing on its own (None): not supported, or not answered.

    `lost`: the driver says that it is gone; nothing is asked of it any more, and the other
    fields are what was last known. `throttle`: why its clocks are held down now, as words of
    ours ("power cap", "thermal slowdown"); empty when they are not. `pcie_*_mib_s` are the
    traffic of the last 20 ms, `nvlink_*_mib_s` that since the sample before, over all links.
    `ecc_*` count errors of memory since the driver was loaded.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    utilization_percent: float | None = None
    temperature_c: float | None = None
    slowdown_c: float | None = None  # from here on it slows down
    power_w: float | None = None
    power_limit_w: float | None = None
    fan_percent: float | None = None
    clock_sm_mhz: float | None = None
    clock_sm_most_mhz: float | None = None
    clock_memory_mhz: float | None = None
    throttle: list[str] | None = None
    pcie_in_mib_s: float | None = None
    pcie_out_mib_s: float | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    nvlink_in_mib_s: float | None = None
    nvlink_out_mib_s: float | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    processes: list[tuple[int, float | None]] | None = None  # (pid, MiB)
    mig: bool | None = None
    error: str | None = None
    lost: bool = False
