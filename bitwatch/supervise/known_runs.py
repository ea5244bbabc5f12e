"""What the records of a home's runs prove, read once and from then on only where they grow.

Of a run that is over nothing but the time of its journal is asked again, so that hundreds of
old runs cost a look next to nothing.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection
from pathlib import Path

from bitwatch.record import rundir
from bitwatch.record.follow import YOUNG_S, Follower, lives
from bitwatch.record.journal import JournalReader
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.state import JOURNAL, RunState, fold
from bitwatch.supervise.ownership import RunFacts

Mark = tuple[int, int, int]  # of a file: which, how long, when last written


class KnownRuns:
    """Of runs whose processes can be on this machine now: what was recorded before a reboot,
    in another pid namespace or by another user proves nothing here."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._known: dict[str, _Known] = {}

    def facts(self) -> list[RunFacts]:
        """Of all there are now."""
        return [facts for known in self._look() if (facts := known.facts()) is not None]

    def read(self, limit_s: float) -> bool:
        """Reads of what was never read, for about so long; whether there is nothing left."""
        deadline = time.monotonic() + limit_s
        for known in self._look():
            if known.is_new:
                if time.monotonic() >= deadline:
                    return False
                known.facts()
        return True

    def _look(self) -> Collection[_Known]:
        """Of every folder there is, newest first, be it a run or not."""
        try:
            names = sorted(os.listdir(self._home), reverse=True)
        except OSError:
            names = []
        before, self._known = self._known, {}
        for name in names:  # who is not there any more is forgotten
            self._known[name] = before.get(name) or _Known(RunDir(self._home / name))
        return self._known.values()


class _Known:
    """One run."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self.is_new = True
        self._identity: Mark | None = None
        self._is_here = False
        self._foreign = False
        self._created = 0.0
        self._is_over = False
        self._follower = Follower(run, glance=True)  # for the ranks' own word
        self._journal: Mark | None = None
        self._facts: RunFacts | None = None
        self._reader = JournalReader(run.journal)
        self._state = RunState()

    def facts(self) -> RunFacts | None:
        """None of a run that proves nothing here, or cannot be read."""
        self.is_new = False
        identity = _mark(self.run.identity_file)
        if identity != self._identity:
            self._identity, self._is_here = identity, self._look_whether_here()
        if identity is None or not self._is_here:
            return None
        supervised = self.run.lock_is_held()
        journal = _mark(self.run.journal)
        found = self._facts
        quiet = self._is_over and not supervised and journal == self._journal
        if quiet and found is not None and not (found.supervised or found.live):
            return found
        if journal and self._journal and journal[0] != self._journal[0]:  # made anew
            self._reader, self._state = JournalReader(self.run.journal), RunState()
            self._follower = Follower(self.run, glance=True)
        self._journal = journal
        self._facts = self._read(supervised)
        return self._facts

    def _look_whether_here(self) -> bool:
        with contextlib.suppress(RunDirError, OSError):
            identity = self.run.identity()
            self._created, self._foreign = identity.created, identity.foreign
            return not rundir.is_here(identity) and identity.uid == os.getuid()
        return False

    def _read(self, supervised: bool) -> RunFacts:
        for records in self._reader.batches():
            fold(self._state, JOURNAL, records)
        journal = self._state.journal
        newest = self._newest_attempt()
        known = journal.attempts.get(newest)
        self._is_over = known is not None and known.ended is not None
        if self._foreign:  # whoever watches does not make it live, and no record ends it
            lives_now = self._lives_watched()
        else:
            lives_now = not self._is_over and (supervised or self._lives(newest))
        live = newest if lives_now else 0
        young = abs(time.time() - self._created) < YOUNG_S  # a clock may be set back
        return RunFacts(
            self.run.id,
            str(self.run.path),
            journal.processes,
            journal.exits,
            live=live,
            supervised=supervised,
            foreign=self._foreign,
            unclosed=newest if not (self._is_over or live or young or self._foreign) else 0,
            shared_memory=frozenset(name for names in journal.shared.values() for name in names),
        )

    def _newest_attempt(self) -> int:
        """The newest that the journal names, or one that has spoken although the journal could
        not be written (a full disk)."""
        told = self._state.newest_attempt()
        if all(attempt <= told for attempt in self.run.attempts()):
            return told
        self._follower.poll()
        return max(told, self._follower.state.newest_attempt())

    def _lives_watched(self) -> bool:
        """Of a training that bitwatch did not start: its launcher, or without one its ranks. What
        a dead launcher has left are leftovers. Attempts are only what somebody has read in its
        log: a launcher that starts its ranks again lives on, whatever was told of it when."""
        processes = self._state.journal.processes
        first = [key for key, start in processes.items() if start.role == "agent"]
        first = first or [key for key, start in processes.items() if start.role == "rank"]
        return any(lives(*key) for key in first)

    def _lives(self, attempt: int) -> bool:
        """An agent, or a rank by its own word: who began after the death of its supervisor
        stands nowhere else."""
        processes = self._state.journal.processes
        if any(
            start.role in ("agent", "prepare") and start.attempt == attempt and lives(*key)
            for key, start in processes.items()
        ):
            return True
        self._follower.poll()
        ranks = self._follower.state.ranks_of(attempt).values()
        return any(rank.pid and lives(rank.pid, rank.starttime) for rank in ranks)


def _mark(path: Path) -> Mark | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
