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
from bitwatch.record.follow import RANK_FILE, newest_accounts
from bitwatch.record.rundir import RunDir
from bitwatch.record.state import JOURNAL, RECENT_STEPS, SAMPLES, RunState, Source, fold
from bitwatch.report.model import Entry, Evidence
from bitwatch.report.record_lines import Lines
from bitwatch.report.record_story import Story
from bitwatch.report.record_timeline import Sampled, Timeline
from bitwatch.report.record_words import words
from bitwatch.report.when import sane

STEP = b'{"kind":"step"'  # how a step record begins, as we write it
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
                elif name == self.run.prepare(attempt).name:
                    self._read(path, Source("prepare", attempt))
                elif name == self.run.history(attempt).name:
                    self._read(path, Source("history", attempt))
            for name in newest_accounts(_names(folder / "readers")):
                path = folder / "readers" / name
                self._read(path, Source("reader", attempt, name=name))
        if newest := max(_names(self.run.samples), default=""):
            self._read(self.run.samples / newest, SAMPLES)

    def _read(self, path: Path, source: Source) -> None:
        lines = Lines(path, _ends_bytes(source))
        name = self.source(path)
        steps = _Steps(name, self.story, source)
        strange, first_strange = 0, 0
        for number, line in lines:
            if line.startswith(STEP) and steps.take(number, line):
                continue
            record = codec.decode(line)
            if record is None:
                strange, first_strange = strange + 1, first_strange or number
                continue
            record.t = sane(record.t) or 0.0
            self._take(record, source, name, number)
        steps.tell(self.state, self.timeline)
        self._note(name, lines, strange, first_strange)

    def _take(self, record: codec.Any_, source: Source, name: str, line: int) -> None:
        fold(self.state, source, [record])
        if source.kind in ("samples", "history"):
            return
        text = words(record)
        evidence = Evidence(source=name, line=line, text=text, t=sane(record.t))
        self.story.add(record, source, evidence)
        # Only rank 0 tells the story; of the others their last words.
        if source.kind != "reader" and (not source.rank or isinstance(record, events.RankEnded)):
            self.timeline.add(record, name, line)

    def _note(self, name: str, lines: Lines, strange: int, first: int) -> None:
        if lines.trouble and not _is_missing(lines.path):
            self.notes.append(f"{name}: {lines.trouble}; it was left out")
        if strange + lines.skipped:
            at = f", the first at line {first}" if first else ""
            many = strange + lines.skipped
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

    def take(self, number: int, line: bytes) -> bool:
        """False for what is no step record."""
        try:
            step = _quick.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError):
            return False
        self._sampled.add(number, line)
        self._recent.append(line)
        if step.nonfinite and "loss" in step.nonfinite and not self._source.rank:
            said = f"step {step.step:,}: the loss is {step.nonfinite['loss'][:20]}"
            evidence = Evidence(source=self._name, line=number, text=said)
            self._story.not_finite(self._source.attempt, evidence)
        return True

    def tell(self, state: RunState, timeline: Timeline) -> None:
        """Folds in the first and the newest, and has entries of some of them."""
        sampled = self._sampled
        if sampled.first is None:
            return
        ends = [sampled.first[1]] if sampled.count > len(self._recent) else []
        decoded = (codec.decode(line) for line in (*ends, *self._recent))
        steps = [record for record in decoded if isinstance(record, events.Step)]
        for step in steps:
            step.t = sane(step.t) or 0.0
        fold(state, self._source, steps)
        if self._source.rank:
            return
        self._story.steps(self._source.attempt, sampled.count)
        entries = []
        for number, line in sampled.lines():
            record = codec.decode(line)
            if isinstance(record, events.Step):
                entries.append(
                    Entry(t=sane(record.t), source=self._name, line=number, text=words(record))
                )
        timeline.add_steps(entries)
