"""What a face sees of a run at a moment: values alone, made by `record.view`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bitwatch.record import events
from bitwatch.record.gpu_history import GpuHistory
from bitwatch.record.joined import ProcessRow
from bitwatch.record.recent import Own
from bitwatch.record.series import Series

END_STATES = ("done", "failed", "stopped", "lost")


class View(msgspec.Struct, kw_only=True):
    """One run, now. Numbers that nobody knows are None. `launched` says why the attempt was
    launched, `cause` why it ended. `rank_steps` has the newest step record of every rank,
    `rank_firsts` its first one (there is one after `log_every` steps),
    `rank_epochs` its newest end of an epoch, `data_shares` the share of its recent steps that it
    waited for data, `own_times` what of them was its own, `models` what rank 0 of each attempt has built, `sampled` the time at which
    `processes` were seen. `leftovers` are what lives of ended attempts, `exits` those of its ranks, `past_alerts` the
    history: raised and cleared, in that order. `loss` is rank 0's by attempt, `curves` what else of
    its steps makes a curve (names of `record.curves`). `visible_devices` is CUDA_VISIBLE_DEVICES
    of the launch, None where it was not set or is not known."""

    run: str = ""
    name: str = ""
    foreign: bool = False  # a training that bitwatch did not start, and only watches
    state: events.State = "preparing"
    attempt: int = 0
    launched: str = ""
    before: events.AttemptEnded | None = None  # how the attempt before it ended
    cause: str = ""
    note: str = ""
    gone: str = ""  # that its folder is, as a sentence: nothing can be asked of the run then
    supervisor: Literal["alive", "gone", "ended"] = "ended"
    started: float | None = None
    attempt_started: float | None = None
    updated: float | None = None
    ended: float | None = None  # the last sign of life of an attempt that is over
    device: str = ""
    visible_devices: str | None = None
    ranks: int = 0
    workers: int = 0
    phase: str = ""
    phase_text: str = ""
    phase_progress: float | None = None
    asked: int | None = None
    built: int | None = None
    held: list[int] = []
    step: int = 0
    steps: int = 0
    last: events.Step | None = None
    recent: list[events.Step] = []
    epoch: events.Epoch | None = None
    rank_epochs: dict[int, events.Epoch] = {}
    data_shares: dict[int, float] = {}
    own_times: dict[int, Own] = {}
    relaunch_of: int = 0
    correction: str = ""
    models: list[tuple[int, events.ModelBuilt]] = []
    notes: list[events.Note] = []
    eta_s: float | None = None
    evaluations: list[events.Evaluation] = []
    checkpoints: list[events.Checkpoint] = []
    loss: list[tuple[int, Series]] = []
    curves: dict[str, list[tuple[int, Series]]] = {}
    grace_s: float | None = None
    stuck: events.Stuck | None = None
    plan: dict[str, Any] = {}
    readers: list[events.Reader] = []
    rank_steps: dict[int, events.Step] = {}
    rank_firsts: dict[int, events.Step] = {}
    log_every: int = 1
    last_words: dict[int, events.RankEnded] = {}
    unwritten: dict[int, events.Unwritten] = {}  # by rank: what its record lacks just now
    exits: list[events.ProcessExit] = []
    processes: list[ProcessRow] = []
    sampled: float | None = None
    gpus: events.Gpus | None = None
    gpu_history: GpuHistory = msgspec.field(default_factory=GpuHistory)
    alerts: list[events.Alert] = []
    leftovers: list[events.ProcessStart] = []
    past_alerts: list[events.Alert] = []
    attempt_ends: dict[int, float] = {}  # when they ended
