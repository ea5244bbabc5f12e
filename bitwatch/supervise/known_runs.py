"""What the records of a home's runs prove, read once and from then on only where they grow.

Of a run that nobody writes any more nothing but the time of its journal is asked again, so that
hundreds of old runs cost a look next to nothing.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection
from pathlib import Path

from bitwatch.record import rundir
from bitwatch.record.follow import RANK_FILE, lives
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
        written = supervised or found is None or found.supervised or found.live
        if not written and journal == self._journal:
            return found
        if journal and self._journal and journal[0] != self._journal[0]:
            self._reader, self._state = JournalReader(self.run.journal), RunState()  # made anew
        self._journal = journal
        self._facts = self._read(supervised)
        return self._facts

    def _look_whether_here(self) -> bool:
        with contextlib.suppress(RunDirError, OSError):
            identity = self.run.identity()
            return not rundir.is_here(identity) and identity.uid == os.getuid()
        return False

    def _read(self, supervised: bool) -> RunFacts:
        for records in self._reader.batches():
            fold(self._state, JOURNAL, records)
        journal = self._state.journal
        newest = self._newest_attempt()
        known = journal.attempts.get(newest)
        over = known is not None and known.ended is not None
        agent_lives = any(
            start.role in ("agent", "prepare") and start.attempt == newest and lives(*key)
            for key, start in journal.processes.items()
        )
        return RunFacts(
            self.run.id,
            str(self.run.path),
            journal.processes,
            journal.exits,
            live=newest if not over and (supervised or agent_lives) else 0,
            supervised=supervised,
            shared_memory=frozenset(name for names in journal.shared.values() for name in names),
        )

    def _newest_attempt(self) -> int:
        """The newest that the journal names, or one that has spoken although the journal could
        not be written (a full disk)."""
        told = self._state.newest_attempt()
        spoken = [n for n in self.run.attempts() if n > told and self._has_spoken(n)]
        return max([told, *spoken])

    def _has_spoken(self, attempt: int) -> bool:
        with contextlib.suppress(OSError):
            names = os.listdir(self.run.attempt(attempt))
            own = self.run.prepare(attempt).name
            return any(name == own or RANK_FILE.fullmatch(name) for name in names)
        return False


def _mark(path: Path) -> Mark | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
