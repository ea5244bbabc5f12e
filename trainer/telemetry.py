"""A rank's voice: its log, its records, and the means between two step records.

Starts before torch is imported, so that a rank is known from its first instant; imports
only what is light. A record that cannot be written (a full disk, a quota) must never stop the
training: the newest of what was lost, and how much it was, is told beside the record.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from bitwatch.record import events
from bitwatch.record.aside import Aside
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.kernel import own_starttime
from bitwatch.record.rundir import RunDir
from trainer import stacks
from trainer.failures import Failed

USAGE_ERROR = 2  # exit status


class Telemetry:
    """Writes the records of one rank of one attempt."""

    def __init__(self, run: RunDir, attempt: int, rank: int) -> None:
        self.run = run
        self.attempt = attempt
        self.rank = rank
        self.step = 0  # the last whole one, for the rank's last word
        self._journal = JournalWriter(run.rank(attempt, rank), run.reserve)
        self._aside = Aside(run.unwritten(attempt, rank), rank)

    def write(self, record: events.Record) -> None:
        if not (self._catch_up() and self._journal.write(record)):
            self._lose(record)

    def _lose(self, record: events.Record) -> None:
        """The training goes on. Who watches learns of it, and the log says it once."""
        begins = not self._aside.holds
        self._aside.hold(record, self._journal.error)
        if begins:
            text = (
                f"rank {self.rank}: {self._journal.path}: {self._journal.error}: what cannot be "
                "written from now on is lost; the training goes on\n"
            )
            with contextlib.suppress(OSError):  # nor is there room in the log, perhaps
                os.write(sys.stderr.fileno(), text.encode(errors="replace"))

    def _catch_up(self) -> bool:
        """Whether the record lacks nothing that can still be written: the newest of what was lost
        comes into it, and a word about the rest."""
        if not self._aside.holds:
            return True
        for record in self._aside.held():
            if not self._journal.write(record):
                return False
            self._aside.drop(record)
        word = self._aside.word
        if word.lost:
            since = time.strftime("%H:%M:%S", time.localtime(word.t))
            text = f"rank {self.rank} could not write {word.lost:,} records since {since} ({word.error})"
            if not self._journal.write(events.Note(rank=self.rank, text=text)):
                return False
        self._aside.clear()
        return True

    def peers(self, ranks: int) -> list[tuple[int, int]]:
        """Pid and start time of the other ranks, by their own first words."""
        files = [self.run.rank(self.attempt, rank) for rank in range(ranks) if rank != self.rank]
        starts = [record for file in files for record in read_all(file)[0]]
        return [(r.pid, r.starttime) for r in starts if isinstance(r, events.ProcessStart)]

    def allows_new_epoch(self) -> bool:
        """Whether this attempt was launched with leave to lose its place in the text."""
        try:
            return json.loads(self.run.plan(self.attempt).read_bytes())["resume"] == "new-epoch"
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def planned_sequences(self, ranks: int) -> int | None:
        """About how many packed sequences an epoch holds for this rank, as the plan of this
        attempt has it; None where that does not say."""
        try:
            told = json.loads(self.run.plan(self.attempt).read_bytes())["data"]
            each = told["sequences_per_rank"]
            return int(each[self.rank]) if len(each) == ranks else None
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return None

    def resumed(self, step: int, epoch: int, lost: str) -> None:
        """That the training goes on, and what it has lost of its place in the text."""
        if not lost:
            text = f"resumed after step {step}, at the same place of the text"
            self.write(events.Note(rank=self.rank, step=step, text=text))
            return
        text = (
            f"resumed after step {step}: the data starts a new epoch, and some text will be seen "
            f"again ({lost})"
        )
        self.write(events.Epoch(rank=self.rank, epoch=epoch, step=step, text=text))
        self.write(events.Note(rank=self.rank, step=step, text=text, severity="warning"))

    def starts_anew(self, checkpoints: Path, passed_over: list[str]) -> None:
        """That there is nothing to go on from. Raises Failed when an earlier attempt has saved
        something that is not where it should be: a disk may be away."""
        if self.attempt == 1:
            return
        for attempt in range(self.attempt - 1, 0, -1):
            records, _ = read_all(self.run.rank(attempt, 0))
            saved = [record for record in records if isinstance(record, events.Checkpoint)]
            if saved and not passed_over:
                raise Failed(
                    f"checkpoint.folder: attempt {attempt} saved step {saved[-1].step} as "
                    f"{saved[-1].path}, and {checkpoints} has no whole checkpoint; bring it back, "
                    "or start a new run"
                )
        text = "no whole checkpoint: starting anew at step 0"
        self.write(events.Note(rank=self.rank, step=0, text=text, severity="warning"))

    def phase(self, name: events.PhaseName, text: str = "") -> None:
        self.write(events.Phase(rank=self.rank, name=name, text=text))

    def ended(self, state: events.EndState, cause: str = "") -> None:
        word = events.RankEnded(rank=self.rank, state=state, cause=cause, step=self.step)
        if self._journal.write(word, last_word=True):
            self._catch_up()  # what was kept for this may be room enough
        else:
            self._lose(word)
        self._journal.close()


def begin() -> Telemetry:
    """Opens this rank's log and record, and writes that it exists.

    Where and who it is comes from BITWATCH_DIR, BITWATCH_ATTEMPT and torchrun's RANK. What
    the process prints from here on goes to its own log: a pipe of the launcher could close.
    """
    folder, rank = os.environ.get("BITWATCH_DIR"), os.environ.get("RANK")
    if not folder:
        _refuse("BITWATCH_DIR is not set: bitwatch launches this file; try `bitwatch run`")
    if rank is None:
        _refuse("RANK is not set: this file is launched through torchrun; try `bitwatch run`")
    run, attempt = RunDir(Path(folder)), int(os.environ.get("BITWATCH_ATTEMPT", "1"))
    try:
        _redirect(run.logs(attempt) / f"rank{rank}.log")
        telemetry = Telemetry(run, attempt, int(rank))
    except OSError as error:
        _refuse(f"{error.filename}: cannot be written: {error.strerror}")
    telemetry.write(process_start("rank", telemetry.rank, None, attempt))
    stacks.answer_as_rank(str(run.stacks(attempt, telemetry.rank)))
    telemetry.phase("start")
    return telemetry


def process_start(role: str, rank: int, worker: int | None, attempt: int) -> events.ProcessStart:
    """The record that makes this process known as ours."""
    return events.ProcessStart(
        pid=os.getpid(),
        starttime=own_starttime(),
        ppid=os.getppid(),
        role=role,
        rank=rank,
        worker=worker,
        attempt=attempt,
        command=" ".join(sys.orig_argv),
    )


@dataclasses.dataclass(frozen=True)
class Rates:
    """What turns seconds into speeds, and nats per bit into bits per byte of text.
    peak_flops: of all ranks' devices together, None where it is not known. bits_a_byte: that
    the model sees of each byte."""

    tokens_a_step: int
    bits_a_byte: int
    flops_a_token: float
    peak_flops: float | None


@dataclasses.dataclass
class Window:
    """What happened since the last step record, to be told as means.

    losses: nats per bit over all ranks, of the steps that were taken. paused_s: time that no
    step is to be charged with (an evaluation, a checkpoint).
    """

    began: float = dataclasses.field(default_factory=time.monotonic)
    steps: int = 0
    losses: list[float] = dataclasses.field(default_factory=list)
    data_s: float = 0.0
    wait_s: float = 0.0
    paused_s: float = 0.0

    def told(self, rates: Rates, **facts: Any) -> events.Step:
        """The step record of this window; `facts` are the fields that are no means."""
        steps = max(self.steps, 1)
        step_s = max(time.monotonic() - self.began - self.paused_s, 1e-9) / steps
        tokens_per_s = rates.tokens_a_step / step_s
        loss = sum(self.losses) / len(self.losses) if self.losses else math.nan
        return events.Step(
            loss=loss,
            bits_per_byte=loss * rates.bits_a_byte / math.log(2),
            step_s=step_s,
            data_s=self.data_s / steps,
            wait_s=self.wait_s / steps,
            tokens_per_s=tokens_per_s,
            mfu=tokens_per_s * rates.flops_a_token / rates.peak_flops if rates.peak_flops else None,
            **facts,
        )


def _redirect(log: Path) -> None:
    """Sends everything this process and its workers print to `log`, a line at a time."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    for standard in (1, 2):
        os.dup2(fd, standard)
    os.close(fd)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]


def _refuse(text: str) -> NoReturn:
    print(f"train.py: {text}", file=sys.stderr)
    sys.exit(USAGE_ERROR)
