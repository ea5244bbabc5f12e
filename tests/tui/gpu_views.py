"""Views of GPUs that say all they can, with their past, made in code."""

from __future__ import annotations

import copy
import functools
import random
from typing import Any

import msgspec

from bitwatch.record import events
from bitwatch.record.gpu_history import GpuHistory
from bitwatch.record.view import View
from tests.tui import views


def told_gpu(index: int, used_gib: float, busy: float, heat: float, **fields: Any) -> events.Gpu:
    """A GPU that says everything that an L4 can say."""
    card = views.gpu(index, used_gib, busy, heat)
    values: dict[str, Any] = {
        "slowdown_c": 85.0,
        "clock_sm_mhz": 1830.0,
        "clock_sm_most_mhz": 2040.0,
        "clock_memory_mhz": 6251.0,
        "throttle": ["power cap"],
        "pcie_in_mib_s": 3210.0 + 40 * index,
        "pcie_out_mib_s": 2940.0 + 60 * index,
        "pcie_generation": 4,
        "pcie_lanes": 16,
        "ecc_corrected": 0,
        "ecc_uncorrected": 0,
        **fields,
    }
    return msgspec.structs.replace(card, **values)


def gpu_history(count: int = 4) -> GpuHistory:
    """Ten minutes of samples, and aggregates since the attempt began."""
    return copy.copy(_made(count))  # a test may change what it says


@functools.cache
def _made(count: int, total_gib: float = 22.5, first_s: float = 7440.0) -> GpuHistory:
    noise = random.Random(3)
    history = GpuHistory()
    for minute in range(int(first_s // 60), 0, -1):
        loads = [min(100.0, max(0.0, noise.gauss(94, 4))) for _ in range(count)]
        used = [0.7 * total_gib * 1024 * min(1.0, (first_s / 60 - minute + 1) / 8)] * count
        history.take_minute(
            events.Minute(
                cpu_percent=430.0,
                rss_mib=18_000.0,
                gpu_memory_mib=list(used),
                gpu_utilization_percent=list(loads),
                t=views.NOW - 60 * minute,
                m=0.0,
            )
        )
    for second in range(600, 0, -1):
        saving = 200 <= second < 222
        cards = [
            views.gpu(index, 15.8 + 0.2 * (index == 3), 3.0 if saving else noise.gauss(95, 3), 70)
            for index in range(count)
        ]
        for card in cards:
            card.utilization_percent = min(100.0, card.utilization_percent or 0.0)
        history.take_gpus(events.Gpus(gpus=cards, t=views.NOW - second + 0.5, m=0.0))
    while history.absorb():
        pass
    return history.picture()


def large(**fields: Any) -> View:
    """Four L4 of which one is hot and slow and holds a stranger's memory, with their past."""
    cards = [
        told_gpu(0, 15.9, 97, 71),
        told_gpu(1, 15.8, 96, 70),
        told_gpu(2, 15.8, 98, 72),
        told_gpu(
            3,
            18.9,
            88,
            81,
            throttle=["power cap", "thermal slowdown"],
            clock_sm_mhz=1290.0,
            processes=[(views.pid_of(3), 15.8 * 1024), (77123, 3.0 * 1024)],
            ecc_corrected=3,
        ),
    ]
    steps = {
        rank: views.step(
            12_408, rank=rank, allocated_mib=14_541.0, reserved_mib=15_769.0, peak_mib=15_360.0
        )
        for rank in range(4)
    }
    values: dict[str, Any] = {
        "gpus": events.Gpus(gpus=cards, t=views.NOW - 0.5, m=0.0),
        "gpu_history": gpu_history(),
        "rank_steps": steps,
    }
    return views.on_l4s(**{**values, **fields})


def eight_gpus(**fields: Any) -> View:
    """Eight GPUs of which the run uses the last four; one of the others is lost."""
    cards = [told_gpu(index, 15.8, 95, 70, processes=[]) for index in range(8)]
    for rank, card in enumerate(cards[4:]):
        card.processes = [(views.pid_of(rank), 15.7 * 1024)]
    cards[2] = events.Gpu(
        index=2, uuid="GPU-2", name="NVIDIA L4", memory_total_mib=23034.0, lost=True,
        error="GPU is lost",
    )  # fmt: skip
    values: dict[str, Any] = {
        "gpus": events.Gpus(gpus=cards, t=views.NOW - 0.5, m=0.0),
        "gpu_history": gpu_history(8),
        "visible_devices": "4,5,6,7",
    }
    return large(**{**values, **fields})


def full_house(**fields: Any) -> View:
    """Eight GPUs, all of them used."""
    cards = [
        told_gpu(index, 15.8, 95, 70, nvlink_in_mib_s=51_200.0, nvlink_out_mib_s=48_800.0)
        for index in range(8)
    ]
    values: dict[str, Any] = {
        "gpus": events.Gpus(gpus=cards, t=views.NOW - 0.5, m=0.0),
        "gpu_history": gpu_history(8),
        "ranks": 8,
        "processes": views.family(8, 4, 2),
    }
    return large(**{**values, **fields})


def on_cpu_with_past(**fields: Any) -> View:
    """The demo without a GPU, with ten minutes of what its ranks did."""
    noise = random.Random(5)
    history = GpuHistory()
    for minute in range(40, 0, -1):
        history.take_minute(
            events.Minute(
                cpu_percent=noise.gauss(230, 20), rss_mib=9000, t=views.NOW - 60 * minute, m=0
            )
        )
    for second in range(600, 0, -1):
        rows = views.family(2, 2, 1)
        for row in rows:
            row.cpu_percent = max(0.0, (row.cpu_percent or 0) + noise.gauss(0, 6))
        history.take_processes(views.NOW - second, rows)
    while history.absorb():
        pass
    return views.on_cpu(gpu_history=history.picture(), **fields)
