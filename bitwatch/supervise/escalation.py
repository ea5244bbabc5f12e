"""From a request to stop to the end of it: a grace, then TERM to the agent, then KILL.

The ranks answer a request by themselves, at a step that they agree on. Only when they do not,
or when it was asked to be at once, does the supervisor use signals.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.record.state import RunState
from bitwatch.sense import processes
from bitwatch.supervise import stopping

ESCALATED, STOPPED = "escalate", "stop"  # actions
AT_ONCE = "at once, without a checkpoint"
TERM_S = 5.0  # between TERM to the agent, which ends its ranks, and KILL to what is left


class Escalation:
    """`forced` says, once signals were used, who ended the attempt and why so. `grace_s` is
    asked when a request is taken up: by then checkpoints may have been measured."""

    def __init__(
        self, run: RunDir, attempt: int, grace_s: Callable[[], float], journal: JournalWriter
    ) -> None:
        self._run = run
        self._attempt = attempt
        self._grace_s = grace_s
        self._journal = journal
        self._stop: stopping.Stop | None = None
        self._due = 0.0
        self.forced = ""

    def adopt(self, state: RunState) -> None:
        """Goes on where an earlier supervisor has left off."""
        self.forced = forced(state, self._attempt)

    def look(self, agent: tuple[int, int] | None) -> bool:
        """Takes up a request, and the next step when its time has come. True when that is
        to kill what is left: only the caller knows what is ours."""
        asked = stopping.read(self._run, self._attempt)
        if asked and (self._stop is None or (asked.now and not self._stop.now)):
            self.take(asked)
        if self._stop is None or time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + TERM_S
        if self.forced:
            return True
        self.forced = self._stop.forced()
        if agent:
            for number in (signal.SIGTERM, signal.SIGCONT):
                processes.send_signal(*agent, number)
        self._say(ESCALATED, "supervisor", "SIGTERM to the agent")
        return False

    def killed(self, survivors: int) -> None:
        self._say(ESCALATED, "supervisor", f"SIGKILL; {survivors} survive")

    def take(self, asked: stopping.Stop) -> None:
        """Takes up a request."""
        self._stop = asked
        wait_s = TERM_S if self.forced else self._grace_s()
        self._due = time.monotonic() + (0.0 if asked.now and not self.forced else wait_s)
        self._say(STOPPED, asked.by, AT_ONCE if asked.now else "with a checkpoint")

    def _say(self, name: str, by: str, result: str) -> None:
        on = f"attempt {self._attempt}"
        self._journal.write(events.Action(name=name, by=by, on=on, result=result))


def forced(state: RunState, attempt: int) -> str:
    """By the record: who has ended an attempt by signals, and why so; empty when nobody did."""
    on = f"attempt {attempt}"
    said = [action for action in state.journal.actions if action.on == on]
    if not any(action.name == ESCALATED for action in said):
        return ""
    asked = [action for action in said if action.name == STOPPED]
    by, now = (asked[-1].by, asked[-1].result == AT_ONCE) if asked else ("unknown", True)
    return stopping.Stop(by=by, now=now).forced()
