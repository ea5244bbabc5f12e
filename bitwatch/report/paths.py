"""What lies at the paths that a person names, and in folders: found, told apart, never waited for.

Only ordinary files are opened. A folder is looked through to a depth and a number; checkpoints
and what has nothing to say are passed by, and what else was left out is said.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bitwatch.attach import log_file
from bitwatch.attach.log_file import LogError
from bitwatch.attach.said import Line
from bitwatch.report import processes_text
from bitwatch.report.facts import FileSeen, FolderSeen, Unreadable
from bitwatch.text import counted, size

DEEPEST = 4  # folders below the one that is named
MOST_ENTRIES = 20_000  # of one folder and all below it
MOST_LOGS = 200
MOST_BYTES = 4 << 30  # of all logs of one folder
SAMPLE_BYTES = 64 << 10
NAMED_LEFT_OUT = 5

LOG = re.compile(
    r"\.(?:log|out|err|txt|stdout|stderr)(?:[.-]\d+)*$|(?:^|[._-])(?:log|ps|nohup|stdout|stderr|"
    r"processes)(?:[._-]|$)",
    re.IGNORECASE,
)
NO_LOG = re.compile(r"\.(?:py|md|toml|ya?ml|json|jsonl|csv|html|sh|ipynb|parquet|arrow)$", re.I)
PACKED = re.compile(r"\.(?:gz|xz|bz2|zst|zip|tar|tgz)$", re.IGNORECASE)
RESULTS = re.compile(r"result|metrics.*\.json|summary.*\.json", re.IGNORECASE)
CHECKPOINT = re.compile(
    r"^(?:checkpoint|ckpt|global_step|step)[-_]?s?\d*$|\.(?:pt|pth|ckpt|safetensors|distcp|bin)$",
    re.IGNORECASE,
)
PASSED_BY = re.compile(r"^\.|^(?:__pycache__|node_modules|site-packages|venv)$")


class Found(msgspec.Struct, kw_only=True):
    """`records`: folders of runs of ours, which explain themselves."""

    files: list[FileSeen] = []
    folders: list[FolderSeen] = []
    records: list[str] = []
    unreadable: list[Unreadable] = []
    notes: list[str] = []


def look(words: Sequence[str]) -> Found:
    """A file that is named twice, or lies in a folder that is named too, counts once, under the
    first of its names: the order of the words makes no difference."""
    found = Found()
    seen: set[tuple[int, int]] = set()
    for word in sorted(set(words), key=lambda word: (not os.path.isfile(word), word)):
        try:
            status = os.stat(word)
        except (OSError, ValueError) as error:
            found.unreadable.append(Unreadable(path=word, why=_trouble(error)))
            continue
        if stat.S_ISDIR(status.st_mode):
            _folder(word, found, seen)
        elif (key := (status.st_dev, status.st_ino)) in seen:
            found.notes.append(f"{word}: is the same file as another that is named")
        else:
            seen.add(key)
            one = told(word, status)
            (found.files if isinstance(one, FileSeen) else found.unreadable).append(one)  # type: ignore[arg-type]
    return found


def told(path: str, status: os.stat_result) -> FileSeen | Unreadable:
    """What kind of file it is, by its first bytes."""
    if not stat.S_ISREG(status.st_mode):
        return Unreadable(path=path, why=f"is {_kind(status.st_mode)}, which is never opened")
    if PACKED.search(path):
        return Unreadable(path=path, why="is packed; unpack it first")
    if why := log_file.unfit(Path(path)):
        return Unreadable(path=path, why=why.removeprefix(f"{path}: "))
    try:
        lines = beginning(path)
    except LogError as error:
        return Unreadable(path=path, why=str(error).removeprefix(f"{path}: "))
    kind = "processes" if processes_text.looks_like_one(lines) else "log"
    if lines and lines[0].text.startswith('{"kind":'):
        return Unreadable(path=path, why="is a part of a run's record; name the run, or its folder")
    return FileSeen(path=path, kind=kind, modified=status.st_mtime, size=status.st_size)


def beginning(path: str) -> list[Line]:
    """The first lines that are not blank. Raises LogError."""
    blocks = log_file.pieces(Path(path), 0, SAMPLE_BYTES)
    return [line for lines in blocks for line in lines if line.text.strip()]


def is_record(folder: str) -> bool:
    """Whether it is the folder of a run of ours."""
    return os.path.isfile(os.path.join(folder, "run.json"))


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder's own or of what lies below it, by its words: runA2 is not in
    runA."""
    return Path(folder) in (Path(path), *Path(path).parents)


def _folder(folder: str, found: Found, seen: set[tuple[int, int]]) -> None:
    if is_record(folder):
        found.records.append(folder)
        return
    about = FolderSeen(path=folder)
    found.folders.append(about)
    names: list[str] = []
    logs: list[tuple[str, os.stat_result]] = []
    for path, status in _walk(folder, about, found.records, names):
        key = (status.st_dev, status.st_ino)
        if key in seen or not stat.S_ISREG(status.st_mode):
            continue
        name = os.path.basename(path)
        if CHECKPOINT.search(name) or NO_LOG.search(name) or not status.st_size:
            continue
        if LOG.search(name) or "." not in name:
            seen.add(key)
            logs.append((path, status))
    # The newest say most, where there are too many; equal times by name.
    logs.sort(key=lambda one: (-one[1].st_mtime, one[0]))
    bytes_ = 0
    for path, status in logs:
        if about.files >= MOST_LOGS or (about.files and bytes_ + status.st_size > MOST_BYTES):
            about.left_out.append(f"{os.path.basename(path)} ({size(status.st_size)})")
            continue
        one = told(path, status)
        if isinstance(one, FileSeen):
            about.files += 1
            bytes_ += status.st_size
            found.files.append(one)
        elif "binary" not in one.why:
            found.unreadable.append(one)
    if not any(RESULTS.search(name) for name in names):
        about.absent.append("results file")
    if not any(CHECKPOINT.search(name) for name in names):
        about.absent.append("checkpoint")
    if about.left_out:
        some = ", ".join(about.left_out[:NAMED_LEFT_OUT])
        more = ", ..." if len(about.left_out) > NAMED_LEFT_OUT else ""
        what = counted(len(about.left_out), "thing")
        found.notes.append(f"{folder}: {what} left out, because there is so much: {some}{more}")
    if not about.files and not any(is_inside(one, folder) for one in found.records):
        found.notes.append(f"{folder}: there is no log in it, to a depth of {DEEPEST} folders")


def _walk(
    folder: str, about: FolderSeen, records: list[str], names: list[str]
) -> Iterator[tuple[str, os.stat_result]]:
    """All that lies in it, folders in the order of their names; links to folders are not
    followed, so there is no going round in circles."""
    entries = 0
    waiting = [(folder, 0)]
    while waiting:
        here, depth = waiting.pop(0)
        try:
            with os.scandir(here) as listing:
                inside = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            about.left_out.append(f"{here} ({_trouble(error)})")
            continue
        for entry in inside:
            entries += 1
            if entries > MOST_ENTRIES:
                about.left_out.append(f"what follows the first {MOST_ENTRIES:,} entries")
                return
            names.append(entry.name)
            try:
                status = entry.stat()
                is_folder = entry.is_dir(follow_symlinks=False)
            except OSError:
                continue
            if not is_folder:
                yield entry.path, status
            elif is_record(entry.path):
                records.append(entry.path)
            elif PASSED_BY.search(entry.name) or CHECKPOINT.search(entry.name):
                continue
            elif depth >= DEEPEST:
                about.left_out.append(f"{entry.path} (deeper than {DEEPEST} folders)")
            else:
                waiting.append((entry.path, depth + 1))


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device or a terminal"),
        (stat.S_ISBLK, "a device"),
    )
    return next((name for test, name in kinds if test(mode)), "no ordinary file")


def _trouble(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {(error.strerror or str(error)).lower()}"
    return "cannot be read: not a valid name"
