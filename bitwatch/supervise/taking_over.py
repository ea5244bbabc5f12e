"""New supervisors for runs that have lost their own, and what became of them: many may be started
at once, and whoever asks waits for all of them no longer than for one."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bitwatch.record.rundir import LockHeld, RunDirError
from bitwatch.supervise import control
from bitwatch.supervise.begin import Starting

WAIT_S = 5.0  # for all of them: one says that it is there within a fraction of a second
LOOK_S = 0.02
ANSWER_S = 0.5


def wait(started: Sequence[Starting], limit_s: float = WAIT_S) -> tuple[list[str], list[str]]:
    """What became of each that took over, and what went wrong, in words. Of a run that another one
    took over there is nothing to say."""
    deadline = time.monotonic() + limit_s
    words: list[str] = []
    wrong: list[str] = []
    waiting = list(started)
    while waiting:
        for one in list(waiting):
            try:
                became = _became(one, late=time.monotonic() >= deadline)
            except LockHeld:
                became = ""
            except RunDirError as error:
                became = ""
                wrong.append(str(error))
            if became is None:
                continue
            waiting.remove(one)
            if became:
                words.append(f"{one.run.id}: attempt {one.attempt} had lost its supervisor{became}")
        if waiting:
            time.sleep(LOOK_S)
    return words, wrong


def _became(one: Starting, late: bool) -> str | None:
    """None while that is not known yet. One that holds the run may find in its record that there
    is nothing left to do; who answers has found something. Raises RunDirError."""
    there = one.is_there()
    if one.process.poll() == 0:
        return ", and has ended since"
    if there and (late or _answers(one)):
        return " and has a new one"
    return "; a new one was asked to take over, and has not answered yet" if late else None


def _answers(one: Starting) -> bool:
    try:
        request = control.Request("status")
        answer = control.ask(control.socket_path(one.run.path), request, ANSWER_S)
    except control.ControlError:
        return False
    return answer.pid == one.process.pid
