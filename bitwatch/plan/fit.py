"""Whether a training fits its GPUs, and which settings make it fit when it does not.

Arithmetic over `memory`: a remedy is named only after it was worked out to fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from bitwatch.config import Config
from bitwatch.plan import memory
from bitwatch.plan.facts import DeviceFacts
from bitwatch.plan.result import MemoryPlan, Problem
from bitwatch.strict import ConfigError

# GiB that CUDA lets a process have of a GPU: less than on the box, since the driver and error
# correction keep some. As torch tells it (`total_memory`), to a tenth, rounded down.
KNOWN_GIB = {
    "T4": 14.5,
    "V100-16": 15.7,
    "V100-32": 31.7,
    "RTX 3090": 23.5,
    "RTX 4090": 23.5,
    "A10G": 22.0,
    "L4": 22.0,
    "A6000": 47.4,
    "L40S": 44.3,
    "A100-40": 39.3,
    "A100-80": 79.1,
    "H100": 79.1,
    "H200": 139.7,
}
MOST_GPUS = 16  # of one node
NEAR = 1.1  # of what there is: beyond it, no guess makes it fit
MOST_TRIED = 1024  # sequences of a micro-batch


class Room(NamedTuple):
    """A GPU's name, and the GiB that a process can have of it."""

    gpu: str
    gib: float


class Remedy(NamedTuple):
    """Keys of the configuration with other values, and what is then needed of each GPU."""

    changes: tuple[tuple[str, Any], ...]
    total_gib: float


# ---------------------------------------------------------------------------------------
# What is there


def asked(name: str) -> Room:
    """The GPU that somebody names, in any spelling: "L4", "NVIDIA L4", "rtx4090", "A100 80GB".

    Raises ConfigError with the known names.
    """
    for known, gib in KNOWN_GIB.items():
        if _plain(known) == _plain(name):
            return Room(known, gib)
    raise ConfigError(f"--gpu {name}: is not known here; known are {', '.join(KNOWN_GIB)}")


def given(config: Config, devices: DeviceFacts) -> Room | None:
    """The smallest GPU that a rank would get on this machine, None where ranks run on the CPU
    (also with device "auto" and fewer GPUs than ranks) or nobody knows."""
    ranks = config.parallel.ranks
    used = devices.gpus[:ranks]
    if config.parallel.device == "cpu" or not used:
        return None
    if config.parallel.device == "auto" and len(used) < ranks:
        return None
    smallest = min(used, key=lambda gpu: gpu.memory_mib)
    return Room(smallest.name, smallest.memory_mib / 1024)


# ---------------------------------------------------------------------------------------
# What does not fit, and what would


def about_memory(config: Config, plan: MemoryPlan, most_ranks: int) -> Iterator[Problem]:
    """A model that the GPUs cannot hold, with the settings that make it fit, worked out by the
    same arithmetic. `most_ranks`: as many GPUs as there could be."""
    parts, capacity = plan.per_gpu_gib, plan.capacity_gib
    if plan.fits is not False or capacity is None:
        return
    largest = sorted(
        ((gib, name) for name, gib in msgspec.structs.asdict(parts).items() if name != "total"),
        reverse=True,
    )
    yield Problem(
        id="does-not-fit",
        # So near, the guess at what is no tensor decides, and what a compiler saves is not in it.
        severity="warning" if (parts.total or 0.0) <= NEAR * capacity else "error",
        text=(
            f"This needs about {parts.total:.1f} GiB of each GPU, and {capacity:.1f} are there "
            f"({plan.gpu}): it would run out of memory at the {plan.fullest_at}. The largest "
            f"parts are {largest[0][1]} ({largest[0][0]:.1f} GiB) and {largest[1][1]} "
            f"({largest[1][0]:.1f} GiB)."
        ),
        next=_remedies(remedies(config, capacity, most_ranks)),
    )


def _remedies(found: list[Remedy]) -> str:
    if not found:
        return (
            "Nothing that can be set makes it fit: take GPUs with more memory, or a smaller model "
            "under [model]."
        )
    words = [
        f"{' '.join(f'--set {key}={value}' for key, value in remedy.changes)} "
        f"({remedy.total_gib:.1f} GiB)"
        for remedy in found
    ]
    return f"{', or '.join(words)}."


def remedies(config: Config, capacity_gib: float, most_ranks: int) -> list[Remedy]:
    """What makes it fit, best first: single changes, of each key the least one that does; if
    there is none, the first combination of as few keys as possible; else nothing.

    The batch keeps its meaning: micro-batches and ranks must still divide it.
    """
    keys = _keys(config, most_ranks)
    found = []
    for count in range(1, len(keys) + 1):
        for chosen in itertools.combinations(keys, count):
            remedy = _first_that_fits(config, capacity_gib, dict(chosen))
            if remedy:
                found.append(remedy)
            if remedy and count > 1:
                return found
        if found:
            return found
    return found


def _keys(config: Config, most_ranks: int) -> list[tuple[str, list[Any]]]:
    """Keys that bear on memory, best first, each with its other values, best first.

    Computing activations again costs up to a third more time; a smaller micro-batch costs
    traffic, and with accumulation memory as well; more ranks cost GPUs.
    """
    parallel, train = config.parallel, config.train
    modes = ["none", "selective", "full"]
    smaller = range(min(train.micro_batch - 1, MOST_TRIED), 0, -1)
    keys: list[tuple[str, list[Any]]] = [
        (
            "parallel.activation_checkpointing",
            modes[modes.index(parallel.activation_checkpointing) + 1 :],
        ),
        ("train.micro_batch", [size for size in smaller if train.batch % size == 0]),
        ("parallel.shard", ["full"] if parallel.shard == "grad" else []),
        ("parallel.ranks", list(range(parallel.ranks + 1, most_ranks + 1))),
    ]
    return [(key, values) for key, values in keys if values]


def _first_that_fits(
    config: Config, capacity_gib: float, values: dict[str, list[Any]]
) -> Remedy | None:
    for chosen in itertools.product(*values.values()):
        changes = tuple(zip(values, chosen, strict=True))
        changed = _changed(config, changes)
        if changed.train.batch % (changed.parallel.ranks * changed.train.micro_batch):
            continue
        total_gib = memory.predict(changed).per_gpu_gib.total
        assert total_gib is not None
        if total_gib <= capacity_gib:
            return Remedy(changes, total_gib)
    return None


def _changed(config: Config, changes: tuple[tuple[str, Any], ...]) -> Config:
    for key, value in changes:
        section, _, name = key.partition(".")
        table = msgspec.structs.replace(getattr(config, section), **{name: value})
        config = msgspec.structs.replace(config, **{section: table})
    return config


def _plain(name: str) -> str:
    letters = "".join(c for c in name.lower() if c.isalnum())
    return letters.removeprefix("nvidia").removeprefix("geforce").removesuffix("gb")
