"""What a supervisor looks at beside the processes and the records of its run."""

from __future__ import annotations

from bitwatch.config import Config
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.sense import session, shared_memory
from bitwatch.supervise.disks import Disks, folders_of
from bitwatch.supervise.watch_deaths import Logs
from bitwatch.supervise.watch_processes import Around


class Surroundings:
    def __init__(self, run: RunDir, attempt: int, config: Config) -> None:
        self._session = tuple(session.will_kill())
        self._logs = Logs(run.logs(attempt))
        self._disks = Disks(folders_of(run, config))

    def look(self, view: View) -> Around:
        free_mib, rooms = shared_memory.free_mib(), self._disks.look(view)
        return Around(free_mib, self._session, self._logs, rooms=rooms)
