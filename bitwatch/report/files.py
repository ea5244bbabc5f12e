"""Logs and listings of processes, read into evidence. In blocks: a log may have any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from bitwatch.attach import log_file
from bitwatch.attach.dialects import Listener
from bitwatch.attach.log_file import LogError, LogFile
from bitwatch.attach.said import Line
from bitwatch.report import paths, processes_text
from bitwatch.report.facts import FileSeen, Gathered, LogSeen, Unreadable
from bitwatch.report.keep import Keeper
from bitwatch.report.starts import Around

END_BYTES = 64 << 10  # in which the last line lies
MOST_LISTING_BYTES = 64 << 20


def gather(words: Sequence[str]) -> Gathered:
    """What the files and folders of these names tell. Their order makes no difference."""
    return read(paths.look(words))


def read(found: paths.Found) -> Gathered:
    gathered = Gathered(
        folders=found.folders, unreadable=found.unreadable, notes=found.notes, files=found.files
    )
    for file in found.files:
        if file.kind == "log":
            _log(file, gathered)
    # What a listing leaves out of its times is taken from the logs, so these come first.
    times = [t for log in gathered.logs for t in (log.begins, log.ends) if t is not None]
    for file in found.files:
        if file.kind == "processes":
            _listing(file, gathered, times)
    return gathered


def _log(file: FileSeen, gathered: Gathered) -> None:
    try:
        log = heard(file)
    except LogError as error:
        _unreadable(file, error, gathered)
        return
    if log.said:
        gathered.logs.append(log)
    else:
        gathered.notes.append(f"{file.path}: says nothing of a training that is understood")
    if log.left_out:
        gathered.notes.append(
            f"{file.path}: {log.left_out:,} more lines say what earlier ones say and are left out"
        )


def heard(file: FileSeen) -> LogSeen:
    """Raises LogError."""
    path = Path(file.path)
    log = LogSeen(path=file.path, modified=file.modified, size=file.size)
    listener = Listener()
    keeper = Keeper(log)
    for lines in log_file.pieces(path, 0, file.size, listener.sieve()):
        for said in listener.hear(lines):
            keeper.hear(said)
    for said in listener.end():
        keeper.hear(said)
    keeper.end()
    log.first, log.last = _first(file.path), _last(path)
    log.lines = log.last.number if log.last else 0
    times = [line.t for line in (log.first, log.last) if line is not None and line.t is not None]
    log.begins = min([*times, *([log.begins] if log.begins is not None else [])], default=None)
    log.ends = max([*times, *([log.ends] if log.ends is not None else [])], default=None)
    return log


def _first(path: str) -> Line | None:
    return next(iter(paths.beginning(path)), None)


def _last(path: Path) -> Line | None:
    end = LogFile(path, newest_bytes=END_BYTES)
    lines = [line for line in end.new(final=True) if line.text.strip()]
    end.close()
    return lines[-1] if lines else None


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
