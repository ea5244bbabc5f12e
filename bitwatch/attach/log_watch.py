"""The logs of one training, followed together: the likeliest that tells of steps leads, and of
the others only what it may not have said counts."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bitwatch import small, utf8
from bitwatch.attach import own_dialects
from bitwatch.attach.dialects import Listener
from bitwatch.attach.log_file import LogFile
from bitwatch.attach.said import Line
from bitwatch.attach.steps import Restart
from bitwatch.attach.translate import Told, Translator
from bitwatch.record import events, rundir
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.sense.training import Log
from bitwatch.strict import ConfigError

NEWEST_BYTES = 256 << 10  # of a log, read first: many screens full
BLOCK_BYTES = 1 << 20  # of new lines, read at a time: what grows faster is read on at the next look
MOST = 8  # logs
LATE_S = 5.0  # in which the last lines of ranks that have ended are read after others were seen
OF_STEPS = (events.Step, events.Phase, events.Evaluation, Restart)
RANK = re.compile(r"\brank (\d+)\b")


class Place(msgspec.Struct):
    """How far a log has been read: for who watches next."""

    inode: int = 0
    offset: int = 0


class WatchedLog:
    """One log: its lines, and what they say as records. `gap` is what lies before the first
    line that was read, to be read later."""

    def __init__(self, path: Path, ranks: int, place: Place | None = None) -> None:
        self.path = path
        self.translator = Translator(ranks)
        self.last_line = ""
        self.grew_at: float | None = None
        status = _status(path)
        newest, self._from = NEWEST_BYTES, 0
        if status and place and place.inode == status.st_ino and place.offset <= status.st_size:
            self._from = max(0, place.offset - 1)  # the newline before what is new
            newest = min(NEWEST_BYTES, max(1, status.st_size - self._from))
        self._file = LogFile(path, newest)
        self._listener = listener()
        self._fresh = True
        self._late_until = 0.0

    @property
    def place(self) -> Place:
        status = _status(self.path)
        return Place(status.st_ino if status else 0, self._file.offset)

    @property
    def is_fresh(self) -> bool:
        """Whether nothing of it was read yet."""
        return self._fresh

    @property
    def trouble(self) -> str:
        return self._file.trouble

    @property
    def gap(self) -> tuple[int, int] | None:
        gap = self._file.gap
        return (max(gap[0], self._from), gap[1]) if gap and gap[1] > self._from + 1 else None

    def may_restart(self) -> None:
        """Steps that fall back are of a new attempt, until others have been taken."""
        self.translator.steps.may_restart = True
        self._late_until = time.monotonic() + LATE_S

    def new(self, *, final: bool = False, ranks_known: bool = False) -> list[Told]:
        """What its new lines say. Those that were there before somebody watched are as old as
        the file, and may be of an earlier training: the first step after them tells. While the
        ranks are known to be the same, steps that fall back later are those of another epoch."""
        read_at = time.time()
        if self._fresh:
            status = _status(self.path)
            read_at = min(read_at, status.st_mtime) if status else read_at
        renewed = self._file.renewed
        lines = self._file.new(final=final, most_bytes=BLOCK_BYTES)
        if self._file.renewed != renewed:
            self.translator.steps.may_restart = True
        if lines:
            self.grew_at = read_at
            self.last_line = _last(lines) or self.last_line
        said = self._listener.hear(lines)
        if final:
            said = [*said, *self._listener.end()]
        found = list(self.translator.hear(said, read_at, live=not self._fresh))
        if any(isinstance(told, Restart) for told in found):
            self._late_until = 0.0
        stepped = any(isinstance(told, events.Step) for told in found)
        settled = ranks_known and time.monotonic() >= self._late_until
        if stepped and settled and not self._fresh:
            self.translator.steps.may_restart = False
        self._fresh = self._fresh and not (lines or final)
        return found

    def close(self) -> None:
        self._file.close()


class LogWatch:
    def __init__(self, run: RunDir, ranks: int, last_step: int) -> None:
        self._run = run
        self.ranks = ranks
        self._last_step = last_step
        self.known_places = _read_places(run)
        self._said: set[tuple[str, str]] = set()
        self.logs: dict[str, WatchedLog] = {}
        self.ranks_known = False  # which processes they are, so that others are seen

    def add(self, logs: Iterable[Log], attempt: int) -> None:
        """Those that are not followed yet; in the attempt's folder of logs they have a link."""
        for log in logs:
            if log.path in self.logs or len(self.logs) >= MOST:
                continue
            path = Path(log.opened if log.deleted else log.path)
            place = self.known_places.get(log.path)
            one = WatchedLog(path, self.ranks, place)
            if place and self._last_step and not self.logs:
                one.translator.steps.go_on_from(self._last_step)
            self.logs[log.path] = one
            link(self._run, attempt, log, path)

    def new(self, *, final: bool = False) -> Iterator[Told]:
        """What is new in all of them."""
        known = self.ranks_known
        told = [(log, log.new(final=final, ranks_known=known)) for log in self.logs.values()]
        leading = self.leading
        for log, records in told:
            for record in records:
                if isinstance(record, OF_STEPS) and log is not leading:
                    continue
                if not self._was_said(record):
                    yield record

    def _was_said(self, record: Told) -> bool:
        """Two logs may say the same, each with its own line's number."""
        match record:
            case events.Note() | events.Alert():
                words = record.text.rpartition(" (line ")[0] or record.text
            case events.ModelBuilt():
                words = f"{record.built}"
            case _:
                return False
        known = (type(record).__name__, words) in self._said
        self._said.add((type(record).__name__, words))
        return known

    def begin_attempt(self, attempt: int) -> None:
        self._said.clear()
        for path, log in self.logs.items():
            link(self._run, attempt, Log(path, str(log.path), 0, ""), log.path)

    @property
    def leading(self) -> WatchedLog | None:
        """Whose steps count."""
        steps = [log for log in self.logs.values() if log.translator.steps.newest]
        with_loss = [
            log
            for log in steps
            if (newest := log.translator.steps.newest) and newest.loss is not None
        ]
        return next(iter(with_loss or steps or self.logs.values()), None)

    def know_ranks(self, ranks: int) -> None:
        """How many there are, which may become known only after a log has been read."""
        if ranks and ranks != self.ranks:
            self.ranks = ranks
            for log in self.logs.values():
                log.translator.ranks = ranks

    def may_restart(self) -> None:
        """Its ranks are others than before: steps that fall back are of a new attempt."""
        for log in self.logs.values():
            log.may_restart()

    def verdict(self) -> tuple[events.EndState, str] | None:
        """How it ended: a failure in any of them counts before the word that it is done."""
        found = [v for log in self.logs.values() if (v := log.translator.words.verdict())]
        order = ("failed", "stopped", "done")
        return min(found, key=lambda one: order.index(one[0]), default=None)

    def last_line(self) -> str:
        leading = self.leading
        lines = [leading.last_line] if leading else []
        lines += [log.last_line for log in self.logs.values()]
        return next((line for line in lines if line), "")

    @property
    def grew_at(self) -> float:
        return max((log.grew_at or 0.0 for log in self.logs.values()), default=0.0)

    @property
    def troubles(self) -> list[str]:
        """Why logs cannot be read as they were, a sentence each that begins with the path."""
        return [log.trouble for log in self.logs.values() if log.trouble]

    def save_places(self) -> None:
        """Of one that was not read yet the place stays that of who watched before: none is not
        the same as the beginning, which says that all before it is on record."""
        read = {path: log.place for path, log in self.logs.items() if not log.is_fresh}
        places = {**self.known_places, **read}
        with contextlib.suppress(OSError):  # a full disk: the next one reads more than it needs
            rundir.write_whole(_places_file(self._run), utf8.to_json(places))

    def close(self) -> None:
        self.save_places()
        for log in self.logs.values():
            log.close()


def listener() -> Listener:
    """With what the user has added, if that can be read."""
    try:
        return Listener(own_dialects.load())
    except ConfigError:
        return Listener()


def link(run: RunDir, attempt: int, log: Log, target: Path) -> None:
    """A name in the attempt's folder by which key l and `bitwatch logs` find it."""
    folder = run.logs(attempt)
    rank = RANK.search(log.how)
    stem = f"rank{rank[1]}" if rank else Path(log.path).stem
    if "launcher" in log.how:
        stem = "launcher"
    stem = re.sub(r"[^\w.-]+", "-", stem.removesuffix(" (deleted)")) or "log"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        there = {os.readlink(path) for path in folder.iterdir() if path.is_symlink()}
        if str(target) in there:
            return
        for more in ("", *(f"-{number}" for number in range(2, MOST + 2))):
            with contextlib.suppress(FileExistsError):
                (folder / f"{stem}{more}.log").symlink_to(target)
                return


def _last(lines: list[Line]) -> str:
    return next((line.text.strip() for line in reversed(lines) if line.text.strip()), "")


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _places_file(run: RunDir) -> Path:
    return run.path / "watched.json"


def _read_places(run: RunDir) -> dict[str, Place]:
    try:
        return msgspec.json.decode(small.read(_places_file(run)), type=dict[str, Place])
    except (OSError, msgspec.MsgspecError, RunDirError):
        return {}
