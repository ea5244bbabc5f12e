"""Views as runs would give them, made in code: nothing here reads a file or a clock."""

from __future__ import annotations

import math
import random
from typing import Any

from bitwatch.record import events
from bitwatch.record.series import Series
from bitwatch.record.view import ProcessRow, View

NOW = 1_800_000_000.0


def curve(first: int, last: int, every: int, *, floor: float = 0.085, seed: int = 1) -> Series:
    """A loss that falls from 0.69 and flattens, with the noise of small batches."""
    noise = random.Random(seed)
    series = Series()
    for step in range(first, last + 1, every):
        series.add(step, floor + 0.6 * math.exp(-step / 900) + noise.gauss(0, 0.004))
    return series


def plan(ranks: int, workers: int, shards: int, **more: Any) -> dict[str, Any]:
    busy = min(shards, ranks * workers)
    data = {
        "num_shards": shards,
        "ranks": ranks,
        "workers_per_rank": workers,
        "readers": ranks * workers,
        "readers_busy": busy,
        "readers_idle": ranks * workers - busy,
        "mode": "as-is",
        "read_amplification": 1,
        "assignment": [
            {"rank": rank, "worker": worker, "rows": 1000}
            for rank in range(ranks)
            for worker in range(workers)
        ],
        **more,
    }
    return {"verdict": "warning", "data": data}


def readers(ranks: int, workers: int, busy: int, *, samples: int = 4000) -> list[events.Reader]:
    """The first `busy` workers of every rank read a shard each, the others have none."""
    return [
        events.Reader(
            rank=rank,
            worker=worker,
            pid=pid_of(rank, worker),
            starttime=9000 + pid_of(rank, worker),
            shards=[worker] if worker < busy else [],
            rows=(630 + 2 * rank) if worker < busy else 0,
            samples=samples if worker < busy else 0,
            state="reading" if worker < busy else "idle",
            t=NOW - 1,
            m=0.0,
        )
        for rank in range(ranks)
        for worker in range(workers)
    ]


def pid_of(rank: int, worker: int | None = None) -> int:
    return 41251 + rank if worker is None else 51302 + 16 * rank + worker


def family(ranks: int, workers: int, busy: int) -> list[ProcessRow]:
    """Supervisor, agent, ranks and workers, two hours old."""

    def row(pid: int, ppid: int, role: str, **fields: Any) -> ProcessRow:
        return ProcessRow(
            pid=pid, starttime=9000 + pid, ppid=ppid, role=role, started=NOW - 7440, **fields
        )

    here = "/home/ada/.venv/bin/python"
    run = "/home/ada/.local/state/bitwatch/runs/2026-11-29-1b21-7f3a"
    rows = [
        row(
            41220,
            1,
            "supervisor",
            state="S",
            cpu_percent=0.4,
            rss_mib=48.0,
            command=f"{here} -m bitwatch.supervise.supervisor {run}",
        ),
        row(
            41233,
            41220,
            "agent",
            state="S",
            cpu_percent=0.1,
            rss_mib=310.0,
            command=f"{here} -m bitwatch.supervise.launch --nproc-per-node={ranks} train.py",
        ),
    ]
    for rank in range(ranks):
        rows.append(
            row(
                pid_of(rank),
                41233,
                "rank",
                state="R",
                rank=rank,
                cpu_percent=101.0 - rank,
                rss_mib=2970.0 + rank,
                command=f"{here} -u trainer/train.py",
            )
        )
        for worker in range(workers):
            reading = worker < busy
            rows.append(
                row(
                    pid_of(rank, worker),
                    pid_of(rank),
                    "worker",
                    state="S",
                    rank=rank,
                    worker=worker,
                    cpu_percent=34.0 - worker if reading else 0.0,
                    rss_mib=402.0 - 4 * worker,
                    command=f"{here} -u trainer/train.py",
                )
            )
    return rows


def gpu(index: int, used_gib: float, busy: float, heat: float, **fields: Any) -> events.Gpu:
    return events.Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA L4",
        memory_used_mib=used_gib * 1024,
        memory_total_mib=22.5 * 1024,
        utilization_percent=busy,
        temperature_c=heat,
        power_w=heat - 1,
        power_limit_w=72.0,
        processes=[(pid_of(index), used_gib * 1024 - 90)],
        **fields,
    )


def gpus(t: float = NOW - 0.5) -> events.Gpus:
    noise = random.Random(t)
    cards = [
        gpu(index, used, round(noise.gauss(95, 3)), heat)
        for index, used, heat in ((0, 15.9, 71), (1, 15.8, 70), (2, 15.8, 72), (3, 18.9, 81))
    ]
    for card in cards:
        card.utilization_percent = min(100.0, card.utilization_percent or 0.0)
    return events.Gpus(source="nvml", gpus=cards, t=t, m=0.0)


def step(number: int, *, rank: int = 0, **fields: Any) -> events.Step:
    values: dict[str, Any] = {
        "loss": 0.0891,
        "bits_per_byte": 1.03,
        "learning_rate": 3e-4,
        "grad_norm": 0.4,
        "step_s": 8.0,
        "data_s": 0.24 + (0.64 if rank == 3 else 0.0),
        "tokens_per_s": 20_100.0,
        "mfu": 0.35,
        "t": NOW - 3,
        "m": 0.0,
        **fields,
    }
    return events.Step(rank=rank, step=number, **values)


def alerts() -> list[events.Alert]:
    return [
        events.Alert(
            id="workers-exceed-shards",
            severity="warning",
            text="8 of 16 readers idle, and every rank reads everything: 2 shards for 4 ranks x 4 workers",
            evidence=["planned before the launch of attempt 2"],
            next="Take as many workers as have something to read (--set data.workers=2).",
            t=NOW - 7000,
            m=0.0,
        ),
        events.Alert(
            id="gpu-throttled",
            severity="warning",
            text="GPU 3 slows down: 81 °C",
            evidence=["clock 1,290 of 2,040 MHz"],
            t=NOW - 60,
            m=0.0,
        ),
        events.Alert(
            id="leftovers",
            severity="error",
            text="12 leftovers of attempt 1 hold 3.1 GiB of GPU 3 since 07:14",
            evidence=["recorded at 07:14:02"],
            t=NOW - 4000,
            m=0.0,
        ),
    ]


def on_l4s(**fields: Any) -> View:
    """The 1.21B model on four L4, in its second attempt: step 12,408 of 20,000."""
    values: dict[str, Any] = {
        "run": "2026-11-29-1b21-7f3a",
        "name": "1b21",
        "state": "running",
        "attempt": 2,
        "supervisor": "alive",
        "started": NOW - 110_000,
        "attempt_started": NOW - 7440,
        "updated": NOW - 3,
        "device": "cuda",
        "ranks": 4,
        "workers": 4,
        "phase": "train",
        "step": 12_408,
        "steps": 20_000,
        "last": step(12_408),
        "eta_s": 100_800.0,
        "evaluations": [
            events.Evaluation(step=s, loss=0.089 + 0.6 * math.exp(-s / 900), bits_per_byte=1.04)
            for s in range(1000, 12_001, 1000)
        ],
        "loss": [(1, curve(10, 4210, 10)), (2, curve(4160, 12_408, 8, seed=2))],
        "plan": {
            **plan(4, 4, 2, read_amplification=4, source="wikitext-103-raw-v1"),
            "memory": {"per_gpu_gib": {"total": 17.6}, "capacity_gib": 22.5, "fits": True},
        },
        "readers": readers(4, 4, 2),
        "rank_steps": {rank: step(12_408, rank=rank) for rank in range(4)},
        "processes": family(4, 4, 2),
        "sampled": NOW - 0.7,
        "gpus": gpus(),
        "alerts": alerts()[:2],
    }
    return View(**{**values, **fields})


def with_leftovers() -> View:
    """A rank and its workers of attempt 1 still hold memory of GPU 3."""
    view = on_l4s(alerts=alerts())
    view.leftovers = [
        events.ProcessStart(
            pid=38803 + at,
            starttime=500 + at,
            ppid=1,
            role="rank" if at == 0 else "worker",
            rank=2,
            worker=None if at == 0 else at - 1,
            attempt=1,
            command="python -c from multiprocessing.spawn import spawn_main",
            t=NOW - 2760,
            m=0.0,
        )
        for at in range(5)
    ]
    assert view.gpus
    view.gpus.gpus[3].processes = [(pid_of(3), 15.8 * 1024), (38803, 3.1 * 1024)]
    return view


def on_cpu(**fields: Any) -> View:
    """The demo on a machine without a GPU: two ranks of two workers."""
    values: dict[str, Any] = {
        "run": "2026-11-29-demo-3236",
        "name": "demo",
        "state": "running",
        "attempt": 1,
        "supervisor": "alive",
        "started": NOW - 130,
        "attempt_started": NOW - 130,
        "updated": NOW - 1,
        "device": "cpu",
        "ranks": 2,
        "workers": 2,
        "phase": "train",
        "step": 60,
        "steps": 400,
        "last": step(
            60,
            loss=0.6512,
            bits_per_byte=7.516,
            mfu=None,
            tokens_per_s=24_100.0,
            step_s=0.4,
            data_s=0.004,
        ),
        "eta_s": 136.0,
        "loss": [(1, curve(10, 60, 10, floor=0.5))],
        "plan": plan(2, 2, 2),
        "readers": readers(2, 2, 1),
        "processes": family(2, 2, 1),
        "sampled": NOW - 0.7,
        "gpus": events.Gpus(source="cpu", note="no NVIDIA driver", t=NOW - 100, m=0.0),
    }
    return View(**{**values, **fields})


def watched(**fields: Any) -> View:
    """A training that bitwatch did not start: its log says little, its processes are seen."""
    values: dict[str, Any] = {
        "run": "2026-11-29-train-91ac",
        "name": "train",
        "foreign": True,
        "attempt": 1,
        "steps": 0,
        "workers": 0,
        "plan": {},
        "readers": [],
        "evaluations": [],
        "eta_s": None,
        "alerts": [],
        "rank_steps": {},
        "asked": None,
        "loss": [(1, curve(10, 12_408, 8, floor=2.9))],
        "last": step(12_408, loss=2.913, bits_per_byte=None, mfu=None, data_s=None),
        "processes": [row for row in family(4, 2, 2) if row.role != "supervisor"],
    }
    return on_l4s(**{**values, **fields})


def ended(**fields: Any) -> View:
    return on_l4s(
        state="done",
        ended=NOW - 1,
        step=20_000,
        phase="",
        eta_s=None,
        processes=[],
        alerts=[],
        **fields,
    )


def failed(**fields: Any) -> View:
    return on_l4s(
        state="failed",
        ended=NOW - 1,
        cause="rank 2: loss is not finite at step 12,408",
        phase="",
        eta_s=None,
        processes=[],
        alerts=[],
        last=step(12_408, loss=math.nan, bits_per_byte=math.nan),
        **fields,
    )


def preparing() -> View:
    """A supervisor that has just begun: nothing is known yet."""
    return View(run="2026-11-29-1b21-7f3a", name="1b21", state="preparing", supervisor="alive")


def many_readers() -> View:
    """64 ranks of 16 workers, one of them failed."""
    accounts = readers(64, 16, 12)
    accounts[17 * 16 + 3].state = "failed"
    return on_l4s(
        ranks=64,
        workers=16,
        readers=accounts,
        processes=family(64, 16, 12),
        plan=plan(64, 16, 768),
        rank_steps={},
    )
