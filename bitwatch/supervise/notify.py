"""The command that the user wants run when something severe happens: notify_command of their file.

It is run by a process of its own (`notifying`), one at a time, and never waited for: the supervisor
hands over what is to be told, and hears of the end of that process from its one reaper.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from bitwatch import config as configuration
from bitwatch.record import events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.strict import ConfigError
from bitwatch.supervise import launch, reaper
from bitwatch.text import literal

HANDED_DOWN = "BITWATCH_NOTIFY_COMMAND"  # from whoever starts a supervisor; it goes no further
AGAIN_S = 600.0  # before the same alert is told again
WAITING = 8  # at most; what comes then is not told, and that is written down
TEXT_CHARACTERS = 2000
WORDS_CHARACTERS = 300
LEAVE_S = 2.0  # that the end of a run waits for its last command, to write down how it went
LOOK_S = 0.02
NAME = "notify"  # of the action


def hand_down(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a supervisor, with the command of the user's file as it is now. A file
    that is wrong is refused by the commands that launch; nothing else is held up by it."""
    kept = {key: value for key, value in environment.items() if key != HANDED_DOWN}
    with contextlib.suppress(ConfigError):
        if command := configuration.load_user().notify_command:
            kept[HANDED_DOWN] = command
    return kept


def handed_down() -> str:
    """For the process that it was handed to; its own children do not get it."""
    return os.environ.pop(HANDED_DOWN, "")


class Notifier:
    """Hears every record that is written, and tells of errors and of runs that failed or are lost;
    of a training of others only that it failed, since it is called lost where its log does not say
    how it ended. `goes_on`: what ends now begins again at once, and is not told. `pids` are the
    processes that tell now."""

    def __init__(self, command: str, run: RunDir) -> None:
        self._command = command
        self._run = run.id
        self._name, self._foreign = run.id, False
        with contextlib.suppress(RunDirError):
            identity = run.identity()
            self._name, self._foreign = identity.name, identity.foreign
        self.goes_on = False
        self._journal: JournalWriter | None = None
        self._attempt = 0
        self._raised: set[tuple[int, str]] = set()
        self._told: dict[tuple[int, str], float] = {}
        self._waiting: deque[dict[str, Any]] = deque()
        self._current = 0
        self._pipe = -1
        self.pids: set[int] = set()

    def journal(self, run: RunDir) -> JournalWriter:
        """One that it hears, and in which it writes down when the command fails."""
        self._journal = JournalWriter(run.journal, run.reserve, self.hear)
        return self._journal

    def hear(self, record: events.Record) -> None:
        if not self._command:
            return
        match record:
            case events.AttemptStarted() | events.AttemptEnded():
                self._attempt = record.attempt
            case events.Alert():
                key = record.attempt or self._attempt, record.id
                if record.cleared or record.severity != "error":
                    self._raised.discard(key)
                elif key not in self._raised:
                    self._raised.add(key)
                    self._tell(record.id, key[0], record.text, record.next)
            case events.RunEnded(state="failed" | "lost"):
                if self.goes_on or (self._foreign and record.state == "lost"):
                    return
                cause = f": {record.cause}" if record.cause else ""
                text = f"the run {'failed' if record.state == 'failed' else 'is lost'}{cause}"
                following = f"bitwatch report {self._run} says what happened"
                self._tell(f"run-{record.state}", self._attempt, text, following)

    def _tell(self, name: str, attempt: int, text: str, following: str) -> None:
        now = time.monotonic()
        if now - self._told.get((attempt, name), -AGAIN_S) < AGAIN_S:
            return
        self._told[attempt, name] = now
        job = self._job(name, attempt, text, following)
        if len(self._waiting) < WAITING:
            self._waiting.append(job)
        elif name.startswith("run-"):  # how it ended is worth more than what was wrong before
            self._waiting[-1] = job
        else:
            self._write_down(name, f"not told: {WAITING} others wait for the command already")
        self._go_on()

    def _job(self, name: str, attempt: int, text: str, following: str) -> dict[str, Any]:
        text, following = (literal(words)[:TEXT_CHARACTERS] for words in (text, following))
        told = {
            "ID": name,
            "SEVERITY": "error",
            "TEXT": text,
            "NEXT": following,
            "RUN": self._run,
            "NAME": self._name,
            "ATTEMPT": str(attempt),
        }
        return {
            "command": self._command,
            "text": f"{literal(self._name)}, attempt {attempt}: {text}\n",
            "environment": {f"BITWATCH_ALERT_{key}": value for key, value in told.items()},
        }

    def _go_on(self) -> None:
        if self._waiting and not self._current:
            self._start([self._waiting.popleft()])

    def _start(self, jobs: list[dict[str, Any]]) -> None:
        """What is told goes by a file that nobody else can open: untrusted text is in no command
        line, and neither is the command, which may hold a secret."""
        opened: list[int] = []
        try:
            reading, writing = os.pipe2(os.O_CLOEXEC)
            opened += [writing, reading]
            file = os.memfd_create("told")
            opened.append(file)
            with open(file, "wb", closefd=False) as lines:
                lines.write(b"".join(json.dumps(job).encode() + b"\n" for job in jobs))
            os.lseek(file, 0, os.SEEK_SET)
            self._current = os.posix_spawn(
                sys.executable,
                [sys.executable, "-m", "bitwatch.supervise.notifying"],
                launch.clean_environment(dict(os.environ)),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, file, 0),
                    (os.POSIX_SPAWN_DUP2, writing, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE],
            )
            opened.remove(reading)
        except OSError as error:  # too many processes or files, say
            for job in jobs:
                self._write_down(_id(job), f"not told: {error.strerror}")
            return
        finally:
            for fd in opened:
                os.close(fd)
        self.pids.add(self._current)
        os.set_blocking(reading, False)
        self._pipe = reading

    def note_exit(self, ended: reaper.Exit) -> None:
        """From the reaper. The next one begins."""
        self.pids.discard(ended.pid)
        if ended.pid != self._current:
            return
        said = b""
        with contextlib.suppress(BlockingIOError):
            while block := os.read(self._pipe, 1 << 16):
                said += block
        os.close(self._pipe)
        self._current, self._pipe = 0, -1
        results = [json.loads(line) for line in said.splitlines()]
        for result in results:
            if result["how"]:
                words = literal(result["words"])[-WORDS_CHARACTERS:]
                self._write_down(result["id"], result["how"] + (f": {words}" if words else ""))
        if not results:
            self._write_down("", f"the command was not run: {reaper.describe(ended)}")
        self._go_on()

    def _write_down(self, name: str, result: str) -> None:
        if self._journal is not None:
            action = events.Action(name=NAME, by="supervisor", on=name, result=result)
            self._journal.write(action)

    def leave(self, reap: Callable[[], object], limit_s: float = LEAVE_S) -> None:
        """The run is over. For a moment what was begun is waited for, to write down how it went;
        then one process gets all that is still to be told, and goes on without us."""
        deadline = time.monotonic() + limit_s
        while self._current and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            reap()
        if self._waiting:
            jobs = [{**job, "after": self._current} for job in self._waiting]
            self._waiting.clear()
            if self._pipe >= 0:
                os.close(self._pipe)
                self._pipe = -1
            self._start(jobs)
        self._journal = None


def _id(job: dict[str, Any]) -> str:
    return job["environment"]["BITWATCH_ALERT_ID"]
