"""A report on what a person names: evidence is gathered first, then concluded from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bitwatch.report import combined, files, machine, paths
from bitwatch.report.conclude import conclude
from bitwatch.report.facts import Gathered
from bitwatch.report.model import Report


def make(home: Path, words: Sequence[str]) -> Report:
    """`words`: files and folders, and runs of `home`; without any, the machine as it is.
    Raises RunDirError for a word that is none of them."""
    return conclude(gather(home, words))


def gather(home: Path, words: Sequence[str]) -> Gathered:
    """An existing path is a path, whatever runs there are."""
    if not words:
        gathered = Gathered()
        machine.add(gathered, home)
        return gathered
    runs, others = combined.sort_out(home, words)
    found = paths.look(others)
    gathered = files.read(found)
    gathered.about = sorted(set(others))
    told = combined.add_runs(gathered, runs, found.records, alone=not others)
    combined.cross(gathered, told)
    return gathered
