"""Stopping a run from the shell, whoever supervises it, or nobody."""

from __future__ import annotations

import contextlib
import os
import time

from bitwatch import config as configuration
from bitwatch import headless, lines
from bitwatch.record import rundir
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.view import END_STATES, View, view
from bitwatch.supervise import begin, control, grace, stopping

PATIENCE_S = 60.0  # beyond the grace, for TERM, KILL and closing the record


def stop_run(run: RunDir, now: bool) -> int:
    """Asks, waits for the end, and says how it was; the exit code. Raises RunDirError."""
    begin.refuse_foreign(run, "stopped")
    elsewhere = ""
    with contextlib.suppress(RunDirError):  # a damaged run.json: what lives here still counts
        elsewhere = rundir.is_here(run.identity())
    if elsewhere and elsewhere != rundir.REBOOTED:
        raise RunDirError(f"{run.id}: {elsewhere}; it can only be stopped there")
    follower = Follower(run)
    seen = _look(follower)
    while seen.state in END_STATES:
        if not run.lock_is_held():
            begin.close_record(run, "bitwatch stop")
            headless.say(f"{run.id}: has ended already ({seen.state})")
            return 0
        run.relaunch(seen.attempt).unlink(missing_ok=True)  # its supervisor may be about to
        time.sleep(0.05)
        seen = _look(follower)
    by = f"bitwatch stop (pid {os.getpid()})"
    stopping.ask(run, seen.attempt, by, now=now)
    if seen.supervisor == "alive":
        with contextlib.suppress(control.ControlError, RunDirError):  # the file alone does too
            request = control.Request("stop", by, now, seen.attempt)
            control.ask(control.socket_path(run.path), request)
    else:
        headless.say(f"{run.id}: its supervisor is gone; taking over")
        with contextlib.suppress(rundir.LockHeld):  # somebody else just did
            begin.start_supervisor(run, seen.attempt, "adopt", by, "stop")
    seen = _wait(run, follower, seen)
    for line in lines.summary(seen):
        print(line)
    return 0 if now or headless.exit_code(seen) == 0 else 1


def _wait(run: RunDir, follower: Follower, seen: View) -> View:
    """Until the attempt has ended and its record is closed."""
    attempt = seen.attempt
    wanted_s = None
    with contextlib.suppress(configuration.ConfigError):  # deleted, say: the stop was asked
        wanted_s = configuration.load(run.config(attempt), lenient=True).watch.grace_s
    grace_s = grace.grace_s(wanted_s, seen.plan, follower.state)
    deadline = time.monotonic() + grace_s + PATIENCE_S
    while time.monotonic() < deadline:
        seen = _look(follower)
        if seen.attempt != attempt or (seen.state in END_STATES and not run.lock_is_held()):
            return seen
        time.sleep(0.1)
    raise RunDirError(
        f"{run.id}: has not ended after {grace_s + PATIENCE_S:.0f} s; look at {run.path}"
    )


def _look(follower: Follower) -> View:
    follower.poll()
    return view(follower.state, time.time(), follower.liveness())
