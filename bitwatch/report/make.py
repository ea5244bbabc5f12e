"""A report on what a person names: evidence is gathered first, then concluded from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bitwatch.record.rundir import RunDirError
from bitwatch.report import files, paths
from bitwatch.report.conclude import conclude
from bitwatch.report.facts import Gathered
from bitwatch.report.model import Report


def make(home: Path, words: Sequence[str]) -> Report:
    """`words`: files and folders, and runs of `home`; without any, the machine as it is.
    Raises RunDirError for a word that is none of them."""
    return conclude(gather(home, words))


def gather(home: Path, words: Sequence[str]) -> Gathered:
    """An existing path is a path, whatever runs there are."""
    for word in words:
        if not os.path.lexists(word):
            raise RunDirError(f"{word}: there is no such file, folder or run")
    found = paths.look(words)
    gathered = files.read(found)
    gathered.about = sorted(set(words))
    gathered.notes += [
        f"{record}: is the record of a run; `bitwatch report RUN` reads it"
        for record in found.records
    ]
    return gathered
