"""Reads the whole record of a run once: its state as every face folds it, its timeline, and
where in which file the things stand that a finding needs as evidence.

In bounded memory and a few seconds, also of a week: of the steps of rank 0 only some are looked
at more closely, of the other ranks' long files only the ends are read.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import msgspec

from bitwatch.record import codec, events
from bitwatch.record.aside import AsideReader
from bitwatch.record.follow import ASIDE_FILE, RANK_FILE, newest_accounts
from bitwatch.record.rundir import RunDir
from bitwatch.record.state import JOURNAL, RECENT_STEPS, SAMPLES, RunState, Source, fold
from bitwatch.record.unwritten import UNKNOWN
from bitwatch.report.model import Entry, Evidence
from bitwatch.report.record_lines import Lines
from bitwatch.report.record_story import Story
from bitwatch.report.record_timeline import Sampled, Timeline, kind_of
from bitwatch.report.record_words import words
from bitwatch.report.when import sane
from bitwatch.text import literal

STEP = b'{"kind":"step"'  # how a step record begins, as we write it
NOT_FINITE = b'"nonfinite"'
AT_ONCE = 4096  # step records that are looked at together
ENDS_BYTES = 2 << 20  # of the long file of a rank that is not the first
ACCOUNT_BYTES = 64 << 10  # of a reader's account or of samples: the newest record counts


class _Step(msgspec.Struct, tag_field="kind", tag="step"):
    """Of a step record, what is looked at in every one: three times as fast as the whole."""

    step: int = 0
    loss: float | None = None
    nonfinite: dict[str, str] | None = None


_quick = msgspec.json.Decoder(_Step)


class Record:
    """What the files of a run say. `prefix` comes before the names of its files, which are
    relative to its folder. `notes` say what could not be read."""

    def __init__(self, run: RunDir, prefix: str = "") -> None:
        self.run = run
        self.state = RunState()
        self.story = Story()
        self.timeline = Timeline()
        self.notes: list[str] = []
        self._prefix = prefix
        self._read_all()

    def source(self, path: Path) -> str:
        return f"{self._prefix}{path.relative_to(self.run.path)}"

    def _read_all(self) -> None:
        self._read(self.run.journal, JOURNAL)
        for attempt in self.run.attempts():
            folder = self.run.attempt(attempt)
            names = _names(folder)
            for name in sorted(names):
                path = folder / name
                if match := RANK_FILE.fullmatch(name):
                    self._read(path, Source("rank", attempt, int(match[1])))
                elif match := ASIDE_FILE.fullmatch(name):
                    self._read_aside(path, Source("unwritten", attempt, int(match[1])))
                elif name == self.run.prepare(attempt).name:
                    self._read(path, Source("prepare", attempt))
                elif name == self.run.history(attempt).name:
                    self._read(path, Source("history", attempt))
            for name in newest_accounts(_names(folder / "readers")):
                path = folder / "readers" / name
                self._read(path, Source("reader", attempt, name=name))
        if newest := max(_names(self.run.samples), default=""):
            self._read(self.run.samples / newest, SAMPLES)

    def _read_aside(self, path: Path, source: Source) -> None:
        """What a rank told beside its record; nearly always nothing."""
        told = AsideReader(path).read()
        for record in told:
            record.t = sane(record.t) or 0.0
        fold(self.state, source, told)
        word = self.state.unwritten_of(source.attempt).get(source.rank)
        if word is not None:
            name = self.source(self.run.rank(source.attempt, source.rank))
            self.notes.append(
                f"{name}: lacks {word.lost:,} records that could not be written "
                f"({literal(word.error) or UNKNOWN}); only the newest of them are known"
            )

    def _read(self, path: Path, source: Source) -> None:
        lines = Lines(path, _ends_bytes(source))
        name = self.source(path)
        steps = _Steps(name, self.story, source)
        strange: list[int] = []
        for first, block in lines:
            told: list[tuple[int, codec.Any_]] = []
            for number, line in enumerate(block, first):
                if line.startswith(STEP):
                    steps.take(number, line)
                elif line and not line.isspace():
                    record = codec.decode(line)
                    if record is None:
                        strange.append(number)
                    else:
                        told.append((number, record))
            self._take(told, source, name)
        strange += steps.tell(self.state, self.timeline)
        self._note(name, lines, strange)

    def _take(self, told: list[tuple[int, codec.Any_]], source: Source, name: str) -> None:
        for _, record in told:
            record.t = sane(record.t) or 0.0
        fold(self.state, source, (record for _, record in told))
        if source.kind in ("samples", "history"):
            return
        # Only rank 0 tells the story; of the others their last words.
        silent = source.kind == "reader" or source.rank > 0
        for line, record in told:
            kind = kind_of(record)
            if not kind and not isinstance(record, events.Minute | events.Reader):
                continue
            text = words(record)
            evidence = Evidence(source=name, line=line, text=text, t=sane(record.t))
            self.story.add(record, source, evidence)
            if text and kind and (not silent or isinstance(record, events.RankEnded)):
                self.timeline.add(kind, evidence)

    def _note(self, name: str, lines: Lines, strange: list[int]) -> None:
        if lines.trouble and not _is_missing(lines.path):
            self.notes.append(f"{name}: {lines.trouble}; it was left out")
        if many := len(strange) + lines.skipped:
            at = f", the first at line {min(strange):,}" if strange else ""
            what = "1 line is no record" if many == 1 else f"{many:,} lines are no records"
            self.notes.append(f"{name}: {what} that this version knows{at}; left out")
        if lines.torn:
            self.notes.append(
                f"{name}: its last line is torn: it is being written now, or its writer was "
                "killed or found the disk full"
            )


def _is_missing(path: Path) -> bool:
    """A file that is not there is empty: a run that never began has few."""
    return not path.exists() and not path.is_symlink()


def _ends_bytes(source: Source) -> int | None:
    if source.kind in ("reader", "samples"):
        return ACCOUNT_BYTES
    return ENDS_BYTES if source.kind == "rank" and source.rank else None


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


class _Steps:
    """The step records of one file: all are counted and looked at for what is not finite,
    few are decoded whole."""

    def __init__(self, name: str, story: Story, source: Source) -> None:
        self._name = name
        self._story = story
        self._source = source
        self._sampled = Sampled()
        self._recent: deque[bytes] = deque(maxlen=RECENT_STEPS)
        self._numbers: list[int] = []
        self._lines: list[bytes] = []
        self._strange: list[int] = []

    def take(self, number: int, line: bytes) -> None:
        self._numbers.append(number)
        self._lines.append(line)
        if len(self._lines) >= AT_ONCE:
            self._look()

    def _look(self) -> None:
        numbers, lines = self._numbers, self._lines
        self._numbers, self._lines = [], []
        whole = b"\n".join(lines)
        try:
            steps = _quick.decode_lines(whole)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError):
            steps, numbers, lines = self._one_by_one(numbers, lines)
        if NOT_FINITE in whole and not self._source.rank:
            for number, step in zip(numbers, steps, strict=True):
                if step.nonfinite and "loss" in step.nonfinite:
                    said = f"step {step.step:,}: the loss is {step.nonfinite['loss'][:20]}"
                    evidence = Evidence(source=self._name, line=number, text=said)
                    self._story.not_finite(self._source.attempt, evidence)
        self._sampled.add(numbers, lines)
        self._recent.extend(lines[-RECENT_STEPS:])

    def _one_by_one(
        self, numbers: list[int], lines: list[bytes]
    ) -> tuple[list[_Step], list[int], list[bytes]]:
        """Without those that are no record."""
        steps, good = [], []
        for number, line in zip(numbers, lines, strict=True):
            try:
                steps.append(_quick.decode(line))
                good.append((number, line))
            except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError):
                self._strange.append(number)
        return steps, [number for number, _ in good], [line for _, line in good]

    def tell(self, state: RunState, timeline: Timeline) -> list[int]:
        """Folds in the first and the newest, and has entries of some of them. The numbers of
        lines that were none."""
        if self._lines:
            self._look()
        if self._sampled.first is not None:
            self._fold(state)
            if not self._source.rank:
                self._tell(timeline)
        return self._strange

    def _fold(self, state: RunState) -> None:
        first = self._sampled.first
        ends = [first[1]] if first and self._sampled.count > len(self._recent) else []
        decoded = (codec.decode(line) for line in (*ends, *self._recent))
        steps = [record for record in decoded if isinstance(record, events.Step)]
        for step in steps:
            step.t = sane(step.t) or 0.0
        fold(state, self._source, steps)

    def _tell(self, timeline: Timeline) -> None:
        sampled = self._sampled
        entries = []
        for number, line in sampled.lines():
            record = codec.decode(line)
            if isinstance(record, events.Step):
                entries.append(
                    Entry(t=sane(record.t), source=self._name, line=number, text=words(record))
                )
        if entries:
            last = entries[-1]
            self._story.last_step(self._source.attempt, last)
            if sampled.count > 1:
                more = f" (the last of {sampled.count:,} step records)"
                entries[-1] = msgspec.structs.replace(last, text=last.text + more)
        timeline.add_steps(entries)
