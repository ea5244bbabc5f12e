"""The face without a screen: the same view, as lines, in the foreground.

What the run does goes to stdout, what bitwatch itself has to say to stderr. The first SIGINT
or SIGTERM asks for a stop with a checkpoint, the second stops at once, SIGHUP leaves the run
going. A reader that closes its pipe leaves the run going too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

from bitwatch.lines import Lines, summary
from bitwatch.record import stops
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES, View, view
from bitwatch.supervise import stopping
from bitwatch.text import literal

POLL_S = 0.2
INTERRUPTED = 130


def follow(run: RunDir, attempt: int, signals: Signals) -> int:
    """Prints the attempt, and those that it is relaunched as, until the end, passing signals on
    as stops; the exit code."""
    lines, follower = Lines(run.path, terminal_width()), Follower(run)
    try:
        while True:
            signals.act(run, attempt)
            if signals.hung_up:
                return 0
            held = run.lock_is_held()  # asked first: who has let go has written all
            news = follower.poll()
            seen = view(follower.state, time.time(), follower.liveness())
            attempt = max(attempt, seen.attempt)
            if seen.attempt < attempt and not held:
                said = f"{run.id}: its supervisor ended before attempt {attempt} began"
                say(f"{said}; see {run.supervisor_log}")
                return 1
            if seen.attempt == attempt:  # a resumed run shows its last one until this begins
                for line in lines.new(seen):
                    print(line, flush=True)
                if seen.state in END_STATES and not run.lock_is_held():
                    break
            if not news:
                signals.wait(POLL_S)
        for line in summary(seen):
            print(line, flush=True)
    except OSError as error:  # a closed pipe, or a log on a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the exit does not complain
        say(
            f"cannot write any more ({error.strerror}); {run.id} goes on, "
            f"`bitwatch attach {run.id}` shows it and `bitwatch stop {run.id}` stops it"
        )
        return 0
    return exit_code(seen, signals.asked_now)


def terminal_width() -> int | None:
    """Columns of the terminal on stdout; None when it is none: a log has any width."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return None


def exit_code(seen: View, interrupted: bool = False) -> int:
    """0 done, or stopped with a whole checkpoint; 130 ended by a second SIGINT; 1 failed."""
    if stops.lost_nothing(seen.state, seen.cause):
        return 0
    return INTERRUPTED if interrupted else 1


def say(text: str) -> None:
    """A diagnostic, on stderr; a closed stderr is no reason to fail."""
    with contextlib.suppress(OSError):
        print(f"bitwatch: {literal(text)}", file=sys.stderr, flush=True)


class Signals:
    """Takes signals from its creation on; `act` turns them into stops of a run."""

    def __init__(self) -> None:
        self._pending: list[int] = []
        self._asked = 0
        self.hung_up = False
        self.asked_now = False
        self._reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(which, lambda which, _: self._pending.append(which))

    def wait(self, limit_s: float) -> None:
        """Until a signal comes or the limit has passed."""
        if select.select([self._reading], [], [], limit_s)[0]:
            os.read(self._reading, 512)

    def act(self, run: RunDir, attempt: int) -> None:
        while self._pending:
            which = signal.Signals(self._pending.pop(0))
            if which == signal.SIGHUP:
                self.hung_up = True
                continue
            self._asked += 1
            now = self._asked > 1
            self.asked_now = self.asked_now or (now and which == signal.SIGINT)
            try:
                stopping.ask(run, attempt, f"{which.name} to bitwatch run", now=now)
            except OSError as error:
                say(f"{run.stop(attempt)}: {error.strerror}; cannot ask for a stop")
            say("stopping at once" if now else "stopping with a checkpoint; again stops at once")
