"""The facts that a plan is made from, as `python -m trainer.inspect` prints them.

What could not be learnt is None, never a guess: `preflight` turns each gap into a sentence.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class FactError(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why a part of the facts is missing.

    unreachable: what is asked may be fine, but it is elsewhere and nobody answers.
    unusable: what the configuration names cannot be used, whoever tries.
    failed: something broke while looking.

    `text` is one sentence, `next` what the person can do about it.
    """

    kind: Literal["unreachable", "unusable", "failed"]
    text: str
    next: str = ""


class Parameter(msgspec.Struct, array_like=True):
    """One parameter tensor of the whole model, before any wrapping. JSON: [name, shape]."""

    name: str
    shape: list[int]


class ModelFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    parameters: list[Parameter] = msgspec.field(default_factory=list)
    error: FactError | None = None


class Shard(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One shard as `datasets` counts them, in its order: a file, for files.

    `rows` and `row_groups` are None where only reading the whole file could tell.
    `text_bytes` is the size of the text in it (UTF-8), to within some percent;
    `text_bytes_at_most` a bound where that is not known. `group_rows` and `group_bytes` (of
    text) have one entry a row group, for parquet whose footer was read.
    """

    name: str
    rows: int | None = None
    row_groups: int | None = None
    text_bytes: int | None = None
    text_bytes_at_most: int | None = None
    group_rows: list[int] | None = None
    group_bytes: list[int] | None = None


class CacheFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The folder that an index of the text would be written to, and the room on its disk.

    `present`: it is already there, whole. `bytes_per_s`: what this machine reached when it
    wrote one from a source of the same kind, bytes of text each second; None before.
    """

    folder: str
    free_bytes: int | None = None
    present: bool = False
    bytes_per_s: float | None = None


class DataFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The training split. `num_shards` may be known where `shards` are not (a hub id).
    `format` is parquet, json, text or another that `datasets` calls so."""

    format: str | None = None
    num_shards: int | None = None
    shards: list[Shard] = msgspec.field(default_factory=list)
    columns: list[str] = msgspec.field(default_factory=list)
    cache: CacheFacts | None = None
    error: FactError | None = None


class Gpu(msgspec.Struct, kw_only=True):
    name: str
    memory_mib: int


class DeviceFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """GPUs that torch can use on the machine that was asked."""

    gpus: list[Gpu] = msgspec.field(default_factory=list)
    error: FactError | None = None


class Versions(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`cuda` and `nccl` are those torch was built with, None for a CPU build."""

    torch: str | None = None
    datasets: str | None = None
    cuda: str | None = None
    nccl: str | None = None


class Facts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A part that nobody asked for is None. `error` is set when nothing could be learnt."""

    model: ModelFacts | None = None
    data: DataFacts | None = None
    devices: DeviceFacts | None = None
    versions: Versions | None = None
    error: FactError | None = None


def merge(*parts: Facts) -> Facts:
    """Facts gathered in parts (one process each, say) as one. Earlier ones win."""
    whole = Facts()
    for part in parts:
        for name in whole.__struct_fields__:
            if getattr(whole, name) is None:
                setattr(whole, name, getattr(part, name))
    return whole
