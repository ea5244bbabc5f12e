"""What a cleanup writes into the record of a run: what it has ended, and how an attempt ended
whose supervisor died before it could say so."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from bitwatch.record import events
from bitwatch.record.afterwards import RELAUNCH_FAILED
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import Lock, LockHeld, RunDir, RunDirError
from bitwatch.supervise import begin, control, ending, relaunch
from bitwatch.supervise.result import Listed, names

BY_US = ("SIGTERM", "SIGKILL")  # how those ended that a cleanup has ended, just now
LOCK_S = 5.0  # as long as another cleanup may be writing into the same record, on a slow disk
ANSWER_S = 2.0  # of a supervisor


def settle(run: RunDir, killed: Sequence[Listed], left: Sequence[Listed], by: str) -> list[str]:
    """Writes down who was ended and who is left, after the end of the attempt, if nobody had
    written that; which end that was, in words. A live supervisor does it for us, and closes its
    attempt itself. Raises RunDirError, with the reason, when it could not be written."""
    try:
        lock = _lock(run, killed, left, by)
    except RunDirError as error:
        raise RunDirError(f"not written into the record: {error}") from None
    if lock is None:
        return []
    try:
        closed = _close(run, by)
        _note(run, killed, left, by)
    except OSError as error:
        raise RunDirError(f"not written into the record: {run.journal}: {error.strerror}") from None
    finally:
        lock.release()
    return closed


def _lock(run: RunDir, killed: Sequence[Listed], left: Sequence[Listed], by: str) -> Lock | None:
    """None when a supervisor holds it and has written down what there is to tell. Another
    cleanup answers nobody, and is soon done."""
    deadline = time.monotonic() + LOCK_S
    while True:
        try:
            return Lock(run)
        except LockHeld:
            with contextlib.suppress(control.ControlError):
                _tell(run, killed, left, by)
                return None
            if time.monotonic() > deadline:
                raise


def _tell(run: RunDir, killed: Sequence[Listed], left: Sequence[Listed], by: str) -> None:
    """Raises ControlError when no supervisor answers, RunDirError when it could not write."""
    request = control.Request("status", by)
    if killed or left:
        on, result = _words(killed, left)
        request = control.Request("cleaned", by, on=on, result=result)
    answer = control.ask(control.socket_path(run.path), request, ANSWER_S)
    if not answer.ok:
        raise RunDirError(answer.text)


def _close(run: RunDir, by: str) -> list[str]:
    if begin.is_foreign(run):
        return []
    follower = Follower(run)
    follower.poll()
    attempt = follower.state.newest_attempt()
    alive = follower.liveness()
    if not attempt or alive.agent or alive.ranks or ending.is_over(follower.state, attempt):
        return []
    word, cause = ending.close_dead(run, follower, attempt, by)
    wish = relaunch.read(run, attempt)
    if wish is not None:
        why = "its supervisor died before it could make the next one"
        journal = JournalWriter(run.journal)
        on = f"attempt {attempt}"
        journal.write(events.Action(name=RELAUNCH_FAILED, by=wish.by, on=on, result=why))
        journal.close()
    why = f" ({cause})" if cause else ""
    return [f"{run.id}: the record of attempt {attempt} is closed: {word}{why}"]


def _note(run: RunDir, killed: Sequence[Listed], left: Sequence[Listed], by: str) -> None:
    """Of those of whom no other cleanup has told before."""
    follower = Follower(run, glance=True)
    follower.poll()
    told = follower.state.journal.exits
    ended = [one for one in killed if (one.pid, one.starttime) not in told]
    if not ended and not left:
        return
    journal = JournalWriter(run.journal)
    lost = 0
    now = time.monotonic()
    for one in ended:
        lost += not journal.write(
            events.ProcessExit(
                pid=one.pid,
                starttime=one.starttime,
                role=one.role,
                rank=one.rank,
                m=now if one.ended in BY_US else 0.0,  # when the others ended nobody has seen
            )
        )
    on, words = _words(ended, left)
    lost += not journal.write(events.Action(name="clean", by=by, on=on, result=words))
    journal.close()
    if lost:
        raise RunDirError(f"not written into the record: {run.journal}: the disk is full")


def _words(ended: Sequence[Listed], left: Sequence[Listed]) -> tuple[str, str]:
    """On whom, and with what result."""
    words = f"ended {names(ended)}" if ended else "ended nothing"
    if left:
        words += f"; {names(left)} still there"
    attempts = ", ".join(str(n) for n in sorted({one.attempt for one in (*ended, *left)}))
    return f"attempt {attempts}", words
