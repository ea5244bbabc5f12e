"""The plan as a value. Its JSON is what `bitwatch plan --json` prints and plan.json holds.

A field is None (null) where the facts did not tell. Nothing here computes anything.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bitwatch.plan.sharding import Mode, ReaderShare, Split

Severity = Literal["info", "warning", "error"]
Verdict = Literal["ok", "warning", "error"]


class ModelPlan(msgspec.Struct, kw_only=True):
    """Parameters, by the four names that are never mixed up. `held` has one entry a rank."""

    asked: int | None = None
    built: int | None = None
    held: list[int] | None = None
    flat_shard: int | None = None


class PerGpu(msgspec.Struct, kw_only=True):
    """GiB on the GPU of the rank that holds most, at the fullest moment of a step; they add up
    to `total`. `gathered`: whole weights of blocks, and the buffers of collectives.
    `overhead`: CUDA, NCCL and fragmentation."""

    parameters: float | None = None
    gradients: float | None = None
    optimizer: float | None = None
    activations: float | None = None
    gathered: float | None = None
    overhead: float | None = None
    total: float | None = None


class MemoryPlan(msgspec.Struct, kw_only=True):
    """`fullest_at` names the moment of a step that is told. `gpu` is what it is compared with:
    the one that was asked for, or the smallest that the ranks would get; None without any."""

    per_gpu_gib: PerGpu = msgspec.field(default_factory=PerGpu)
    fullest_at: str | None = None
    gpu: str | None = None
    capacity_gib: float | None = None
    fits: bool | None = None


class DataPlan(msgspec.Struct, kw_only=True):
    """How the text reaches the ranks in the first epoch; as-is, `datasets` deals the shards out
    in another order in later ones. `assignment` says which shards each reader gets; it is empty
    in mode indexed, where a reader has places of a permutation, and where it would name more
    shards than anybody reads (20,000; 2,000 in a correction).

    `mode` is what will be done ("ask": what is configured, as-is); `mode_reason` says why,
    where the configuration left the choice to bitwatch ("auto"), which may also take fewer
    `workers_per_rank`. In mode reshard the row groups are the shards. `split` is what
    `datasets` does: nothing, in the modes that deal the text out by themselves.

    `rows_per_rank`, `sequences_per_rank` (packed) and `steps_per_rank` have one entry a rank; the
    last is what each rank's own share would be enough for. `steps_per_epoch` counts optimiser
    steps: our ranks agree on the end, so all take as many as the one with the fewest.
    `hang_risk`: ranks with different steps, which hangs a loop without such an agreement; only
    mode indexed rules it out, in the others an estimate says that they are equal.
    `imbalance_percent` compares the ranks' packed sequences (their rows, or the sizes of their
    files, where the size of the text is not known). Only reading everything could tell
    sequences, steps, risk and imbalance exactly: `estimated` says that they are there and are
    estimates.
    """

    num_shards: int | None = None
    row_groups: int | None = None
    rows: int | None = None
    ranks: int
    workers_per_rank: int
    readers: int
    mode: Mode = "as-is"
    mode_reason: str = ""
    split: Split | None = None
    readers_busy: int | None = None
    readers_idle: int | None = None
    copies: int | None = None
    read_amplification: int | None = None
    rows_per_rank: list[int] | None = None
    sequences_per_rank: list[int] | None = None
    steps_per_rank: list[int] | None = None
    steps_per_epoch: int | None = None
    hang_risk: bool | None = None
    imbalance_percent: float | None = None
    estimated: bool = False
    assignment: list[ReaderShare] = msgspec.field(default_factory=list)


class Correction(msgspec.Struct, kw_only=True):
    """A way of reading that works better, what it would do (`data`), and what taking it costs.
    `why` says what it does, and why it is recommended or is not.

    `changes` are keys of the configuration with their new values: with them it can be launched.
    Empty for what a person must do first (new files), as `why` says: the Python for it between
    backticks. `resume`, in a run that
    is under way: exact; new-epoch (model, optimiser and step go on, the order of the data
    starts anew); or refused. `prepare_bytes` are written before the launch, in about
    `prepare_s` seconds.
    """

    id: str
    recommended: bool
    workers_per_rank: int
    num_shards: int
    readers_busy: int
    readers_idle: int
    copies: int
    read_amplification: int
    resume: Literal["exact", "new-epoch", "refused"]
    prepare_bytes: int = 0
    prepare_s: float = 0.0
    changes: dict[str, str | int] = msgspec.field(default_factory=dict)
    why: str
    data: DataPlan


class Refused(msgspec.Struct, kw_only=True):
    """A remedy that is often given and does not work here: what it says, and why not."""

    id: str
    remedy: str
    why: str


class Problem(msgspec.Struct, kw_only=True):
    """Something wrong with the plan: what, in one or two sentences, and what to do next."""

    id: str
    severity: Severity
    text: str
    next: str


class Plan(msgspec.Struct, kw_only=True):
    """`resume`: whether this attempt may lose its place in the text ("new-epoch"); only a
    person allows that."""

    verdict: Verdict
    model: ModelPlan
    memory: MemoryPlan
    data: DataPlan
    corrections: list[Correction]
    problems: list[Problem]
    refused: list[Refused] = msgspec.field(default_factory=list)
    resume: Literal["exact", "new-epoch"] = "exact"
