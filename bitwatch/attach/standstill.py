"""Why a training that bitwatch did not start takes no step, as far as the kernel says: its ranks
are looked at, and nothing is sent to them."""

from __future__ import annotations

import time

from bitwatch.attach import stacks
from bitwatch.record import events
from bitwatch.record.follow import Liveness
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.record.state import RunState
from bitwatch.record.view import view
from bitwatch.supervise.stalls import Stalls
from bitwatch.supervise.watch_stalls import stalled

ID = "stalled"


class Standstill:
    """Of one attempt. Raises the alert once the ranks have been looked at, and clears it when
    there is a step again, also what somebody has raised who watched before."""

    def __init__(self, run: RunDir, journal: JournalWriter, attempt: int, state: RunState) -> None:
        self._journal = journal
        self._attempt = attempt
        self._stalls = Stalls(run, journal, attempt, stacks.foreign)
        self._raised = state.journal.alerts.get((attempt, ID))

    def look(self, state: RunState) -> None:
        now = time.time()
        seen = view(state, now, Liveness(supervisor=True))  # whoever asks watches
        self._stalls.look(seen, state, now)
        found = next(stalled(seen, now), None)
        if found is not None and seen.stuck is not None:
            if self._raised is None or _told(found) != _told(self._raised):
                self._raised = found
                found.attempt = self._attempt
                self._journal.write(found)
        elif found is None and self._raised is not None:
            text, self._raised = self._raised.text, None
            self._journal.write(events.Alert(id=ID, attempt=self._attempt, text=text, cleared=True))


def _told(alert: events.Alert) -> tuple[str, str]:
    return alert.text, alert.next
