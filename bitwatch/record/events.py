"""The records of a run: one struct a kind, one JSON line a record.

`codec` makes lines of them and reads them back. `t` is wall-clock seconds since the epoch, `m`
seconds of the writer's monotonic clock, for durations within one source. JSON has neither NaN
nor infinities: such a field is null, with its name and value in `nonfinite`.
"""

from __future__ import annotations

import time
from typing import Any, Literal

import msgspec

from bitwatch.record.gpu import Gpu
from bitwatch.record.waits import Wait

State = Literal[
    "preparing", "starting", "running", "stalled", "stopping", "done", "failed", "stopped", "lost"
]
EndState = Literal["done", "failed", "stopped", "lost"]
PhaseName = Literal["start", "prepare", "compile", "train", "evaluate", "checkpoint", "stop"]
ReaderState = Literal["starting", "reading", "waiting", "done", "idle", "failed"]
Severity = Literal["info", "warning", "error"]


def _kind(class_name: str) -> str:
    """RunStarted -> run-started"""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in class_name).lstrip("-")


class Record(
    msgspec.Struct, kw_only=True, tag_field="kind", tag=_kind, omit_defaults=True, gc=False
):
    t: float = msgspec.field(default_factory=time.time)
    m: float = msgspec.field(default_factory=time.monotonic)
    nonfinite: dict[str, str] | None = None


# ---------------------------------------------------------------------------------------
# Life of a run (journal)


class RunStarted(Record):
    """`foreign`: a training that bitwatch did not start, and only watches."""

    name: str = ""
    run: str = ""
    foreign: bool = False


class AttemptStarted(Record):
    """`cause` says why it was launched, `by` who asked for it. `relaunch_of` is the attempt whose
    settings it has, changed by `correction`; 0 for a launch of its own. The rest is what a
    reader needs of the attempt's configuration to judge what it sees."""

    attempt: int = 1
    cause: str = ""
    by: str = ""
    steps: int = 0
    ranks: int = 1
    workers: int = 0
    device: str = ""
    log_every: int = 1
    stall_s: float = 30.0
    start_timeout_s: float = 600.0
    checkpoints: str = ""
    grace_s: float | None = None  # that torchrun was given for a stop
    relaunch_of: int = 0
    correction: str = ""
    visible_devices: str | None = None  # CUDA_VISIBLE_DEVICES of the launch; None: not set


class DataPlanned(Record):
    """The data part of plan.json, as the attempt was launched with."""

    attempt: int = 1
    plan: dict[str, Any] = msgspec.field(default_factory=dict)


class Action(Record):
    """Something that was done to the run: stop asked, escalated, relaunched, cleaned."""

    name: str = ""
    by: str = ""
    on: str = ""
    result: str = ""


class Alert(Record):
    """Raised, or cleared when `cleared` is set. `next` is what the reader should do."""

    id: str = ""
    severity: Severity = "warning"
    text: str = ""
    evidence: list[str] = msgspec.field(default_factory=list)
    next: str = ""
    cleared: bool = False
    attempt: int = 0


class Stuck(Record):
    """Where the ranks of an attempt that takes no step wait, and in one sentence for whom."""

    attempt: int = 0
    text: str = ""
    waits: list[Wait] = msgspec.field(default_factory=list)


class AttemptEnded(Record):
    attempt: int = 1
    state: EndState = "lost"
    cause: str = ""
    step: int | None = None


class RunEnded(Record):
    state: EndState = "lost"
    cause: str = ""


class ProcessStart(Record):
    """A process in a role. Pinned by pid and starttime (clock ticks since boot)."""

    pid: int = 0
    starttime: int = 0
    ppid: int = 0
    role: str = ""
    rank: int | None = None
    worker: int | None = None
    attempt: int = 0
    command: str = ""


class ProcessExit(Record):
    """`status` is the exit code, `signal` the signal's number; both None when unknown. `m` is no
    later than its death: when it was last seen alive, and 0 where nobody has seen it in this boot.
    Until then its pid, and the number of its session, were nobody else's."""

    pid: int = 0
    starttime: int = 0
    role: str = ""
    rank: int | None = None
    status: int | None = None
    signal: int | None = None


class SharedMemory(Record):
    """Names below /dev/shm that a process of ours has mapped."""

    pid: int = 0
    starttime: int = 0
    names: list[str] = msgspec.field(default_factory=list)


# ---------------------------------------------------------------------------------------
# Samples


class Gpus(Record):
    """`source`: "nvml", or "cpu" where the ranks' CPU and memory stand in (see Processes)."""

    source: str = "nvml"
    note: str = ""
    gpus: list[Gpu] = msgspec.field(default_factory=list)


class Process(msgspec.Struct, omit_defaults=True, gc=False):
    """One process of ours at one instant. `cpu_percent` is of one core. `shared_mib`: the part
    of its resident memory that is of files and of shared memory. `threads_live`: of a process
    in state Z that goes on without its first thread, how many others there are."""

    pid: int
    starttime: int
    ppid: int
    role: str
    state: str  # the letter of /proc/PID/stat
    rank: int | None = None
    worker: int | None = None
    cpu_percent: float | None = None
    rss_mib: float | None = None
    shared_mib: float | None = None
    command: str = ""
    threads_live: int = 0


class Processes(Record):
    attempt: int = 0
    processes: list[Process] = msgspec.field(default_factory=list)


class Minute(Record):
    """One aggregate a minute of what the samples said, kept for the life of the run."""

    processes: int = 0
    cpu_percent: float | None = None
    rss_mib: float | None = None
    gpu_memory_mib: list[float | None] = msgspec.field(default_factory=list)
    gpu_utilization_percent: list[float | None] = msgspec.field(default_factory=list)


# ---------------------------------------------------------------------------------------
# A rank's telemetry


class ModelBuilt(Record):
    """`asked`: what the configuration promised, or None. `built`: the whole model, counted before
    wrapping, exact but for `within`. `held`: one entry a rank, the local parts of its DTensors."""

    asked: int | None = None
    built: int = 0
    within: int = 0
    held: list[int] = msgspec.field(default_factory=list)
    ranks: int = 1
    device: str = ""
    gpu_name: str | None = None


class Phase(Record):
    """`name` begins now. `progress` runs from 0 to 1 where a phase knows it."""

    rank: int = 0
    name: PhaseName = "start"
    text: str = ""
    progress: float | None = None


class Step(Record):
    """Step `step` is done. Means are over the steps since the last record of this kind.

    tokens: positions (bits) trained on so far over all ranks. loss: mean nats per bit over
    all ranks. bits_per_byte: of the same text. step_s: seconds a step. data_s: seconds of it
    that this rank waited for data. tokens_per_s: bits per second over all ranks. mfu: share
    of the GPU's dense bf16 peak, None where the peak is unknown. *_mib: this rank's memory
    of the CUDA allocator, None on a CPU.
    """

    rank: int = 0
    step: int = 0
    tokens: int = 0
    loss: float | None = None
    bits_per_byte: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    step_s: float | None = None
    data_s: float | None = None
    tokens_per_s: float | None = None
    mfu: float | None = None
    allocated_mib: float | None = None
    reserved_mib: float | None = None
    peak_mib: float | None = None  # the most that was allocated at once since the attempt began
    wait_s: float | None = None  # of step_s, in which this rank waited for the others' word
    skipped: int = 0  # steps skipped so far for a not-finite loss or gradient


class Evaluation(Record):
    """`scored_bytes` of `of_bytes` of validation text were scored (None: not known)."""

    step: int = 0
    loss: float | None = None
    bits_per_byte: float | None = None
    scored_bytes: int = 0
    of_bytes: int | None = None
    seconds: float = 0.0


class Checkpoint(Record):
    step: int = 0
    path: str = ""
    seconds: float = 0.0  # from its begin to its manifest
    paused_s: float = 0.0  # of these: that training stood still for it
    bytes: int = 0


class Epoch(Record):
    """The data came to its end on all ranks at the same step. `unread`: about how many packed
    sequences of this rank's share nobody trained on, of `share`; None where that is not known."""

    rank: int = 0
    epoch: int = 0
    step: int = 0
    text: str = ""
    unread: int | None = None
    share: int | None = None


class Note(Record):
    """Something that a person must be told once, in a sentence. `step`: that the attempt goes on
    from, where it is about that."""

    rank: int = 0
    step: int | None = None
    text: str = ""
    severity: Severity = "info"


class RankEnded(Record):
    """A rank's last word, written before it exits. `cause` says why it failed, or names the signal
    to this rank for which all have stopped."""

    rank: int = 0
    state: EndState = "failed"
    cause: str = ""
    step: int = 0


class Unwritten(Record):
    """How many records since `t` a rank could not write, and why; the last of them was of
    `newest`. Stands beside its record, before the newest of them; `lost` is 0 when all is well."""

    rank: int = 0
    error: str = ""
    lost: int = 0
    newest: float = 0.0


# ---------------------------------------------------------------------------------------
# A reader's own account


class Reader(Record):
    """What one reader (a rank's dataloader worker, or the rank itself when there is none)
    was given and has produced. `samples` counts packed sequences, `bytes` raw text bytes.

    reading: it is in the source, for a row. waiting: what it has read waits to be taken; all is
    well with it. `moved` is the wall-clock time of its last row or change of state, so a reader
    that has been "reading" since long ago is stuck. `shard` is the one that it is in, where
    that is known. `longest_read_s` is about how long its longest finished read took, of this
    epoch and those before; None before the first.
    """

    rank: int = 0
    loader: str = "train"
    worker: int = 0
    pid: int = 0
    starttime: int = 0
    shards: list[int | str] = msgspec.field(default_factory=list)
    rows: int = 0
    samples: int = 0
    bytes: int = 0
    state: ReaderState = "starting"
    error: str = ""
    moved: float = 0.0
    shard: int | str | None = None
    longest_read_s: float | None = None
