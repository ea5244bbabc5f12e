"""What a word after `bitwatch attach` means: a run, a training by one of its processes, or a log."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from bitwatch import utf8
from bitwatch.attach import foreign, own_dialects
from bitwatch.attach.log_file import unfit
from bitwatch.record import rundir
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.sense import training
from bitwatch.sense.training import NoTraining, Training
from bitwatch.text import counted, duration, literal

LARGEST_PID = 1 << 22  # that any Linux gives out

Target = RunDir | Training | Path


def meant(home: Path, word: str) -> Target:
    """A Path is a log that no training here has open. Makes nothing. Raises RunDirError."""
    if word.isascii() and word.isdecimal():
        return _of_pid(word)
    if os.path.isfile(os.path.join(word, "run.json")):
        return RunDir(Path(word).absolute())
    if os.path.isdir(word):
        raise RunDirError(f"{word}: is a folder without a run; name a run, a pid or a log")
    if os.path.exists(word):
        if not utf8.is_text(log := Path(word).absolute()):
            raise RunDirError(f"{log}: its name is not UTF-8, and no record can hold it; rename it")
        return _of_log(log)
    return rundir.find(home, word)


def opened(home: Path, target: Target) -> RunDir:
    """Its run, which for somebody else's training is made now, or found again. Raises
    RunDirError, and ConfigError when the dialects of the user's own are wrong."""
    if not isinstance(target, RunDir):
        own_dialects.load()  # who watches would have nobody to tell
    if isinstance(target, Training):
        return foreign.of_training(home, target)
    return foreign.of_log(home, target) if isinstance(target, Path) else target


def words(found: Sequence[Training]) -> str:
    """Trainings that were found, for who cannot be shown them."""
    return "; ".join(
        f"pid {one.root[0]} ({summary(one)}): `bitwatch attach {one.root[0]}`" for one in found
    )


def summary(found: Training) -> str:
    """What runs, since when, and with how many ranks and workers."""
    workers = sum(member.role == "worker" for member in found.members)
    age = duration(max(0.0, time.time() - found.started))
    many = f"{counted(found.ranks, 'rank')}, {counted(workers, 'worker')}"
    return f"{foreign.name_of(found)}, {many}, for {age} in {literal(found.directory)}"


def _of_pid(word: str) -> Target:
    if len(word) > len(str(LARGEST_PID)) or int(word) > LARGEST_PID:
        raise RunDirError(f"there is no process {word}")
    try:
        return training.of(int(word))
    except NoTraining as error:
        directory = error.run_directory
        if directory and os.path.isfile(os.path.join(directory, "run.json")):
            return RunDir(Path(directory))
        raise RunDirError(f"{error}; name a process of a training, a log or a run") from None


def _of_log(path: Path) -> Target:
    for folder in path.parents:
        if (folder / "run.json").is_file():  # one of a run's own logs
            return RunDir(folder)
    for found in training.all_here():
        for log in found.logs:
            if _is_same(path, log.opened) or _is_same(path, log.path):
                return found
    if why := unfit(path):
        raise RunDirError(why)
    return path


def _is_same(path: Path, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
