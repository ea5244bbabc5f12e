"""What a supervisor does when it is asked over its socket."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bitwatch.record import events
from bitwatch.record.rundir import RunDirError
from bitwatch.supervise import leftovers, relaunch, stopping
from bitwatch.supervise.control import Answer, Request

if TYPE_CHECKING:
    from bitwatch.supervise.supervisor import Supervisor

DONE = {"signalled": "signal", "cleaned": "clean"}  # requests to write down an action


def answer(to: Supervisor, request: Request) -> Answer:
    ok, text = True, ""
    if request.attempt not in (0, to.attempt):  # whoever asks has seen an earlier one
        ok, text = False, f"attempt {request.attempt} is over; this is {to.attempt}"
    elif request.command == "stop":
        to.ask_to_stop(request.by, now=request.now)
        to.look_for_stop()
    elif request.command == "relaunch":
        ok, text = _relaunch(to, request)
    elif request.command == "clean":
        text = _clean(to, request.by)
    elif name := DONE.get(request.command):
        done = events.Action(name=name, by=request.by, on=request.on, result=request.result)
        ok = to.journal.write(done)
        text = "" if ok else f"{to.journal.path}: the disk is full"
    elif request.command != "status":
        ok, text = False, f"unknown command {request.command}"
    return Answer(ok, text, pid=os.getpid(), attempt=to.attempt)


def _relaunch(to: Supervisor, request: Request) -> tuple[bool, str]:
    """Stops the attempt for a next one, once it is sure that there can be one."""
    on = f"attempt {to.attempt}"
    if wish := relaunch.read(to.run, to.attempt):
        return True, f"{on} is being relaunched already, as {wish.by} asked"
    if stopping.read(to.run, to.attempt):
        return False, f"{on} is stopping; key R relaunches it when it has ended"
    try:
        words = relaunch.following(to.run, to.attempt, request.correction).words
        to.wish = relaunch.ask(to.run, to.attempt, request.correction, request.by)
        relaunch.stop_for(to.run, to.attempt, request.by)
    except (OSError, RunDirError) as error:
        return False, f"not relaunched: {error}"
    to.journal.write(events.Action(name=relaunch.ASKED, by=request.by, on=on, result=words))
    to.look_for_stop()
    return True, f"{on} stops with a checkpoint; then attempt {to.attempt + 1}: {words}"


def _clean(to: Supervisor, by: str) -> str:
    """Of earlier attempts only: what is left of this one is ended with it."""
    to.follower.poll()
    ended = leftovers.ended_attempts(to.follower.state) - {to.attempt}
    grace_s = to.config.watch.leftover_grace_s
    return leftovers.end(to.follower.state, ended, to.journal, by, grace_s)
