"""The state of a run as a fold over its records.

One small reducer per source. A source is one file of the run directory, or the samples as a
whole; each changes only its own part of the state (of samples and of a reader's successive
files the newest record counts, of one file's samples the last one; the history of the GPUs is the same whichever comes first), so
the order in which files arrive does
not matter. What the parts mean together is said by `view`, never stored here.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from bitwatch.record import codec, curves, events, unwritten
from bitwatch.record.gpu_history import GpuHistory
from bitwatch.record.joined import Joined
from bitwatch.record.series import Series

KEPT = 500  # evaluations, checkpoints, actions, ended alerts: enough for a screen's lists
RECENT_STEPS = 64  # step records kept whole: for the median step time, and for line by line faces


class Source(NamedTuple):
    """Which file a record came from. `kind`: journal, samples, prepare, rank, unwritten, history or
    reader. `name`: of a reader; of a file of samples that is read in its order, by which a clock
    that was set back is noticed."""

    kind: str
    attempt: int = 0
    rank: int = 0
    name: str = ""


JOURNAL = Source("journal")
SAMPLES = Source("samples")


class RankState(msgspec.Struct):
    """What a rank says of itself in one attempt."""

    pid: int = 0
    starttime: int = 0
    started: float | None = None
    updated: float = 0.0
    phase: events.Phase | None = None
    model: events.ModelBuilt | None = None
    step: events.Step | None = None
    first_step: events.Step | None = None
    epoch: events.Epoch | None = None
    ended: events.RankEnded | None = None
    recent: list[events.Step] = []
    notes: list[events.Note] = []
    loss: Series = msgspec.field(default_factory=Series)
    curves: dict[str, Series] = {}  # the other curves, of rank 0 alone, by name
    evaluations: list[events.Evaluation] = []
    checkpoints: list[events.Checkpoint] = []


class Beside(msgspec.Struct):
    """What a rank could not write into its record, and the newest of it."""

    word: events.Unwritten
    told: RankState


class AttemptState(msgspec.Struct):
    """What the journal says of one attempt."""

    started: events.AttemptStarted | None = None
    planned: events.DataPlanned | None = None
    stuck: events.Stuck | None = None
    ended: events.AttemptEnded | None = None


class JournalState(msgspec.Struct):
    run: events.RunStarted | None = None
    ended: events.RunEnded | None = None
    attempts: dict[int, AttemptState] = {}
    alerts: dict[tuple[int, str], events.Alert] = {}
    alert_history: list[events.Alert] = []
    actions: list[events.Action] = []
    processes: dict[tuple[int, int], events.ProcessStart] = {}
    starts: int = 0  # records of a start, of which the newest of each process counts
    exits: dict[tuple[int, int], events.ProcessExit] = {}
    shared: dict[tuple[int, int], set[str]] = {}
    minutes: int = 0
    updated: float = 0.0


class PrepareState(msgspec.Struct):
    """What is done to the text of an attempt before it has ranks."""

    phase: events.Phase | None = None
    ended: events.RankEnded | None = None
    updated: float = 0.0


class SampleState(msgspec.Struct):
    gpus: events.Gpus | None = None
    processes: events.Processes | None = None
    gpus_from: str = ""  # the file that they stand in
    processes_from: str = ""
    joined: list[Joined] = []  # of the newest view of them, for the next: most stay
    joined_at: int = 0  # with the starts that the journal had told of then


class RunState(msgspec.Struct):
    journal: JournalState = msgspec.field(default_factory=JournalState)
    samples: SampleState = msgspec.field(default_factory=SampleState)
    prepares: dict[int, PrepareState] = {}
    ranks: dict[tuple[int, int], RankState] = {}
    unwritten: dict[tuple[int, int], Beside] = {}
    readers: dict[tuple[int, str, int, int], events.Reader] = {}
    gpu_history: GpuHistory = msgspec.field(default_factory=GpuHistory)  # of journal and samples

    def newest_attempt(self) -> int:
        """The number of the newest attempt that any record names; 0 for none yet."""
        numbers = [*self.journal.attempts, *self.prepares, *(n for n, _ in self.ranks)]
        return max(numbers, default=0)

    def ranks_of(self, attempt: int) -> dict[int, RankState]:
        return {rank: state for (n, rank), state in sorted(self.told().items()) if n == attempt}

    def told(self) -> dict[tuple[int, int], RankState]:
        """All ranks of all attempts, with what they could not write into their records."""
        if not self.unwritten:
            return self.ranks
        found = dict(self.ranks)
        for key, beside in self.unwritten.items():
            rank = self.ranks.get(key, RankState())
            found[key] = unwritten.joined(rank, beside.told, beside.word)
        return found

    def unwritten_of(self, attempt: int) -> dict[int, events.Unwritten]:
        """Of the ranks of an attempt whose records lack something just now."""
        return {rank: one.word for (n, rank), one in self.unwritten.items() if n == attempt}

    def readers_of(self, attempt: int) -> list[events.Reader]:
        """The newest account of every reader of an attempt, by loader, rank and worker."""
        return [self.readers[key] for key in sorted(self.readers) if key[0] == attempt]


def fold(state: RunState, source: Source, records: Iterable[codec.Any_]) -> None:
    """Takes records of one source, in the order in which they stand in it."""
    if source.kind == "journal":
        for record in records:
            _journal(state.journal, record)
            if isinstance(record, events.Minute):
                state.gpu_history.take_minute(record)
    elif source.kind == "samples":
        for record in records:
            _sample(state.samples, record, source.name)
            in_order = bool(source.name)
            if isinstance(record, events.Gpus):
                state.gpu_history.take_gpus(record, in_order=in_order)
            elif isinstance(record, events.Processes):
                state.gpu_history.take_processes(record.t, record.processes, in_order=in_order)
    elif source.kind == "prepare":
        prepare = state.prepares.setdefault(source.attempt, PrepareState())
        for record in records:
            _prepare(prepare, record)
    elif source.kind == "rank":
        rank = state.ranks.setdefault((source.attempt, source.rank), RankState())
        steps = []
        for record in records:
            if isinstance(record, events.Step):
                steps.append(record)
            else:
                _rank(rank, record)
        _steps(rank, steps)
        curves.extend(rank.loss, rank.curves if source.rank == 0 else None, steps)
    elif source.kind == "unwritten":
        for record in records:
            _unwritten(state, (source.attempt, source.rank), record)
    elif source.kind == "history":
        rank = state.ranks.setdefault((source.attempt, source.rank), RankState())
        steps = []
        for record in records:
            _past(rank, record)
            if isinstance(record, events.Step):
                steps.append(record)
        curves.extend(rank.loss, rank.curves, steps)
    elif source.kind == "reader":
        for record in records:
            if isinstance(record, events.Reader):
                key = (source.attempt, record.loader, record.rank, record.worker)
                if key not in state.readers or state.readers[key].t <= record.t:
                    state.readers[key] = record


def _journal(state: JournalState, record: codec.Any_) -> None:
    state.updated = max(state.updated, record.t)
    match record:
        case events.RunStarted():
            state.run = record
        case events.RunEnded():
            state.ended = record
        case events.AttemptStarted():
            _attempt(state, record.attempt).started = record
            state.ended = None
        case events.DataPlanned():
            _attempt(state, record.attempt).planned = record
        case events.Stuck():
            _attempt(state, record.attempt).stuck = record
        case events.AttemptEnded():
            _attempt(state, record.attempt).ended = record
        case events.Alert():
            if record.cleared:
                state.alerts.pop((record.attempt, record.id), None)
            else:
                state.alerts[record.attempt, record.id] = record
            _keep(state.alert_history, record)
        case events.Action():
            _keep(state.actions, record)
        case events.ProcessStart():
            state.processes[record.pid, record.starttime] = record
            state.starts += 1
        case events.ProcessExit():
            state.exits[record.pid, record.starttime] = record
        case events.SharedMemory():
            names = state.shared.setdefault((record.pid, record.starttime), set())
            names.update(record.names)
        case events.Minute():
            state.minutes += 1


def _attempt(state: JournalState, number: int) -> AttemptState:
    return state.attempts.setdefault(number, AttemptState())


def _sample(state: SampleState, record: codec.Any_, file: str) -> None:
    """The files of the samples come in any order: the newest record wins."""
    if isinstance(record, events.Gpus) and _is_newer(record, file, state.gpus, state.gpus_from):
        state.gpus, state.gpus_from = record, file or state.gpus_from
    elif isinstance(record, events.Processes) and _is_newer(
        record, file, state.processes, state.processes_from
    ):
        state.processes, state.processes_from = record, file or state.processes_from


def _is_newer(record: events.Record, file: str, known: events.Record | None, of: str) -> bool:
    """What stands later in a file is newer, whatever its clock says; a later hour's file too."""
    if known is None or (file and of):
        return file >= of
    return known.t <= record.t


def _prepare(state: PrepareState, record: codec.Any_) -> None:
    state.updated = max(state.updated, record.t)
    match record:
        case events.Phase():
            state.phase = record
        case events.RankEnded():
            state.ended = record


def _rank(state: RankState, record: codec.Any_) -> None:
    state.updated = max(state.updated, record.t)
    match record:
        case events.ProcessStart():
            state.pid, state.starttime, state.started = record.pid, record.starttime, record.t
        case events.Phase():
            state.phase = record
        case events.ModelBuilt():
            state.model = record
        case events.Evaluation():
            _keep(state.evaluations, record)
        case events.Checkpoint():
            _keep(state.checkpoints, record)
        case events.Epoch():
            state.epoch = record
        case events.Note():
            _keep(state.notes, record)
        case events.RankEnded():
            state.ended = record


def _steps(state: RankState, steps: list[events.Step]) -> None:
    """Many at once: nothing else that a rank tells of changes with them. In one attempt steps
    rise; where a number falls back, as a bar of progress does in a next epoch, its time goes on.
    One that is lower and no newer is no news, nor is one below zero."""
    newest, news = state.step, []
    for step in steps:
        if step.step < 0:
            continue
        if newest is None or step.step >= newest.step or step.t > newest.t:
            newest = step
            news.append(step)
    if news:
        state.updated = max(state.updated, *(step.t for step in news))
        state.first_step = state.first_step or news[0]
        state.step = newest
        state.recent = [*state.recent, *news[-RECENT_STEPS:]][-RECENT_STEPS:]


def _unwritten(state: RunState, key: tuple[int, int], record: codec.Any_) -> None:
    """The word begins anew: what follows it is all that is told beside the record."""
    if isinstance(record, events.Unwritten):
        state.unwritten.pop(key, None)
        if record.lost:
            state.unwritten[key] = Beside(word=record, told=RankState())
    elif beside := state.unwritten.get(key):
        if isinstance(record, events.Step):
            _steps(beside.told, [record])
        else:
            _rank(beside.told, record)


def _past(state: RankState, record: codec.Any_) -> None:
    """What was before all that the rank's own file tells."""
    match record:
        case events.Evaluation():
            bisect.insort(state.evaluations, record, key=lambda one: one.t)
            del state.evaluations[:-KEPT]
        case events.Checkpoint():
            bisect.insort(state.checkpoints, record, key=lambda one: one.t)
            del state.checkpoints[:-KEPT]


def _keep(items: list, item: events.Record) -> None:
    items.append(item)
    del items[:-KEPT]
