"""Reads a run directory into a `RunState`, again and again, while others write it.

Also says what no record can: whether the run's processes live on this machine now.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bitwatch.record import codec, events, kernel, rundir
from bitwatch.record.aside import AsideReader
from bitwatch.record.journal import JournalReader
from bitwatch.record.rundir import RunDir
from bitwatch.record.sampled import Decoder
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, Source, fold

if TYPE_CHECKING:
    from bitwatch.record.gpu_past import GpuPast
    from bitwatch.record.history import Past

YOUNG_S = 30.0
LOOK_S = 1.0  # how often a screen looks for files that were not there before
GLANCE_BYTES = 64 << 10
READER_FILE = re.compile(r"(\d+-[a-z]+-\d+)-(\d+)\.jsonl")
RANK_FILE = re.compile(r"rank(\d+)\.jsonl")
ASIDE_FILE = re.compile(r"rank(\d+)\.unwritten")


class Liveness(msgspec.Struct, frozen=True):
    """Facts of this moment. `elsewhere` is empty when the run's processes could be here,
    else says why not; then nothing else is known. `ranks` are those of the newest attempt
    whose recorded process lives; of a training that bitwatch did not start, those of any. `young`: made so recently that its supervisor may only be
    about to begin."""

    elsewhere: str = ""
    young: bool = False
    supervisor: bool = False
    agent: bool = False
    ranks: frozenset[int] = frozenset()
    leftovers: tuple[events.ProcessStart, ...] = ()  # of ended attempts, alive; when looked for


class Follower:
    """Keeps one reader per file. Files that appear later are found at the next `poll`.

    `glance` is for a listing: no samples, no readers, and of a long file only its beginning
    and its end. `newest_first` is for a screen: of a long file first only its ends, and what
    lies between of rank 0's piece by piece, from `history`, and the last minutes of the samples
    from `gpu_past`; of readers' accounts, where only the newest record counts, never more. `skipped` counts lines that were no record.
    """

    def __init__(self, run: RunDir, *, glance: bool = False, newest_first: bool = False) -> None:
        self.run = run
        self.state = RunState()
        self.history: list[Past] = []
        self.gpu_past: GpuPast | None = None
        self._glance = glance
        self._newest_first = newest_first
        self._readers: dict[Source, JournalReader | AsideReader] = {}
        self._found: list[tuple[Source, Path]] = []
        self._found_in: dict[Path, list[str]] = {}  # the names of which `_found` was made
        self._look_next = 0.0
        self._looked_back = False

    @property
    def skipped(self) -> int:
        return sum(reader.skipped for reader in self._readers.values())

    def poll(self) -> bool:
        """Folds in what has been written since the last call; whether there was anything."""
        news = [self._take(source, path) for source, path in self._sources()]
        return any(news)

    def poll_journal(self) -> bool:
        """The same of the journal alone: what is done to the run, and what befalls it."""
        return self._take(JOURNAL, self.run.journal)

    def _take(self, source: Source, path: Path) -> bool:
        news = False
        reader = self._readers.get(source)
        if reader is None or (reader.path is not path and reader.path != path):
            decode = Decoder().decode if source == SAMPLES else codec.decode
            if source.kind == "unwritten":
                reader = AsideReader(path)
            else:
                reader = JournalReader(path, self._ends(source), decode)
            self._readers[source] = reader
        began = reader.offset > 0
        for records in reader.batches():
            if began and not records:  # of many files most say nothing most of the time
                continue
            news = news or bool(records)
            of_file = source._replace(name=path.name) if source == SAMPLES else source
            fold(self.state, of_file, records)
        if reader.gap and not began and self._newest_first:
            self._remember(source, path, reader.gap)
        if source == SAMPLES and not began and self._newest_first and not self._looked_back:
            self._look_back(path, reader.gap)
        return news

    def _ends(self, source: Source) -> int | None:
        if source.kind in ("journal", "history") or not (self._glance or self._newest_first):
            return None
        return GLANCE_BYTES

    def _remember(self, source: Source, path: Path, gap: tuple[int, int]) -> None:
        """Only rank 0 tells the story; attempts come oldest first, and the newest counts."""
        from bitwatch.record.history import Past  # a listing has no past

        if source.kind == "rank" and source.rank == 0:
            self.history.insert(0, Past(path, gap, self.state.ranks[source.attempt, 0]))

    def _look_back(self, path: Path, gap: tuple[int, int] | None) -> None:
        """Once: what comes later is read as it comes."""
        from bitwatch.record.gpu_past import GpuPast

        self._looked_back = True
        self.gpu_past = GpuPast(path, gap, self.state)

    def liveness(self) -> Liveness:
        young = foreign = False
        try:
            identity = self.run.identity()
            foreign = identity.foreign
            young = abs(time.time() - identity.created) < YOUNG_S  # a clock may be set back
            if elsewhere := rundir.is_here(identity):
                return Liveness(elsewhere=elsewhere)
        except rundir.RunDirError:
            pass  # without it, what can be seen here still counts
        newest = self.state.newest_attempt()
        processes = self.state.journal.processes.items()
        agents = [
            key
            for key, start in processes
            if start.role == "agent" and (foreign or start.attempt == newest)
        ]
        ranks = {
            rank: (state.pid, state.starttime)
            for rank, state in self.state.ranks_of(newest).items()
            if state.pid
        }
        living = {rank for rank, key in ranks.items() if lives(*key)}
        if foreign:  # whose processes are told of again only after an attempt has begun
            living |= {
                start.rank or 0 for key, start in processes if start.role == "rank" and lives(*key)
            }
        return Liveness(
            young=young,
            supervisor=self.run.lock_is_held(),
            agent=any(lives(*key) for key in agents),
            ranks=frozenset(living),
        )

    def _sources(self) -> list[tuple[Source, Path]]:
        """The files there are. A screen looks often, and for new ones only every second."""
        now = time.monotonic()
        if not self._newest_first or now >= self._look_next:
            self._found = self._look()
            self._look_next = now + LOOK_S
        return self._found

    def _look(self) -> list[tuple[Source, Path]]:
        """Listing is cheap; what the names mean is found out again only when they change."""
        attempts = self.run.attempts()
        folders = [self.run.samples] if not self._glance else []
        for attempt in attempts:
            folders.append(self.run.attempt(attempt))
            over = self._newest_first and attempt < attempts[-1]
            folders += [] if self._glance or over else [self.run.attempt(attempt) / "readers"]
        names = {folder: _names(folder) for folder in folders}
        if self._found and names == self._found_in:
            return self._found
        self._found_in = names
        return self._meant(attempts, names)

    def _meant(
        self, attempts: list[int], names: dict[Path, list[str]]
    ) -> list[tuple[Source, Path]]:
        found = [(JOURNAL, self.run.journal)]
        if newest := max(names.get(self.run.samples, ()), default=None):
            found.append((SAMPLES, self.run.samples / newest))
        for attempt in attempts:
            folder = self.run.attempt(attempt)
            for name in names[folder]:
                match = RANK_FILE.fullmatch(name)
                if match:
                    found.append((Source("rank", attempt, int(match[1])), folder / name))
                elif match := ASIDE_FILE.fullmatch(name):
                    found.append((Source("unwritten", attempt, int(match[1])), folder / name))
                elif name == self.run.prepare(attempt).name:
                    found.append((Source("prepare", attempt), folder / name))
                elif name == self.run.history(attempt).name and not self._glance:
                    found.append((Source("history", attempt), folder / name))
            for name in newest_accounts(names.get(folder / "readers", [])):
                source = Source("reader", attempt, name=name)
                found.append((source, folder / "readers" / name))
        return found


def newest_accounts(names: list[str]) -> list[str]:
    """Of each reader's files the newest two: with an epoch a minute there are thousands, and
    only who reads now, and who has just ended, is of interest to a follower."""
    incarnations: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        match = READER_FILE.fullmatch(name)
        if match:
            incarnations.setdefault(match[1], []).append((int(match[2]), name))
    return [name for files in incarnations.values() for _, name in sorted(files)[-2:]]


def lives(pid: int, starttime: int) -> bool:
    """Whether exactly this process is there, and any thread of it lives."""
    return kernel.starttime(pid) == starttime


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
