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
from bitwatch.sense import processes
from bitwatch.supervise import stopping

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
        why = "at once" if self._stop.now else "the ranks did not answer within the grace"
        self.forced = f"stopped by {self._stop.by}, without a checkpoint ({why})"
        if agent:
            for number in (signal.SIGTERM, signal.SIGCONT):
                processes.send_signal(*agent, number)
        self._say("escalate", "supervisor", "SIGTERM to the agent")
        return False

    def killed(self, survivors: int) -> None:
        self._say("escalate", "supervisor", f"SIGKILL; {survivors} survive")

    def take(self, asked: stopping.Stop) -> None:
        """Takes up a request."""
        self._stop = asked
        self._due = time.monotonic() + (0.0 if asked.now else self._grace_s())
        how = "at once, without a checkpoint" if asked.now else "with a checkpoint"
        self._say("stop", asked.by, how)

    def _say(self, name: str, by: str, result: str) -> None:
        on = f"attempt {self._attempt}"
        self._journal.write(events.Action(name=name, by=by, on=on, result=result))
