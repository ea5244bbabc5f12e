"""Steps of a model on one rank, measured: the part of bench/gpu.py that uses the device.

Told what to measure as JSON in its argument; prints one JSON object a line as it knows it:
{"device": ...}, {"ceiling": ...}, and a {"row": ...} for each row, in their order. A row that
has failed, or left something behind, ends the process: the next one needs a fresh one.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

import torch
from gpu import NEEDS_ANEW, Figures, Row, configured, percent
from loops import sharded_model
from torch.profiler import ProfilerActivity, profile

from bitwatch import config as configuration
from bitwatch.plan import memory
from trainer import bits, optim, parallel
from trainer import model as modelling
from trainer.failures import sentence
from trainer.health import Health

GIB = 1 << 30
WARM_UP_STEPS, TIMED_STEPS = 2, 4
SQUARES = (4096, 8192, 16384)
REPEATS = 3  # of each product, and the fastest counts
PRODUCT_S = {False: 0.2, True: 0.02}  # that each of them takes, by whether all is tiny
PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm"}
FIRST_GUESS_S = {False: 10.0, True: 60.0}  # what a row takes, by whether it is compiled
LEFT_GIB = 0.1  # more than this left by a row would be counted with the next
FAR_TOO_MUCH = 1.15  # a prediction so far above the device's memory is not even tried


def main() -> int:
    wanted = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is not for the reader of our lines

    def tell(name: str, value: Figures) -> None:
        out.write(json.dumps({name: value}) + "\n")

    deadline = time.monotonic() + wanted["time_s"]
    rows = [Row(*row) for row in wanted["rows"]]
    shape = configured("1b21", wanted["device"], wanted["tiny"])
    place = parallel.start(shape.parallel)
    ceiling = wanted["ceiling"]
    if ceiling is None:
        tell("device", facts(place))
        shape.train.micro_batch = rows[0].micro_batch
        ceiling = measured_ceiling(shape, place, wanted["tiny"])
        tell("ceiling", ceiling)
    guess_s = dict(FIRST_GUESS_S)
    too_large: list[Row] = []
    for row in rows:
        began = time.monotonic()
        if deadline - began < guess_s[row.compile]:
            found: Figures = {"left_out": "no time is left"}
        elif any(row[1:] == other[1:] and row[0] >= other[0] for other in too_large):
            found = {"left_out": "does not fit: a smaller batch did not"}
        else:
            found = measured(row, wanted["device"], wanted["tiny"], place, ceiling["best_tflops"])
            guess_s[row.compile] = time.monotonic() - began
        if found.get("fits") is False:
            too_large.append(row)
        tell("row", row._asdict() | found)
        if "error" in found or not cleaned(place.device):
            return NEEDS_ANEW
    parallel.end()
    return 0


# ---------------------------------------------------------------------------------------
# The device


def facts(place: parallel.Place) -> Figures:
    known: Figures = {
        "name": platform.processor() or platform.machine(),
        "torch": torch.__version__,
    }
    if place.device.type == "cuda":
        properties = torch.cuda.get_device_properties(place.device)
        known |= {
            "name": properties.name,
            "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
            "memory_gib": round(properties.total_memory / GIB, 1),
        }
        with suppress(Exception):  # any of the driver's own errors
            import pynvml

            pynvml.nvmlInit()
            known["driver"] = pynvml.nvmlSystemGetDriverVersion()
    peak = parallel.peak_flops(place.gpu_name)
    return known | {"peak_tflops": peak and round(peak / 1e12)}


def measured_ceiling(config: configuration.Config, place: parallel.Place, tiny: bool) -> Figures:
    """TFLOP/s of bf16 products, as the model's own (tokens x inputs x outputs) and square."""
    d, f = config.model.d_model, config.model.feedforward
    tokens = config.train.micro_batch * config.model.context
    shapes = [(tokens, d, 3 * d), (tokens, d, d), (tokens, d, f), (tokens, f, d)]
    shapes += [(n, n, n) for n in ((256,) if tiny else SQUARES)]
    found = {
        f"{m} x {k} x {n}": round(product_tflops(m, k, n, place.device, PRODUCT_S[tiny]), 3)
        for m, k, n in shapes
    }
    best, peak = max(found.values()), parallel.peak_flops(place.gpu_name)
    of_peak = percent(best * 1e12 / peak) if peak else None
    return {"best_tflops": best, "percent_of_peak": of_peak, **found}


def product_tflops(m: int, k: int, n: int, device: torch.device, each_s: float) -> float:
    x = torch.randn(m, k, dtype=torch.bfloat16, device=device)
    weight = torch.randn(n, k, dtype=torch.bfloat16, device=device)

    def seconds(times: int) -> float:
        synchronize(device)
        began = time.perf_counter()
        for _ in range(times):
            x @ weight.T
        synchronize(device)
        return time.perf_counter() - began

    seconds(3)
    times = max(3, int(each_s * 3 / seconds(3)))
    return 2 * m * k * n * times / min(seconds(times) for _ in range(REPEATS)) / 1e12


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# ---------------------------------------------------------------------------------------
# Steps


def predicted_gib(config: configuration.Config) -> tuple[float, float]:
    """Of tensors at the fullest moment of a step, and of all that the GPU then holds."""
    parts = memory.predict(config).per_gpu_gib
    assert parts.total is not None and parts.overhead is not None
    return parts.total - parts.overhead, parts.total


def measured(
    row: Row, device: str, tiny: bool, place: parallel.Place, ceiling_tflops: float
) -> Figures:
    """The figures of a row, or why there are none."""
    try:
        config = configured("1b21", device, tiny, row)
    except configuration.ConfigError as error:
        return {"left_out": str(error)}
    tensors_gib, total_gib = predicted_gib(config)
    found: Figures = {
        "predicted_allocated_gib": round(tensors_gib, 2),
        "predicted_gib": round(total_gib, 2),
    }
    if place.device.type == "cuda":
        capacity_gib = torch.cuda.get_device_properties(place.device).total_memory / GIB
        if total_gib > FAR_TOO_MUCH * capacity_gib:
            return found | {"left_out": f"does not fit: {total_gib:.0f} GiB are predicted"}
    try:
        found |= steps(config, place, ceiling_tflops)
    except torch.OutOfMemoryError:
        return found | {"fits": False, "left_out": "does not fit"}
    except Exception as error:  # of the compiler, of a kernel: the other rows still count
        traceback.print_exc()
        return found | {"error": sentence(error)}
    if found["used_gib"]:
        found["predicted_over_used"] = round(total_gib / found["used_gib"], 3)
        found["predicted_over_allocated"] = round(tensors_gib / found["allocated_gib"], 3)
    return found


def steps(config: configuration.Config, place: parallel.Place, ceiling_tflops: float) -> Figures:
    """As trainer/train.py takes them, with one micro-batch that is always the same."""
    device, micro_batch = place.device, config.train.micro_batch
    model = sharded_model(config, place)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    optimizer = optim.build(model, config.train)
    health = Health(place, config.train.on_not_finite)
    sequence_bytes = configuration.bytes_per_sequence(config.model)
    text = torch.randint(256, (micro_batch, sequence_bytes), dtype=torch.uint8, device=device)
    taken = 0

    def step() -> None:
        nonlocal taken
        taken += 1
        parallel.sum_gradients(model, True)
        loss = modelling.nats_per_bit(model, bits.from_bytes(text))
        loss.backward()
        parts = optim.gradients(model)
        norm, bad = health.judge(taken, loss.detach(), optim.square_sum(parts))
        optim.clip(parts, norm, config.train.clip)
        optim.set_learning_rate(optimizer, optim.learning_rate(taken, config.train))
        optimizer.found_inf = bad  # type: ignore[attr-defined]
        optimizer.step()
        optimizer.zero_grad()
        health.outcomes(newest=False)

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    for _ in range(WARM_UP_STEPS):
        step()
    synchronize(device)
    began = time.perf_counter()
    for _ in range(TIMED_STEPS):
        step()
    synchronize(device)
    step_s = (time.perf_counter() - began) / TIMED_STEPS
    tokens_per_s = micro_batch * sequence_bytes * bits.per_byte(config.model.parity) / step_s
    flops = tokens_per_s * modelling.flops_per_token(config.model, parameters, config.model.context)
    peak = parallel.peak_flops(place.gpu_name)
    held = memory_gib(device)  # before the profiler, which has buffers of its own
    product_tflops = profiled_products(step, device)
    return {
        "parameters": parameters,
        "step_s": round(step_s, 4),
        "tokens_per_s": round(tokens_per_s),
        "mfu_percent": percent(flops / peak) if peak else None,
        "step_of_ceiling_percent": percent(flops / 1e12 / ceiling_tflops),
        "products_of_ceiling_percent": percent(product_tflops / ceiling_tflops)
        if product_tflops
        else None,
        **held,
        "loss": health.outcomes(newest=True)[-1].loss,
    }


def memory_gib(device: torch.device) -> Figures:
    """The most since the peak was reset: of tensors, of what the allocator held for them, and
    of all the GPU, where nobody else is on it: the last one is what has to fit."""
    if device.type != "cuda":
        return {"allocated_gib": None, "reserved_gib": None, "used_gib": None}
    free, total = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.max_memory_reserved(device)
    beside = total - free - torch.cuda.memory_reserved(device)
    return {
        "allocated_gib": round(torch.cuda.max_memory_allocated(device) / GIB, 2),
        "reserved_gib": round(reserved / GIB, 2),
        "used_gib": round((reserved + beside) / GIB, 2),
    }


def profiled_products(step: Callable[[], None], device: torch.device) -> float | None:
    """TFLOP/s of a step's matrix products alone, by the time that the device spent in them;
    None where the profiler may not see it."""
    on_gpu = device.type == "cuda"
    seen_by = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=seen_by, record_shapes=True, with_flops=True) as profiler:
        step()
        synchronize(device)
    events = [event for event in profiler.key_averages() if event.key in PRODUCTS]
    spent_us = sum(e.self_device_time_total if on_gpu else e.self_cpu_time_total for e in events)
    return sum(event.flops for event in events) / spent_us / 1e6 if spent_us else None


def cleaned(device: torch.device) -> bool:
    """Gives back what a row had; whether nothing of it is left."""
    torch._dynamo.reset()  # or a second batch size would be compiled for any size
    gc.collect()
    if device.type != "cuda":
        return True
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated(device) < LEFT_GIB * GIB


if __name__ == "__main__":
    sys.exit(main())
