"""One GPU at one instant, as NVML tells of it."""

from __future__ import annotations

import msgspec

NO_ANSWER = "NVML does not answer"  # so begins the note of a sample in which no GPU is told of
DOES_NOT_ANSWER = "does not answer"  # the error of each GPU in it

# NVML's bits for why clocks are lower than they could be, without those of a GPU that idles. The
# bit of a hardware slowdown is also set with each of the two that say which kind it is.
THROTTLES = {
    0x02: "clock setting", 0x04: "power cap", 0x08: "hardware slowdown", 0x10: "sync boost",
    0x20: "thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "power brake",
    0x100: "clock setting", 0x200: "board limit", 0x400: "voltage",
}  # fmt: skip
HEAT = ("thermal slowdown", "hardware thermal slowdown")
BRAKES = ("hardware slowdown", "power brake")


class Gpu(msgspec.Struct, omit_defaults=True):
    """Every field can be missing on its own (None): not supported, or not answered.

    `lost`: the driver says that it is gone; nothing is asked of it any more. With an `error` the
    other fields are what was last known and does not change (`of_old`). `throttle`: why its clocks
    are held down now, as words of ours (`THROTTLES`); empty when they are not. `pcie_*_mib_s` are
    the traffic of 20 ms within the last seconds, `nvlink_*_mib_s` that since the sample before,
    over all links. `ecc_*` count errors of memory since the driver was loaded.
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


def of_old(gpu: Gpu, error: str, *, lost: bool = False) -> Gpu:
    """A GPU that says nothing now: who it is and what it can do at most, and why it is silent."""
    return Gpu(
        index=gpu.index,
        uuid=gpu.uuid,
        name=gpu.name,
        memory_total_mib=gpu.memory_total_mib,
        slowdown_c=gpu.slowdown_c,
        power_limit_w=gpu.power_limit_w,
        clock_sm_most_mhz=gpu.clock_sm_most_mhz,
        mig=gpu.mig,
        error=error,
        lost=lost,
    )
