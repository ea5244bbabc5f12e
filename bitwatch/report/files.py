"""Logs and listings of processes, read into evidence. In blocks: a log may have any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from bitwatch.attach import log_file, own_dialects
from bitwatch.attach.dialect_tables.rule import Rule
from bitwatch.attach.dialects import RULES, Listener
from bitwatch.attach.log_file import LogError, LogFile
from bitwatch.attach.said import Line
from bitwatch.attach.sieve import Sieve
from bitwatch.report import paths, processes_text
from bitwatch.report.facts import FileSeen, Gathered, LogSeen, Unreadable
from bitwatch.report.keep import Keeper
from bitwatch.report.starts import Around
from bitwatch.strict import ConfigError
from bitwatch.text import counted

END_BYTES = 256 << 10  # that is always heard, whatever stands before it
FLOOD_LINES = 150_000  # of one log that say something: some seconds of work
FLOODS = ("step", "warning", "error", "exception", "evaluation")
MOST_LISTING_BYTES = 64 << 20


def gather(words: Sequence[str]) -> Gathered:
    """What the files and folders of these names tell. Their order makes no difference."""
    return read(paths.look(words))


def read(found: paths.Found) -> Gathered:
    gathered = Gathered(
        folders=found.folders, unreadable=found.unreadable, notes=found.notes, files=found.files
    )
    own = _own(gathered) if any(file.kind == "log" for file in found.files) else ()
    for file in found.files:
        if file.kind == "log":
            _log(file, gathered, own)
    # What a listing leaves out of its times is taken from the logs, so these come first.
    times = [t for log in gathered.logs for t in (log.begins, log.ends) if t is not None]
    for file in found.files:
        if file.kind == "processes":
            _listing(file, gathered, times)
    return gathered


def _own(gathered: Gathered) -> tuple[Rule, ...]:
    """What the user has added to the dialects. A file with a mistake is said, and passed by."""
    try:
        own = own_dialects.load()
    except ConfigError as error:
        gathered.notes.append(f"{error}; the logs were read without your own dialects")
        return ()
    if own:
        many = counted(len(own), "own dialect")
        gathered.notes.append(f"{own_dialects.path()}: {many} heard in the logs as well")
    return own


def _log(file: FileSeen, gathered: Gathered, own: Sequence[Rule]) -> None:
    try:
        log = heard(file, own)
    except LogError as error:
        _unreadable(file, error, gathered)
        return
    if log.said:
        gathered.logs.append(log)
    else:
        gathered.notes.append(f"{file.path}: says nothing of a training that is understood")
    if log.flooded:
        gathered.notes.append(
            f"{file.path}: says so much that of its later warnings, errors and steps only those "
            "at its end were heard"
        )
    if log.left_out:
        gathered.notes.append(
            f"{file.path}: {log.left_out:,} more lines say what earlier ones say and are left out"
        )


class Narrowing(Sieve):
    """Passes what another sieve does, until that is so much that warnings, errors or tracebacks
    must be most of the log; from then on only what is rare in any log: targets, counts, ends.
    Where a rule of the user lets each line pass, what the lines say is counted instead of them.
    """

    def __init__(self, wide: Sieve, own: Sequence[Rule] = ()) -> None:
        rules = (*own, *RULES)
        super().__init__((rule.word for rule in rules if rule.what not in FLOODS), ())
        self._wide: Sieve | None = wide
        self._all_pass = any(not rule.word for rule in own)
        self._lines = 0
        self.newest = 0  # the number of the last line that passed

    @property
    def flooded(self) -> bool:
        return self._wide is None

    def spans(self, block: bytes) -> list[tuple[int, int]]:
        return super().spans(block) if self._wide is None else self._wide.spans(block)

    def passed(self, lines: Sequence[Line], said: int) -> None:
        self._lines += said if self._all_pass else len(lines)
        if lines:
            self.newest = lines[-1].number
        if self._lines > FLOOD_LINES:
            self._wide = None


def heard(file: FileSeen, own: Sequence[Rule] = ()) -> LogSeen:
    """Raises LogError."""
    path = Path(file.path)
    log = LogSeen(path=file.path, modified=file.modified, size=file.size)
    listener = Listener(own)
    keeper = Keeper(log)
    sieve = Narrowing(listener.sieve(file.size), own)
    for lines in log_file.pieces(path, 0, file.size, sieve):
        told = listener.hear(lines)
        sieve.passed(lines, len(told))
        for said in told:
            keeper.hear(said)
    end = _end(path)
    if sieve.flooded:
        for said in listener.hear(line for line in end if line.number > sieve.newest):
            keeper.hear(said)
    for said in listener.end():
        keeper.hear(said)
    keeper.end(end[-1].number if end else 0)
    log.flooded = sieve.flooded
    log.first, log.last = _first(file.path), end[-1] if end else None
    log.lines = log.last.number if log.last else 0
    times = [line.t for line in (log.first, log.last) if line is not None and line.t is not None]
    log.begins = min([*times, *([log.begins] if log.begins is not None else [])], default=None)
    log.ends = max([*times, *([log.ends] if log.ends is not None else [])], default=None)
    return log


def _first(path: str) -> Line | None:
    return next(iter(paths.beginning(path)), None)


def _end(path: Path) -> list[Line]:
    end = LogFile(path, newest_bytes=END_BYTES)
    lines = [line for line in end.new(final=True) if line.text.strip()]
    end.close()
    return lines


def _listing(file: FileSeen, gathered: Gathered, times: Sequence[float]) -> None:
    try:
        listing, processes = processes_text.read(
            _lines(file), file.path, Around(file.modified, times)
        )
    except LogError as error:
        _unreadable(file, error, gathered)
        return
    if file.size > MOST_LISTING_BYTES:
        listing.notes.append(f"{file.path}: only its beginning was read, it is so long")
    gathered.listings.append(listing)
    gathered.processes += processes


def _lines(file: FileSeen) -> Iterator[Line]:
    end = min(file.size, MOST_LISTING_BYTES)
    return chain.from_iterable(log_file.pieces(Path(file.path), 0, end))


def _unreadable(file: FileSeen, error: LogError, gathered: Gathered) -> None:
    why = str(error).removeprefix(f"{file.path}: ")
    gathered.unreadable.append(Unreadable(path=file.path, why=why))
