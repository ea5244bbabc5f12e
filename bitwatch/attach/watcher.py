"""Watches a training that bitwatch did not start, and writes its record.

    python -m bitwatch.attach.watcher DIRECTORY

A child of a viewer, which holds the other end of its standard input: when that closes, it leaves.
It holds the run's lock, so that of several viewers one has it write. Towards the training it only
looks: nothing is signalled, traced or written.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from pathlib import Path

import msgspec

from bitwatch import small
from bitwatch.attach import foreign
from bitwatch.attach.family import Family
from bitwatch.attach.log_alert import LogAlert
from bitwatch.attach.log_watch import LogWatch, WatchedLog, listener
from bitwatch.attach.loss_alerts import LossAlerts
from bitwatch.attach.past import Past
from bitwatch.attach.standstill import Standstill
from bitwatch.attach.steps import Restart
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import Lock, RunDir, RunDirError
from bitwatch.record.samples import SampleWriter
from bitwatch.record.state import AttemptState
from bitwatch.supervise import begin, control, ending, notify, reaper
from bitwatch.supervise.sensor import Sensor

LOGS_S = 0.25  # between two looks at the logs
TICK_S = 1.0
GROWS_S = 10.0  # a log that grows without a word that is understood is told of so often
RETELL_S = 30.0
SAVE_S = 5.0
GONE_S = 0.8  # after the last process: what it printed last may still be on its way
SETTLED_S = 30.0  # a log alone that has said how it ended, and says nothing more
LOCKED, UNUSABLE = 4, 2
DONE = {"signalled": "signal", "cleaned": "clean"}  # requests to write down an action


class Watcher:
    def __init__(self, run: RunDir, lock: Lock) -> None:
        self.run = run
        self._lock = lock
        self._follower = Follower(run)
        self._follower.poll()
        state = self._follower.state
        self.attempt = state.newest_attempt() or 1
        known = state.journal.attempts.get(self.attempt, AttemptState())
        self._started = known.started or events.AttemptStarted(attempt=self.attempt)
        self._is_closed = known.ended is not None
        self._notifier = notify.Notifier(notify.handed_down(), run)
        self._journal = self._notifier.journal(run)
        self._samples = SampleWriter(run.samples)
        self._rank0 = JournalWriter(run.rank(self.attempt, 0))
        self.family = Family(run, state, self.attempt, self._journal, self._samples)
        first = state.ranks_of(self.attempt).get(0)
        reached = first.step.step if first and first.step else 0
        self._has_model = first is not None and first.model is not None
        self.logs = LogWatch(run, self.family.ranks, reached)
        self._log_alert = LogAlert(state, self.attempt)
        self._standstill = Standstill(run, self._journal, self.attempt, state)
        self._losses = LossAlerts(self._journal, self.attempt, state)
        self._past: Past | None = None
        self._past_of = self.attempt
        self._looked_back = False
        self._ranks_then: frozenset[tuple[int, int]] = frozenset()
        self._sensor = Sensor(TICK_S)
        self._server = control.Server(control.socket_path(run.path))
        self._told_at = time.monotonic()
        self._retell_at = self._save_at = 0.0
        self._gone_since = 0.0
        self._over = False

    def watch(self) -> None:
        """Until the viewer has gone, or nothing is left to be watched."""
        selector = selectors.DefaultSelector()
        selector.register(0, selectors.EVENT_READ, "viewer")
        self._server.listen(selector, "control")
        self._sensor.start(selector)
        tick_at = 0.0
        while not self._over and not self._lock.is_deleted():
            for key, _ in selector.select(LOGS_S if tick_at else 0.0):
                if key.data == "viewer" and not os.read(0, 4096):
                    self.tick()  # what has ended until now is on record
                    return
                if key.data == "control":
                    self._answer()
                elif key.data == "sensor":
                    for gpus in self._sensor.read(selector):
                        self._samples.write(gpus)
            if time.monotonic() >= tick_at:
                tick_at = time.monotonic() + TICK_S
                self.tick()
                for gpus in self._sensor.check(selector):
                    self._samples.write(gpus)
                self._server.listen(selector, "control")
            self.read_logs()

    def close(self) -> None:
        self._sensor.stop()
        if self._past:
            self._past.leave()
            if self._past.done and not self._past.trouble:
                self._take_past()
        self.logs.close()
        self._server.close()
        self._samples.close()
        self._rank0.close()
        self._notifier.leave(lambda: None, 0.0)
        self._journal.close()

    # -- what is looked at ------------------------------------------------------------------

    def tick(self) -> None:
        """A look at the processes, and at what follows from them and from the logs."""
        for ended in reaper.reap():
            self._sensor.note_exit(ended.pid)
            self._notifier.note_exit(ended)
        if self.family.is_known:
            self.family.look()
            self.family.tree.sample(self._sensor.latest)
            ranks = self.family.rank_keys()
            if ranks - self._ranks_then:
                self.logs.may_restart()
            self._ranks_then = ranks or self._ranks_then
            self.logs.ranks_known = bool(self._ranks_then)
            self.logs.know_ranks(self.family.ranks)
        self.logs.add(self.family.logs, self.attempt)
        if self._past and self._past.done:
            self._take_past()
        self._follower.poll()
        if self.family.is_known and not self._is_closed:
            self._standstill.look(self._follower.state)
        if not self._is_closed:
            self._losses.look(self._follower.state)
        self._judge()
        self._retell()
        alert = None if self._is_closed else self._log_alert.look(self.logs.troubles, self.attempt)
        if alert is not None:
            self._journal.write(alert)
        if time.monotonic() >= self._save_at:
            self._save_at = time.monotonic() + SAVE_S
            self.logs.save_places()

    def read_logs(self, *, final: bool = False) -> None:
        """Writes down what they say since the last call."""
        before = self.logs.grew_at
        for told in self.logs.new(final=final):
            self._told_at = time.monotonic()
            if isinstance(told, Restart):
                self._begin_attempt(told)
            elif isinstance(told, events.Alert):
                self._journal.write(msgspec.structs.replace(told, attempt=self.attempt))
            else:
                self._go_on_after_end(told)
                self._has_model = self._has_model or isinstance(told, events.ModelBuilt)
                self._rank0.write(told)
        if not self._looked_back and self.logs.grew_at:
            self._looked_back = True
            self._look_back()
            self.logs.save_places()
        if self.logs.grew_at > before and time.monotonic() - self._told_at >= GROWS_S:
            self._told_at = time.monotonic()
            leading = self.logs.leading
            stepped = leading is not None and leading.translator.steps.newest is not None
            self._rank0.write(
                events.Phase(t=self.logs.grew_at, name="train" if stepped else "start")
            )

    def _go_on_after_end(self, told: events.Record) -> None:
        """A log that was thought to have ended takes another step."""
        if self._is_closed and not self.family.is_known and isinstance(told, events.Step):
            self._begin_attempt(Restart("its log goes on"))

    def _look_back(self) -> None:
        """Reads what the leading log said before its newest lines, behind what is new."""
        log: WatchedLog | None = self.logs.leading
        if log is not None and log.gap is not None:
            ranks, t = self.family.ranks, (log.grew_at or time.time()) - 1.0
            self._past, self._past_of = Past(log.path, log.gap, listener(), ranks, t), self.attempt
            self._past.start()

    def _take_past(self) -> None:
        past, self._past = self._past, None
        if past is None:
            return
        path = self.run.history(self._past_of)
        with contextlib.suppress(OSError):  # a full disk: the curve begins later
            before = small.read(path) if path.exists() else b""
            rundir.write_whole(path, before + past.encoded())
        for record in past.others:
            if isinstance(record, events.Alert):
                self._journal.write(msgspec.structs.replace(record, attempt=self._past_of))
            elif not isinstance(record, events.ModelBuilt) or not self._has_model:
                self._rank0.write(record)
        if past.starts:
            text = f"its log tells of {past.starts} earlier attempt{'s'[: past.starts - 1]}"
            self._rank0.write(events.Note(text=text))

    # -- attempts ---------------------------------------------------------------------------

    def _judge(self) -> None:
        """Whether the attempt has ended, or all there is to watch."""
        if not self.family.is_known:
            said = self.logs.verdict()
            if said and not self._is_closed and time.time() - self.logs.grew_at >= SETTLED_S:
                self._end(*said)
            return
        state = self._follower.state
        if not self.family.living():
            self._gone_since = self._gone_since or time.monotonic()
            if time.monotonic() - self._gone_since >= GONE_S:
                self._finish()
        elif not self._is_closed and (left := self.family.left_behind(state)):
            self._gone_since = 0.0
            self._end("lost", left)
        else:
            self._gone_since = 0.0

    def _finish(self) -> None:
        """Nothing of it lives any more."""
        self._over = True
        self.family.tree.close()
        if self._is_closed:
            return
        self.read_logs(final=True)
        if said := self.logs.verdict():
            self._end(*said)
            return
        last = self.logs.last_line()
        words = f"last line: {last[: ending.LINE_CHARACTERS]}" if last else "there is no line in it"
        if not self.logs.logs:
            self._end("lost", "its processes have ended, and no log of it is known")
        else:
            self._end("lost", f"its processes have ended and its log does not say how; {words}")

    def _end(self, state: events.EndState, cause: str) -> None:
        self._is_closed = True
        self._follower.poll()
        ended = (state, cause)
        ending.write(
            self.run, self._journal, self._follower.state, self.attempt, ended, "not our child"
        )

    def _begin_attempt(self, restart: Restart) -> None:
        if not self._is_closed:
            self._notifier.goes_on = True
            self._end(*(restart.ended or ("lost", restart.why)))
            self._notifier.goes_on = False
        self.attempt = rundir.new_attempt(self.run)
        self._is_closed = False
        self._started = msgspec.structs.replace(
            self._started,
            attempt=self.attempt,
            cause=restart.why,
            by="its log",
            t=time.time(),
            m=time.monotonic(),
        )
        self._journal.write(self._started, last_word=True)
        self._rank0.close()
        self._rank0 = JournalWriter(self.run.rank(self.attempt, 0))
        self._has_model = False
        if self.family.is_known:
            self.family.turn_to(self.attempt)
            self.family.look()
        self._ranks_then = self.family.rank_keys()
        self._standstill = Standstill(self.run, self._journal, self.attempt, self._follower.state)
        self._losses = LossAlerts(self._journal, self.attempt, self._follower.state)
        self.logs.begin_attempt(self.attempt)

    def _retell(self) -> None:
        """What has become known of the attempt since it was begun: how many ranks and workers
        there are, how many steps there will be, how many lie between two lines."""
        told, leading = self._started, self.logs.leading
        if self._is_closed:
            return
        ranks = self.family.ranks or max(told.ranks, leading.translator.ranks if leading else 0)
        workers = max(told.workers, foreign.workers_of(list(self.family.members)))
        are_there = (ranks, workers) == (told.ranks, told.workers)
        if are_there and time.monotonic() < self._retell_at:
            return
        known = msgspec.structs.replace(
            told,
            steps=(leading.translator.steps.total if leading else 0) or told.steps,
            log_every=leading.translator.steps.every if leading else told.log_every,
            workers=workers,
            ranks=ranks,
        )
        if known != told:
            self._started = known
            self._journal.write(known)
            self._retell_at = time.monotonic() + RETELL_S

    # -- the socket -------------------------------------------------------------------------

    def _answer(self) -> None:
        received = self._server.receive()
        if received is None:
            return
        peer, request = received
        ok, text = True, ""
        if name := DONE.get(request.command):
            done = events.Action(name=name, by=request.by, on=request.on, result=request.result)
            ok = self._journal.write(done)
            text = "" if ok else f"{self._journal.path}: the disk is full"
        elif request.command != "status":
            ok, text = False, f"{self.run.id}: {begin.NOT_OURS}"
        control.reply(peer, control.Answer(ok, text, pid=os.getpid(), attempt=self.attempt))


def main(arguments: list[str]) -> int:
    run = RunDir(Path(arguments[0]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        lock = Lock(run)
        watcher = Watcher(run, lock)
    except rundir.LockHeld as error:
        print(error, file=sys.stderr)
        return LOCKED
    except (RunDirError, OSError) as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    try:
        watcher.watch()
    except RunDirError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    finally:
        watcher.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
