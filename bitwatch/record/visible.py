"""Which GPUs a training can see: CUDA_VISIBLE_DEVICES as CUDA itself reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bitwatch.record.gpu import Gpu

NUMBER = re.compile(r"\s*\+?([0-9]+)")
DIGITS = 9  # of a number that can be one of a GPU


def visible(gpus: Sequence[Gpu], value: str | None) -> set[int]:
    """The indexes of those that are visible; all of them where the variable is not set (None)."""
    return set(in_order(gpus, value))


def in_order(gpus: Sequence[Gpu], value: str | None) -> list[int]:
    """The indexes of the visible ones, the one that a program calls `cuda:0` first.

    A number counts in the order of the bus, as NVML's index does. CUDA does the same with
    CUDA_DEVICE_ORDER=PCI_BUS_ID; without it, it puts the fastest first, which is the same order
    where all GPUs of a node are alike, as is assumed here. An entry that names no GPU ends the
    list, and one that names a GPU for a second time empties it. The first entry decides whether
    the list is one of numbers, of GPUs' or of MIG instances' UUIDs.
    """
    indexes = [gpu.index for gpu in sorted(gpus, key=lambda gpu: gpu.index)]
    if value is None:
        return indexes
    found: list[int] = []
    if value.startswith("MIG-"):
        return _with_instances(gpus, value.split(","))
    for entry in value.split(","):
        if value.startswith("GPU-"):
            index = _of_uuid(gpus, entry)
        else:
            number = NUMBER.match(entry)  # as C reads one: what stands after it is not looked at
            index = int(number[1]) if number and len(number[1]) <= DIGITS else None
        if index is not None and index in found:
            return []
        if index not in indexes:
            break
        found.append(index)
    return found


def are_whole(gpus: Sequence[Gpu], value: str | None) -> bool:
    """Whether what a program sees are whole GPUs. Of one that is split into MIG instances nobody
    tells here which of them a rank has: its number then says nothing about its GPU."""
    if value is not None and value.startswith("MIG-"):
        return False
    seen = visible(gpus, value)
    return not any(gpu.mig for gpu in gpus if gpu.index in seen)


def _of_uuid(gpus: Sequence[Gpu], beginning: str) -> int | None:
    """A UUID can be shortened as long as it is the beginning of one only."""
    if not beginning.startswith("GPU-"):
        return None
    named = [gpu.index for gpu in gpus if gpu.uuid and gpu.uuid.startswith(beginning)]
    return named[0] if len(named) == 1 else None


def _with_instances(gpus: Sequence[Gpu], entries: Sequence[str]) -> list[int]:
    """The GPUs that the MIG instances are part of. "MIG-GPU-<uuid>/..." names its GPU; the newer
    "MIG-<uuid>" does not: then all GPUs in MIG mode count."""
    found: list[int] = []
    for entry in entries:
        if not entry.startswith("MIG-"):
            break
        if entry.startswith("MIG-GPU-"):
            index = _of_uuid(gpus, entry.removeprefix("MIG-").partition("/")[0])
            named = [] if index is None else [index]
        else:
            named = [gpu.index for gpu in gpus if gpu.mig]
        if not named:
            break
        found += [index for index in named if index not in found]
    return found
