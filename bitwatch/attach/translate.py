"""What the log of a training says, as records of the kinds that a rank and its supervisor write:
so that the same fold and the same screen show a training that bitwatch did not start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from bitwatch.attach.dialect_tables.numbers import rounded_to
from bitwatch.attach.last_words import FAILURES, LastWords, cause
from bitwatch.attach.said import Said
from bitwatch.attach.steps import CLOCKS_S, Restart, Steps
from bitwatch.record import events

MOST_NOTES = 60  # of one attempt: a log may warn at every step
NOTE_CHARACTERS = 400
SPOKEN = ("warning", "error", "configuration", "hardware", "signal")

Told = events.Record | Restart


class Translator:
    """Of one log. `hear` gives records in order; after a Restart those of the next attempt.
    An `events.Alert` is for the journal, all others are rank 0's. `ranks` is how many there
    are, by their environment; 0 where only the log could say it."""

    def __init__(self, ranks: int = 0) -> None:
        self.ranks = ranks
        self.target: int | None = None
        self.steps = Steps()
        self.words = LastWords()
        self._built: events.ModelBuilt | None = None
        self._in_training = False
        self._notes: set[str] = set()
        self._behind_s = 0.0  # that the log's clock lies behind ours

    def hear(self, said: Sequence[Said], read_at: float, *, live: bool = False) -> Iterator[Told]:
        """`read_at`: when the lines were read, or the time at which their file was last written
        when all of them had been there before. `live`: they have been written just now."""
        for one in self._by_our_clock(said, read_at) if live else said:
            yield from self._hear(one, read_at)

    def _by_our_clock(self, said: Sequence[Said], read_at: float) -> Iterable[Said]:
        """With times that are right here: a container may write those of another zone. What the
        newest of the lines is off by holds for all of them, so that they stay as far apart."""
        newest = next((one.line.t for one in reversed(said) if one.line.t is not None), None)
        if newest is None:
            return said
        if abs(read_at - newest) <= CLOCKS_S:
            behind_s = 0.0
        elif abs(read_at - newest - self._behind_s) <= CLOCKS_S:
            behind_s = self._behind_s
        else:
            behind_s = read_at - newest
        if behind_s != self._behind_s:
            self._behind_s = behind_s
            self.steps.forget_times()
        return [_later(one, behind_s) for one in said] if behind_s else said

    def _hear(self, said: Said, read_at: float) -> Iterator[Told]:
        t = said.line.t if said.line.t is not None and said.line.t <= read_at else read_at
        if said.what == "step":
            yield from self._step(said, read_at)
        elif said.what == "restart" and self._in_training:
            ended = self._begin_anew()
            yield Restart("its launcher starts its ranks again", ended)
            yield self._note(said, t, "warning", said.line.text)
        elif said.what == "begins":
            self.words.hear(said)
            self.steps.hinted = self._in_training
        elif said.what == "evaluation":
            yield self._evaluation(said, t)
        elif said.what == "checkpoint":
            step = said.values.get("step")
            path = str(said.values.get("path") or "")
            yield events.Checkpoint(t=t, step=int(step or self._reached()), path=path)
        elif said.what in ("target", "built"):
            yield from self._counted(said, t)
        elif said.what == "workers-exceed-shards":
            yield _too_many_workers(said, t)
        else:
            self.words.hear(said)
            yield from self._spoken(said, t)

    def _begin_anew(self) -> tuple[events.EndState, str] | None:
        ended = self.words.verdict()
        total, may = self.steps.total, self.steps.may_restart
        self.steps, self.words = Steps(), LastWords()
        self.steps.total, self.steps.may_restart = total, may
        self._in_training = False
        self._notes = set()
        return ended

    def _reached(self) -> int:
        return self.steps.newest.step if self.steps.newest else 0

    def _step(self, said: Said, read_at: float) -> Iterator[Told]:
        told = self.steps.take(said, read_at)
        if isinstance(told, Restart):
            yield told._replace(ended=self._begin_anew())
            told = self.steps.take(said, read_at)
        self.words.hear(said)
        if isinstance(told, events.Step):
            if not self._in_training:
                self._in_training = True
                if self._built is not None:  # a new attempt builds it again, without a word
                    yield self._model(self._built.built, self._built.within, told.t)
                yield events.Phase(t=told.t, name="train")
            yield told

    def _evaluation(self, said: Said, t: float) -> events.Evaluation:
        step, loss = said.values.get("step"), said.values.get("loss")
        return events.Evaluation(
            t=t,
            step=int(step) if isinstance(step, int | float) else self._reached(),
            loss=float(loss) if isinstance(loss, int | float) else None,
        )

    def _counted(self, said: Said, t: float) -> Iterator[Told]:
        """Parameters. One rank's part of them is never taken for the model."""
        count = int(said.values["parameters"])
        if said.what == "target":
            before, self.target = self.target, count
            if before is not None and before != count:
                text = f"the log names another target: {count:,} parameters, {before:,} before"
                yield self._note(said, t, "warning", text)
            return
        if said.values.get("shard") or self._is_flat_shard(count):
            whole = f" of {self.target:,}" if self.target else ""
            text = f"{count:,} parameters are one rank's part{whole}, not the whole model"
            yield self._note(said, t, "info", text)
            return
        if self._built is None or count > self._built.built:  # the smaller ones are parts of it
            self._built = self._model(count, rounded_to(said.line.text, count), t)
            yield self._built

    def _model(self, count: int, within: int, t: float) -> events.ModelBuilt:
        ranks = self.ranks or 1
        return events.ModelBuilt(t=t, asked=self.target, built=count, within=within, ranks=ranks)

    def _is_flat_shard(self, count: int) -> bool:
        """Whether it is what FSDP1 prints after wrapping: the whole, divided and rounded up."""
        ranks = self.ranks
        return bool(self.target) and ranks > 1 and count == -(-(self.target or 0) // ranks)

    def _spoken(self, said: Said, t: float) -> Iterator[Told]:
        if said.what in FAILURES and said.what != "signal":
            yield self._note(said, t, "error", cause(said))
        elif said.what == "done":
            yield self._note(said, t, "info", said.line.text)
        elif said.what in SPOKEN:
            gpus = said.values.get("gpus")
            if said.what == "hardware" and not self.ranks and isinstance(gpus, int | float):
                self.ranks = int(gpus)
            shape = re.sub(r"\d+", "0", said.line.text)  # the same but for its numbers is the same
            if shape not in self._notes and len(self._notes) < MOST_NOTES:
                self._notes.add(shape)
                known: dict[str, events.Severity] = {"warning": "warning", "error": "error"}
                yield self._note(said, t, known.get(said.what, "info"), said.line.text)

    def _note(self, said: Said, t: float, severity: events.Severity, text: str) -> events.Note:
        where = f" (line {said.line.number:,})" if said.line.number else ""
        return events.Note(t=t, text=f"{text[:NOTE_CHARACTERS]}{where}", severity=severity)


def _later(said: Said, seconds: float) -> Said:
    t = said.line.t
    return said if t is None else said._replace(line=said.line._replace(t=t + seconds))


def _too_many_workers(said: Said, t: float) -> events.Alert:
    workers, shards = said.values.get("workers"), said.values.get("shards")
    text = "the data has fewer shards than a rank has workers: some of them never read anything"
    if workers is not None and shards is not None:
        text = f"{workers} workers for {shards} shards: the others never read anything"
    number = f", line {said.line.number:,}" if said.line.number else ""
    return events.Alert(
        t=t,
        id="workers-exceed-shards",
        severity="warning",
        text=text,
        evidence=[f"{said.line.text} ({said.line.source or 'its log'}{number})"],
        next="fewer workers, or data in more shards; that alone does not end a training",
    )
