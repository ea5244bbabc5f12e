"""What a viewer may have done to a run: a stop, a relaunch, the end of leftovers, and signals.

All name what was seen when a person asked; what has changed since is left alone and said.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from bitwatch import config as configuration
from bitwatch.attach import gone, signals
from bitwatch.record import rundir
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.view import END_STATES, view
from bitwatch.strict import ConfigError
from bitwatch.supervise import begin, control, holding, stopping
from bitwatch.supervise import clean as cleaning
from bitwatch.supervise import relaunch as wished
from bitwatch.supervise.result import said
from bitwatch.text import counted

GRACE_S = 3.0


def stop(run: RunDir, attempt: int) -> str:
    """Asks exactly this attempt to stop with a checkpoint, and sees to it that somebody
    listens. What it says is for a person. Raises RunDirError or OSError."""
    gone.refuse(run, "stopped")
    begin.refuse_foreign(run, "stopped")
    elsewhere = rundir.is_here(run.identity())
    if elsewhere:
        raise RunDirError(f"{run.id}: {elsewhere}; it can only be stopped there")
    follower = Follower(run, glance=True)
    follower.poll()
    seen = view(follower.state, time.time(), follower.liveness())
    if seen.attempt != attempt:
        return f"attempt {attempt} is over; attempt {seen.attempt} goes on"
    if seen.state in END_STATES:
        return f"attempt {attempt} has ended already ({seen.state})"
    by = f"the screen (pid {os.getpid()})"
    stopping.ask(run, attempt, by)
    if seen.supervisor == "alive":
        with contextlib.suppress(control.ControlError):  # the file alone does too
            control.ask(Path(run.identity().socket), control.Request("stop", by, attempt=attempt))
        return f"attempt {attempt} stops, with a checkpoint"
    with contextlib.suppress(rundir.LockHeld):  # somebody else just took it over
        begin.start_supervisor(run, attempt, "adopt", by, "stop")
    return f"attempt {attempt} stops, with a checkpoint; its supervisor was gone and is back"


def relaunch(run: RunDir, attempt: int, correction: str) -> str:
    """Sees to it that the attempt after exactly this one begins: stopped first with a checkpoint
    while it lives. Raises RunDirError, ControlError, ConfigError or OSError when it cannot be."""
    gone.refuse(run, "relaunched")
    begin.refuse_foreign(run, "relaunched")
    elsewhere = rundir.is_here(run.identity())
    if elsewhere and elsewhere != rundir.REBOOTED:
        raise RunDirError(f"{run.id}: {elsewhere}; it can only be relaunched there")
    holding.is_free(run)  # a supervisor that has just ended would not find the wish any more
    follower = Follower(run, glance=True)
    follower.poll()
    alive = follower.liveness()
    newest = follower.state.newest_attempt()
    if newest != attempt:
        return f"attempt {attempt} is over; attempt {newest} came next"
    by = f"the screen (pid {os.getpid()})"
    wished.facts_of(run, attempt)  # an older record lacks them, and a supervisor has no time
    if alive.supervisor:
        request = control.Request("relaunch", by, attempt=attempt, correction=correction)
        try:
            answer = control.ask(control.socket_path(run.path), request)
        except control.ControlError:
            if holding.task_of_supervisor(run):
                return _by_file(run, attempt, correction, by)
        else:
            if not answer.ok:
                raise RunDirError(answer.text)
            return answer.text
    if alive.agent or alive.ranks:
        words = _by_file(run, attempt, correction, by)
        with contextlib.suppress(rundir.LockHeld):  # somebody else just took it over
            begin.start_supervisor(run, attempt, "adopt", by, "relaunch")
        return words
    words = wished.following(run, attempt, correction).words
    if elsewhere:
        begin.close_record(run, by)
        begin.move_here(run)
    wished.ask(run, attempt, correction, by, anew=True)
    try:
        begin.start_supervisor(run, attempt, "relaunch", by, "relaunch")
    except rundir.LockHeld as error:
        return _overtaken(run, attempt, error)
    return f"attempt {attempt + 1} follows attempt {attempt}: {words}"


def _overtaken(run: RunDir, attempt: int, held: rundir.LockHeld) -> str:
    """What becomes of a relaunch when another process has come to hold the run first."""
    follower = Follower(run, glance=True)
    follower.poll()
    if (newest := follower.state.newest_attempt()) != attempt:
        return f"attempt {attempt} is over; attempt {newest} came next"
    task = holding.task_of_supervisor(run)
    if task == (attempt, "relaunch"):
        return f"attempt {attempt} is being relaunched already"
    if task == (attempt, "adopt"):  # it has the wish, and what there is to say goes into the record
        return f"attempt {attempt} has a supervisor again, which will decide whether it can follow"
    raise RunDirError(f"attempt {attempt} is not relaunched now ({held}); ask again")


def _by_file(run: RunDir, attempt: int, correction: str, by: str) -> str:
    """The wish and the stop without an answer from a supervisor: it finds them."""
    if wish := wished.read(run, attempt):
        return f"attempt {attempt} is being relaunched already, as {wish.by} asked"
    if stopping.read(run, attempt):
        raise RunDirError(f"attempt {attempt} is stopping; key R relaunches it when it has ended")
    words = wished.following(run, attempt, correction).words
    wished.ask(run, attempt, correction, by)
    wished.stop_for(run, attempt, by)
    return f"attempt {attempt} stops with a checkpoint; then attempt {attempt + 1} follows: {words}"


def clean(run: RunDir) -> str:
    """Ends what is proven to be left of ended attempts, of this run and of all others of its
    home, and sees to it that a run without a supervisor is closed, or gets one. Raises
    RunDirError."""
    _refuse_elsewhere(run)
    cleaner = cleaning.Cleaner(run.path.parent)
    by = f"the screen (pid {os.getpid()})"
    return said(cleaner.clean(cleaner.look(), (), by, _grace_s(run)))


def end_left(run: RunDir, targets: Sequence[tuple[int, int]]) -> str:
    """Ends exactly these (pid, starttime), which a training that bitwatch did not start has left,
    and nothing else. Raises RunDirError."""
    _refuse_elsewhere(run)
    cleaner = cleaning.Cleaner(run.path.parent, run)
    found = cleaner.look()
    there = {(one.pid, one.starttime) for one in (*found.own, *found.confirm)}
    chosen = [pid for pid, starttime in targets if (pid, starttime) in there]
    by = f"the screen (pid {os.getpid()})"
    result = cleaner.clean(found, chosen, by, GRACE_S, all_own=False)
    result.confirm = []  # they were asked about just now
    if gone := len(targets) - len(chosen):
        result.notes.append(f"{counted(gone, 'process')} had ended already, or is no leftover now")
    return said(result)


def signal(run: RunDir, targets: Sequence[tuple[int, int]], name: str) -> str:
    """Sends a signal (a name of `signals.SIGNALS`) to exactly these (pid, starttime). Raises
    RunDirError."""
    return signals.send(run, targets, name)


def _refuse_elsewhere(run: RunDir) -> None:
    """Of a run whose folder is gone nobody knows where it was; what is ended proves itself here."""
    if gone.is_gone(run):
        return
    if elsewhere := rundir.is_here(run.identity()):
        raise RunDirError(f"{run.id}: {elsewhere}; nothing of it can be ended from here")


def _grace_s(run: RunDir) -> float:
    try:
        newest = run.attempts()[-1]
        return configuration.load(run.config(newest), lenient=True).watch.leftover_grace_s
    except (IndexError, ConfigError):
        return GRACE_S
