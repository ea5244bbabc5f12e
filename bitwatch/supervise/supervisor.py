"""The detached process that owns a run: launches an attempt, watches it, writes its record.

    python -m bitwatch.supervise.supervisor DIRECTORY ATTEMPT launch|adopt|relaunch BY CAUSE

`launch` starts torchrun. `adopt` takes over an attempt whose supervisor has died: the same
loop, with processes that are no children of ours, so their exit status stays unknown.
`relaunch` makes the next attempt of one that has ended. One thread, one loop: it wakes when
a child ends, a request comes, the sensor speaks, or a tick has passed.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from pathlib import Path

from bitwatch import config as configuration
from bitwatch.record import events, kernel, rundir
from bitwatch.record.follow import Follower, Liveness, lives
from bitwatch.record.rundir import Lock, RunDir
from bitwatch.record.samples import SampleWriter
from bitwatch.record.view import View, view
from bitwatch.supervise import (
    begin,
    cleanup,
    control,
    ending,
    grace,
    holding,
    launch,
    leftovers,
    notify,
    own_process,
    reaper,
    relaunch,
    requests,
    stalls,
    stopping,
)
from bitwatch.supervise.escalation import Escalation
from bitwatch.supervise.sensor import Sensor
from bitwatch.supervise.surroundings import Surroundings
from bitwatch.supervise.tree import Tree
from bitwatch.supervise.watch import Watch

TRACKERS_S = 2.0  # a spared resource tracker leaves by itself in milliseconds
LOCKED, UNUSABLE = 4, 2


class Supervisor:
    """State of the loop for one attempt."""

    def __init__(
        self, run: RunDir, attempt: int, lock: Lock, notifier: notify.Notifier | None = None
    ) -> None:
        self.run = run
        self.lock = lock
        self.attempt = attempt
        self.config = configuration.load(run.config(attempt), lenient=True)
        self.plan = launch.plan_of(run, attempt)
        self.notifier = notifier or notify.Notifier("", run)
        self.journal = self.notifier.journal(run)
        self.samples = SampleWriter(run.samples)
        self.follower = Follower(run)
        self.tree = Tree(self.journal, self.samples, attempt)
        self.watch = Watch(self.journal, self.config)
        self.stalls = stalls.Stalls(run, self.journal, attempt)
        self.surroundings = Surroundings(run, attempt, self.config)
        self.left = leftovers.Before(attempt)
        self.sensor = Sensor(self.config.watch.sample_s)
        self.agent: tuple[int, int] | None = None
        self.agent_exit: reaper.Exit | None = None
        self.server = control.Server(control.socket_path(run.path))
        self.escalation = Escalation(run, attempt, self._grace_s, self.journal)
        self.wish: relaunch.Wish | None = None  # that was heard
        self.identified = False
        self.refused = ""  # why the agent was not let go

    # -- beginning ----------------------------------------------------------------------

    def launch(self, by: str, cause: str, relaunch_of: int = 0, correction: str = "") -> None:
        on_cpu = self.plan.get("device") != "cuda"
        self.follower.poll()  # earlier attempts have measured their checkpoints
        relaunch.drop_unstarted(self.run, self.follower.state, but=self.attempt)
        self.tree.remember(self.follower.state)
        grace_s = self._grace_s()
        if self.attempt == 1:
            self.journal.write(events.RunStarted(run=self.run.id, name=self.config.run.name))
        c = self.config
        started = launch.started(self.run, self.attempt, c, on_cpu, grace_s)
        started.by, started.cause = by, cause
        started.relaunch_of, started.correction = relaunch_of, correction
        # Without it and the agent's start nobody could find what goes on.
        told = self.journal.write(started, last_word=True)
        self.journal.write(events.DataPlanned(attempt=self.attempt, plan=self.plan))
        agent = launch.start_agent(self.run, self.attempt, c, on_cpu, grace_s)
        self.agent = (agent.pid, kernel.starttime(agent.pid) or 0)
        self._look()
        if told and self.agent in self.tree.told:
            agent.go()  # recorded: should we die from now on, it can be found
        else:
            agent.refuse()
            self.refused = f"nothing was launched: {self.run.journal}: the disk is full"

    def adopt(self, by: str) -> bool:
        """False when another one took it over before, and has brought it to its end."""
        self.follower.poll()
        if ending.is_over(self.follower.state, self.attempt):
            return False
        self.tree.adopt(self.follower.state)
        raised = self.follower.state.journal.alerts.items()
        self.watch.adopt(alert for (attempt, _), alert in raised if attempt == self.attempt)
        self.escalation.adopt(self.follower.state)
        for key, (role, _, _) in self.tree.roles.items():
            if role == "agent" and lives(*key):
                self.agent = key
        self.journal.write(
            events.Action(name="adopt", by=by, on=f"attempt {self.attempt}", result="taken over")
        )
        return True

    # -- the loop -----------------------------------------------------------------------

    def supervise(self) -> tuple[str, str]:
        """Until the attempt has ended and its record is closed; its state and cause."""
        selector = selectors.DefaultSelector()
        wake, told = own_process.signal_pipe()
        selector.register(wake, selectors.EVENT_READ, "signal")
        self.server.listen(selector, "control")
        self.sensor.start(selector)
        tick_s = min(1.0, self.config.watch.sample_s)
        next_tick = 0.0
        while True:
            for key, _ in selector.select(max(0.0, next_tick - time.monotonic())):
                if key.data == "signal":
                    self._signals(os.read(wake, 512))
                elif key.data == "control":
                    self._answer()
                elif key.data == "sensor":
                    for gpus in self.sensor.read(selector):
                        self.samples.write(gpus)
                        self._identify(gpus)
            self._reap()
            if time.monotonic() >= next_tick or self._ended():
                next_tick = time.monotonic() + tick_s
                self.server.listen(selector, "control")
                self._tick(selector)
            if self._ended():
                break
        selector.close()
        signal.set_wakeup_fd(-1)
        os.close(wake)
        os.close(told)
        return self._finish()

    def _tick(self, selector: selectors.BaseSelector) -> None:
        self.follower.poll()
        self._look()
        self.tree.sample(self.sensor.latest)
        for gpus in self.sensor.check(selector):
            self.samples.write(gpus)
        view, now = self._view(), time.time()
        if self.stalls.look(view, self.follower.state, now):
            self.follower.poll()
            view = self._view()  # in which they may be found to compile
        self.watch.look(view, now, self.surroundings.look(view))
        self.look_for_stop()

    def _look(self) -> None:
        known = {pid: "sensor" for pid in self.sensor.pids}
        if self.agent:
            known[self.agent[0]] = "agent"
        self.tree.look(known, self.follower.state, self.notifier.pids)

    def _view(self) -> View:
        ranks = self.follower.state.ranks_of(self.attempt)
        live = frozenset(r for r, s in ranks.items() if (s.pid, s.starttime) in self.tree.own)
        left = self.left.look(self.follower.state)
        agent = self.agent is not None
        here = Liveness(supervisor=True, agent=agent, ranks=live, leftovers=left)
        return view(self.follower.state, time.time(), here)

    def _ended(self) -> bool:
        """The agent and every rank that ever spoke are gone."""
        if self.agent and not reaper.runs(*self.agent):
            self._reap()  # it may have ended since the last look
            self.agent_exit = self.tree.exit_of(self.agent)
            self.agent = None
        if self.agent:
            return False
        ranks = self.follower.state.ranks_of(self.attempt).values()
        return not any(rank.pid and lives(rank.pid, rank.starttime) for rank in ranks)

    def _identify(self, gpus: events.Gpus) -> None:
        """Once a run: which GPUs and which driver it has, for run.json."""
        if self.identified or gpus.source != "nvml" or not gpus.gpus:
            return
        self.identified = True
        begin.name_gpus(self.run, gpus)

    # -- stopping -----------------------------------------------------------------------

    def _grace_s(self) -> float:
        return grace.grace_s(self.config.watch.grace_s, self.plan, self.follower.state)

    def ask_to_stop(self, by: str, *, now: bool = False) -> None:
        """As anybody does, by the file; what cannot be written is done at once, by signals."""
        try:
            stopping.ask(self.run, self.attempt, by, now=now)
        except OSError:
            self.escalation.take(stopping.Stop(by=by, t=time.time(), now=True))

    def look_for_stop(self) -> None:
        if self.lock.is_deleted() and not stopping.read(self.run, self.attempt):
            # Nobody could see or stop it any more: it ends with a checkpoint, if that still
            # has a place.
            self.ask_to_stop(stopping.DELETION)
        if self.escalation.look(self.agent):
            left = cleanup.end(self._leftovers(), 0.0, self._reap)
            self.escalation.killed(len(left))

    def _leftovers(self) -> list[tuple[int, int]]:
        self.follower.poll()
        self._look()
        return cleanup.ours(self.tree.own, self.tree.roles)

    # -- ending -------------------------------------------------------------------------

    def _finish(self) -> tuple[str, str]:
        """Ends what is left, says how it ended, and closes the record."""
        for _ in range(5):  # what was just being forked is seen by the next scan
            if not (targets := self._leftovers()):
                break
            cleanup.end(targets, self.config.watch.leftover_grace_s, self._reap)
        self._wait_for_trackers()
        self.follower.poll()
        self._look()
        state, cause = ending.judge(
            self.follower.state,
            self.attempt,
            self.config.parallel.ranks,
            self.agent_exit,
            self.run.logs(self.attempt),
            self.escalation.forced,
        )
        if self.refused:
            state, cause = "failed", self.refused
        if state == "failed" and not (self.agent_exit and self.agent_exit.signal):
            self.follower.poll()  # who died first, and how, is known only now
            seen = self._view()
            self.watch.look(seen, time.time(), self.surroundings.look(seen))
        self.watch.look(View(attempt=self.attempt), time.time())
        ending.write(
            self.run,
            self.journal,
            self.follower.state,
            self.attempt,
            (state, cause),
            reaper.describe(self.agent_exit),
        )
        with contextlib.suppress(OSError):  # a folder that is read-only keeps it
            self.run.reserve.unlink(missing_ok=True)
        self.sensor.stop()
        self.server.close()
        return state, cause

    def close(self) -> None:
        """The record's files: a next attempt opens its own."""
        self.journal.close()
        self.samples.close()

    def _wait_for_trackers(self) -> None:
        deadline = time.monotonic() + TRACKERS_S
        while time.monotonic() < deadline:
            self._reap()
            self._look()
            roles = [self.tree.roles.get(key, ("",))[0] for key in self.tree.own]
            if cleanup.TRACKER not in roles:
                return
            time.sleep(0.02)

    # -- what wakes the loop ------------------------------------------------------------

    def _reap(self) -> None:
        for ended in reaper.reap():
            self.tree.note_exit(ended)
            self.sensor.note_exit(ended.pid)
            self.notifier.note_exit(ended)

    def _signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number in (signal.SIGTERM, signal.SIGINT):
                self.ask_to_stop(f"{signal.Signals(number).name} to the supervisor")

    def _answer(self) -> None:
        if received := self.server.receive():
            peer, request = received
            control.reply(peer, requests.answer(self, request))


def main() -> None:
    directory, attempt, how, by, cause = sys.argv[1:6]
    own_process.settle()
    run = RunDir(Path(directory))
    try:
        lock = holding.lock(run)
    except rundir.LockHeld as error:
        print(error, file=sys.stderr)
        sys.exit(LOCKED)
    except rundir.RunDirError as error:
        print(error, file=sys.stderr)
        sys.exit(UNUSABLE)
    try:
        _own(run, int(attempt), lock, how, by, cause)
    except rundir.RunDirError as error:
        print(error, file=sys.stderr)
        sys.exit(UNUSABLE)
    lock.release()


def _own(run: RunDir, attempt: int, lock: Lock, how: str, by: str, cause: str) -> None:
    """Attempt after attempt, as long as somebody wishes for a next one."""
    following: relaunch.Launch | None = relaunch.Launch(attempt, by, cause)
    notifier = notify.Notifier(notify.handed_down(), run)
    if how == "relaunch":
        following = relaunch.of_ended(run, attempt, by)
    while following is not None:
        attempt = following.attempt
        supervisor = Supervisor(run, attempt, lock, notifier)
        if how == "adopt":
            goes_on = supervisor.adopt(by)
        elif goes_on := relaunch.still_wished(run, following, supervisor.journal):
            supervisor.launch(*following[1:])
        if not goes_on:
            supervisor.close()
            return
        how = "launch"
        ended = supervisor.supervise()
        following = relaunch.take_up(run, attempt, ended, supervisor.journal, supervisor.wish)
        if following is None:
            notifier.leave(supervisor._reap)
        supervisor.close()


if __name__ == "__main__":
    main()
