"""Which GPUs a launch may use, by CUDA's rules for CUDA_VISIBLE_DEVICES. Pure."""

from __future__ import annotations

from bitwatch.record.gpu import Gpu


def visible(gpus: list[Gpu], value: str | None) -> set[int]:
    """Indexes of the GPUs that CUDA_VISIBLE_DEVICES lets a process see; None: it is not set.

    An entry is an index, or a UUID or its unambiguous beginning. The first that is neither ends
    the list. Of a MIG instance it cannot be told which GPU
    it lies on: all in MIG mode then count. Indexes are taken to be NVML's, which they are with
    CUDA_DEVICE_ORDER=PCI_BUS_ID or where all GPUs are of one kind.
    """
    if value is None:
        return {gpu.index for gpu in gpus}
    found: set[int] = set()
    for entry in value.split(","):
        wanted = _meant(gpus, entry.strip())
        if not wanted:
            break
        found |= wanted
    return found


def _meant(gpus: list[Gpu], entry: str) -> set[int]:
    if entry.isascii() and entry.isdigit():
        return {gpu.index for gpu in gpus if gpu.index == int(entry)}
    if entry.startswith("MIG-"):
        return {gpu.index for gpu in gpus if gpu.mig}
    if not entry.startswith("GPU-"):
        return set()
    matches = {gpu.index for gpu in gpus if gpu.uuid and gpu.uuid.startswith(entry)}
    return matches if len(matches) == 1 else set()
