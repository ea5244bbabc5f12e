"""The alerts about the loss of a training that bitwatch did not start: raised and cleared by whoever
watches it, also what somebody has raised who watched before."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.state import RankState, RunState
from bitwatch.record.view import View
from bitwatch.supervise.watch_loss import NOT_FINITE, SPIKE, Losses


class LossAlerts:
    def __init__(self, journal: JournalWriter, attempt: int, state: RunState) -> None:
        self._journal = journal
        self._attempt = attempt
        self._losses = Losses()
        known = state.journal.alerts
        self._raised = {
            id: known[attempt, id] for id in (NOT_FINITE, SPIKE) if (attempt, id) in known
        }

    def look(self, state: RunState) -> None:
        first = state.ranks_of(self._attempt).get(0, RankState())
        seen = View(
            attempt=self._attempt, foreign=True, recent=first.recent, checkpoints=first.checkpoints
        )
        found = {alert.id: alert for alert in self._losses.look(seen)}
        for alert in found.values():
            before = self._raised.get(alert.id)
            if before is None or before.text != alert.text:
                alert.attempt = self._attempt
                self._journal.write(alert)
                self._raised[alert.id] = alert
        for gone in self._raised.keys() - found.keys():
            text = self._raised.pop(gone).text
            self._journal.write(
                events.Alert(id=gone, attempt=self._attempt, text=text, cleared=True)
            )
