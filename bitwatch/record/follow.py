"""Reads a run directory into a `RunState`, again and again, while others write it.

Also says what no record can: whether the run's processes live on this machine now.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from bitwatch.record import rundir
from bitwatch.record.journal import JournalReader
from bitwatch.record.rundir import RunDir
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, Source, fold

GLANCE_BYTES = 64 << 10
RANK_FILE = re.compile(r"rank(\d+)\.jsonl")


class Liveness(msgspec.Struct, frozen=True):
    """Facts of this moment. `elsewhere` is empty when the run's processes could be here,
    else says why not; then nothing else is known. `ranks` are those of the newest attempt
    whose recorded process lives."""

    elsewhere: str = ""
    supervisor: bool = False
    agent: bool = False
    ranks: frozenset[int] = frozenset()


class Follower:
    """Keeps one reader per file. Files that appear later are found at the next `poll`.

    `glance` is for a listing: no samples, no readers, and of a long file only its beginning
    and its end. `skipped` counts lines that were no record.
    """

    def __init__(self, run: RunDir, *, glance: bool = False) -> None:
        self.run = run
        self.state = RunState()
        self._glance = glance
        self._readers: dict[Source, JournalReader] = {}

    @property
    def skipped(self) -> int:
        return sum(reader.skipped for reader in self._readers.values())

    def poll(self) -> bool:
        """Folds in what has been written since the last call; whether there was anything."""
        news = False
        for source, path in self._sources():
            reader = self._readers.get(source)
            if reader is None or reader.path != path:
                ends = GLANCE_BYTES if self._glance and source.kind == "rank" else None
                reader = self._readers[source] = JournalReader(path, ends)
            records = reader.read()
            if records:
                news = True
                fold(self.state, source, records)
        return news

    def liveness(self) -> Liveness:
        try:
            elsewhere = rundir.is_here(self.run.identity())
        except rundir.RunDirError:
            elsewhere = ""
        if elsewhere:
            return Liveness(elsewhere=elsewhere)
        newest = self.state.newest_attempt()
        agents = [
            process
            for process in self.state.journal.processes.values()
            if process.role == "agent" and process.attempt == newest
        ]
        return Liveness(
            supervisor=self.run.lock_is_held(),
            agent=any(lives(agent.pid, agent.starttime) for agent in agents),
            ranks=frozenset(
                rank
                for rank, state in self.state.ranks_of(newest).items()
                if state.pid and lives(state.pid, state.starttime)
            ),
        )

    def _sources(self) -> list[tuple[Source, Path]]:
        found = [(JOURNAL, self.run.journal)]
        if not self._glance:
            newest = max(_names(self.run.samples), default=None)
            if newest:
                found.append((SAMPLES, self.run.samples / newest))
        for attempt in self.run.attempts():
            folder = self.run.attempt(attempt)
            for name in _names(folder):
                match = RANK_FILE.fullmatch(name)
                if match:
                    found.append((Source("rank", attempt, int(match[1])), folder / name))
            for name in () if self._glance else _names(folder / "readers"):
                if name.endswith(".jsonl"):
                    source = Source("reader", attempt, name=name)
                    found.append((source, folder / "readers" / name))
        return found


def lives(pid: int, starttime: int) -> bool:
    """Whether exactly this process is there and not a zombie."""
    return rundir.starttime(pid) == starttime


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
