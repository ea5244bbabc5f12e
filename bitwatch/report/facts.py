"""What all kinds of evidence are turned into before anything is concluded from it.

Pure values: a log, a listing of processes, a file with its time, an attempt. Whoever reads a
kind of evidence fills a `Gathered`; what is concluded from it knows nothing of how it was read.
"""

from __future__ import annotations

import math

import msgspec

from bitwatch.attach.said import Line, Said
from bitwatch.report.model import Entry, Evidence, Finding
from bitwatch.report.standard_model import MOST_RANKS


class StepRun(msgspec.Struct, kw_only=True):
    """Steps that follow one another in a log without falling back: kept as their ends, because
    a log may have millions, and of a large one only some are heard. `fell_back`: the number before its first one was higher."""

    first: Said
    last: Said
    count: int = 1
    fell_back: bool = False
    nonfinite: Said | None = None  # the first of its last losses that are not numbers
    finite_again: Said | None = None  # the first loss after those that is one


class LogSeen(msgspec.Struct, kw_only=True):
    """One log. `said` has what it says besides its steps, in the order of its lines, and each
    StepRun where it begins. `mixed`: lines that show that two trainings write into it."""

    path: str
    modified: float | None = None  # of the file, wall clock
    size: int = 0
    lines: int = 0
    first: Line | None = None
    last: Line | None = None
    begins: float | None = None  # the first and the last time that its lines bear
    ends: float | None = None
    said: list[Said | StepRun] = []
    went_on: dict[int, Said] = {}  # by the line of an end: a step that shows it was none
    buffered: dict[int, Said] = {}  # the same, where the step may have waited in a buffer
    mixed: list[Line] = []
    backwards: tuple[Line, Line] | None = None  # two lines, the later one with an earlier time
    left_out: int = 0  # of what it says, where that is too much to keep
    flooded: bool = False  # of its later warnings, errors and steps only the last were heard


class ProcessSeen(msgspec.Struct, kw_only=True):
    """One process, as a listing, a record or the machine shows it. `started` is wall clock,
    None where it is not shown; it may have been up to `within_s` later: listings round down.
    `alive` None where nobody looked since. `inferred` says what of the start is not in the
    listing, half a sentence."""

    pid: int
    started: float | None = None
    within_s: float = 1.0
    command: str = ""
    source: str = ""
    line: int | None = None
    text: str = ""
    alive: bool | None = None
    parent: int | None = None
    state: str = ""
    user: str = ""
    rank: int | None = None
    role: str = "other"
    inferred: str = ""


class ListingSeen(msgspec.Struct, kw_only=True):
    """A listing of processes as a file. `taken`: when, as far as its file's time says."""

    path: str
    taken: float | None = None
    processes: int = 0
    prose: list[Line] = []  # lines that are no process, as "... hundreds more"
    notes: list[str] = []


class FileSeen(msgspec.Struct, kw_only=True, frozen=True):
    """`kind`: "log", "processes", "record" (the folder of a run of ours), "results",
    "checkpoint", "empty", "binary", "text" (which says nothing of a training)."""

    path: str
    kind: str
    modified: float | None = None
    size: int = 0


class FolderSeen(msgspec.Struct, kw_only=True):
    """A folder that was looked through, and what is not in it."""

    path: str
    files: int = 0
    absent: list[str] = []
    left_out: list[str] = []


class Unreadable(msgspec.Struct, kw_only=True, frozen=True):
    """`why`: half a sentence, as "is a pipe"."""

    path: str
    why: str


class Gathered(msgspec.Struct, kw_only=True):
    """All evidence of one report, before anything is concluded. What explains itself (a record)
    brings its entries, findings and sentences along."""

    about: list[str] = []
    logs: list[LogSeen] = []
    listings: list[ListingSeen] = []
    processes: list[ProcessSeen] = []
    files: list[FileSeen] = []
    folders: list[FolderSeen] = []
    unreadable: list[Unreadable] = []
    notes: list[str] = []
    timeline: list[Entry] = []
    findings: list[Finding] = []
    shown: list[str] = []
    likely: list[str] = []
    unknown: list[str] = []


class Attempt(msgspec.Struct, kw_only=True):
    """One attempt of a training, as a log tells it. `why`: what shows that it begins here."""

    number: int
    begins: Line
    why: str = ""
    last: Line
    target: Said | None = None
    built: list[Said] = []
    configuration: Said | None = None
    hardware: Said | None = None
    loop: Said | None = None  # its training loop begins
    steps: list[StepRun] = []
    again: list[Said] = []  # steps that begin anew: of an epoch or of a restart
    evaluations: int = 0
    checkpoint: Said | None = None  # the last
    shards: list[Said] = []  # warnings of workers that exceed shards
    problems: list[Said] = []  # failures, exceptions, time-outs, signals, lack of memory
    warnings: list[Said] = []
    restart: Said | None = None  # by which it begins
    done: Said | None = None
    processes: list[ProcessSeen] = []  # that began with it

    @property
    def gpus(self) -> int | None:
        """How many its log names, if that can be; torchrun starts a rank on each."""
        count = self.hardware.values.get("gpus") if self.hardware else None
        if not isinstance(count, int | float) or not 1 <= count <= MOST_RANKS:
            return None
        return int(count)

    @property
    def last_step(self) -> Said | None:
        return self.steps[-1].last if self.steps else None


class Story(msgspec.Struct, kw_only=True):
    """One log, or several that continue each other, told as attempts."""

    logs: list[LogSeen]
    attempts: list[Attempt] = []
    mixed: list[Line] = []


def position_of(said: Said) -> float | None:
    """How far the training is: its step, else its epoch."""
    for name in ("step", "epoch"):
        value = said.values.get(name)
        if isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    return None


def of_line(line: Line) -> Evidence:
    return Evidence(source=line.source, line=line.number or None, text=line.text, t=line.t)


def of_process(process: ProcessSeen) -> Evidence:
    return Evidence(
        source=f"process {process.pid}", text=process.text or process.command, t=process.started
    )
