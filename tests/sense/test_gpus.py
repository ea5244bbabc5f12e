"""What the GPU sensor reads, through the real nvidia-ml-py, with a C library in NVML's place."""

from __future__ import annotations

from pathlib import Path

from bitwatch.record.visible import visible
from bitwatch.sense.gpu_fields import SLOW_EVERY, throttle_words
from tests.nvml.standin import Standin
from tests.sense.gpu_reading import Sensing


def test_a_healthy_gpu_tells_all_there_is(standin: Standin) -> None:
    standin.set(
        0, processes="4242:412 4242:100 0:100 4294967295:N/A 4343:N/A", graphics_processes="99:30"
    )
    with Sensing(standin) as sensing:
        first = sensing.next()
        assert (first.source, first.note) == ("nvml", "driver 570.133.20")
        assert [gpu.index for gpu in first.gpus] == [0, 1, 2, 3]
        told = sensing.find(
            lambda r: all(gpu.pcie_in_mib_s for gpu in r.gpus), "each GPU's turn to tell of PCIe"
        )
    gpu = told.gpus[0]
    assert gpu.uuid and gpu.uuid.startswith("GPU-0b2c3d4e")
    assert (gpu.name, gpu.error, gpu.lost) == ("NVIDIA L4", None, False)
    assert (gpu.memory_used_mib, gpu.memory_total_mib) == (15800.0, 23034.0)
    assert (gpu.utilization_percent, gpu.fan_percent) == (97.0, None)
    assert (gpu.temperature_c, gpu.slowdown_c) == (71.0, 92.0)
    assert (gpu.power_w, gpu.power_limit_w) == (71.5, 72.0)
    assert (gpu.clock_sm_mhz, gpu.clock_sm_most_mhz) == (1425.0, 2040.0)
    assert gpu.clock_memory_mhz == 6251.0
    assert gpu.throttle == ["power cap"]
    assert (gpu.pcie_in_mib_s, gpu.pcie_out_mib_s) == (3400.0, 2900.0)
    assert (gpu.pcie_generation, gpu.pcie_lanes) == (4, 16)
    assert (gpu.nvlink_in_mib_s, gpu.nvlink_out_mib_s) == (None, None)
    assert (gpu.ecc_corrected, gpu.ecc_uncorrected, gpu.mig) == (0, 0, None)
    # 0 and 4294967295 are no processes.
    assert sorted(gpu.processes or ()) == [(99, 30.0), (4242, 512.0), (4343, None)]
    assert told.gpus[1].processes == []


def test_what_one_gpu_does_not_support_is_missing_alone_and_is_asked_once(standin: Standin) -> None:
    fields = {
        "memory_used_mib": ["memory_used_mib"],
        "utilization_percent": ["utilization_percent"],
        "temperature_c": ["temperature_c"],
        "power_w": ["power_w"],
        "clock_sm_mhz": ["clock_sm_mhz"],
        "reasons": ["throttle"],
        "pcie_in_mib_s": ["pcie_in_mib_s"],
        "ecc_uncorrected": ["ecc_uncorrected"],
        "name": ["name"],
        "uuid": ["uuid"],
    }
    standin.set("driver", count=len(fields))
    for index, key in enumerate(fields):
        standin.set(index, **{key: "N/A"})
    with Sensing(standin) as sensing:
        whole = ["pcie_out_mib_s", "slowdown_c", "power_limit_w", "pcie_lanes"]
        told = sensing.find(lambda r: all(g.pcie_out_mib_s for g in r.gpus), "all turns")
    for gpu, missing in zip(told.gpus, fields.values(), strict=True):
        for name in [*(name for names in fields.values() for name in names), *whole]:
            assert (getattr(gpu, name) is None) == (name in missing), (gpu.index, name)
        assert gpu.error is None
    calls = [standin.calls(index) for index in range(len(fields))]
    assert calls[0].count("nvmlDeviceGetMemoryInfo_v2") == 1
    assert calls[1].count("nvmlDeviceGetUtilizationRates") == 1
    assert calls[0].count("nvmlDeviceGetUtilizationRates") > 5
    assert calls[3].count("nvmlDeviceGetPowerUsage") == 1
    # Asked seldom: both hardly ever change, and the traffic takes the driver long.
    samples = calls[0].count("nvmlDeviceGetUtilizationRates") + 1
    assert calls[3].count("nvmlDeviceGetEnforcedPowerLimit") <= samples // SLOW_EVERY + 2
    assert calls[3].count("nvmlDeviceGetPcieThroughput") <= 2 * (samples // len(fields) + 1)


def test_a_field_that_fails_for_another_reason_is_asked_again(standin: Standin) -> None:
    standin.set(1, power_w="error 999")
    with Sensing(standin) as sensing:
        assert [gpu.power_w for gpu in sensing.next().gpus] == [71.5, None, 71.5, 71.5]
        standin.set(1, power_w=60)
        sensing.find(lambda r: r.gpus[1].power_w == 60.0, "the power is known again")
        broken = dict.fromkeys(
            ("memory_used_mib", "utilization_percent", "temperature_c", "power_w"), "error 999"
        )
        standin.set(1, **broken)
        silent = sensing.find(lambda r: r.gpus[1].error, "a GPU that answers nothing").gpus[1]
        assert (silent.error, silent.lost) == ("does not answer (Unknown Error)", False)
        assert silent.name == "NVIDIA L4"


def test_nvlink_is_the_traffic_since_the_sample_before(standin: Standin) -> None:
    standin.set("*", nvlinks=18, nvlink_in_kib=1 << 20, nvlink_out_kib=0)
    with Sensing(standin) as sensing:
        assert sensing.next().gpus[0].nvlink_in_mib_s is None  # a counter alone says nothing
        still = sensing.find(lambda r: r.gpus[0].nvlink_in_mib_s is not None, "a second look")
        assert (still.gpus[0].nvlink_in_mib_s, still.gpus[0].nvlink_out_mib_s) == (0.0, 0.0)
        standin.set("*", nvlink_in_kib=2 << 20)
        assert sensing.find(lambda r: (r.gpus[0].nvlink_in_mib_s or 0) > 0, "traffic")
        standin.set("*", nvlink_in_kib=0)  # set back: no negative rate
        assert sensing.find(lambda r: r.gpus[0].nvlink_in_mib_s is None, "no rate")


def test_a_gpu_that_tells_only_how_far_it_is_from_slowing_down(standin: Standin) -> None:
    standin.set("*", slowdown_c="N/A", margin_c=21)
    with Sensing(standin) as sensing:
        assert {gpu.slowdown_c for gpu in sensing.next().gpus} == {92.0}


def test_eight_gpus_and_none(standin: Standin) -> None:
    standin.set("driver", count=8)
    # In MIG mode the driver says of the whole how much memory there is, but not how busy it is,
    # and who is in its instances only to an administrator.
    standin.set(6, mig=1, utilization_percent="N/A", processes="error 4", graphics_processes="N/A")
    standin.set(7, mig=0)
    with Sensing(standin) as sensing:
        gpus = sensing.next().gpus
        assert [gpu.mig for gpu in gpus] == [None] * 6 + [True, False]
        assert [gpu.utilization_percent for gpu in gpus] == [97.0] * 6 + [None, 97.0]
        split = sensing.next().gpus[6]
        assert (split.memory_used_mib, split.processes, split.error) == (15800.0, None, None)
        used = [visible(gpus, f"MIG-{name}") for name in ("0a1b", f"{gpus[6].uuid}/1/0", "GPU-f")]
        assert used == [{6}, {6}, set()]
    standin.set("driver", count=0)
    with Sensing(standin) as sensing:
        record = sensing.next()
        assert (record.source, record.note, record.gpus) == ("cpu", "no NVIDIA GPU", [])
        assert sensing.ended()


def test_without_a_driver_it_says_so_and_ends(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"no library")
    with Sensing(None, LD_LIBRARY_PATH=str(tmp_path)) as sensing:
        record = sensing.next()
        assert (record.source, record.gpus) == ("cpu", [])
        assert "no NVIDIA driver" in record.note
        assert sensing.ended()


def test_why_clocks_are_held_down_in_words() -> None:
    assert throttle_words(0x0) == throttle_words(0x1) == []  # an idle GPU is not held down
    assert throttle_words(0x4) == ["power cap"]
    assert throttle_words(0x8) == ["hardware slowdown"]
    assert throttle_words(0x48) == ["hardware thermal slowdown"]  # which says more
    assert throttle_words(0x8C) == ["power cap", "power brake"]
    assert throttle_words(0x102) == ["clock setting"]
    assert throttle_words(1 << 40) == []
