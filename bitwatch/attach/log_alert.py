"""The alert that a watched log is not what it was: deleted, another kind of file, unreadable."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bitwatch.record import events
from bitwatch.record.state import RunState

ID = "log-unreadable"
LASTS_S = 1.5  # a log that is rotated is away for an instant


class LogAlert:
    """Raised once for each trouble of an attempt, and cleared when all is well again, also what
    somebody has raised who watched before."""

    def __init__(self, state: RunState, attempt: int) -> None:
        known = state.journal.alerts.get((attempt, ID))
        self._raised = (attempt, tuple(known.evidence)) if known else None
        self._since: tuple[tuple[str, ...], float] = ((), 0.0)

    def look(self, troubles: Sequence[str], attempt: int) -> events.Alert | None:
        """What is to be told now, if anything."""
        now, found = time.monotonic(), tuple(troubles)
        if found != self._since[0]:
            self._since = found, now
        if not found:
            raised, self._raised = self._raised, None
            return events.Alert(id=ID, attempt=raised[0], cleared=True) if raised else None
        if now - self._since[1] < LASTS_S or self._raised == (attempt, found):
            return None
        self._raised = attempt, found
        more = len(found) - 1
        also = f"; and {more} more of its logs" if more else ""
        return events.Alert(
            id=ID,
            severity="warning",
            text=f"the log {found[0]}{also}",
            evidence=list(found),
            next="what it says is not known until it can be read again; "
            "if it is written elsewhere now, bitwatch attach that file",
            attempt=attempt,
        )
