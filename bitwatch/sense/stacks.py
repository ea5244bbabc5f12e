"""Where processes are: the stacks that they write when they are asked to, and what the kernel says.

A rank of ours writes the stacks of its threads to a file on SIGUSR1 (trainer.stacks). Without a
handler that signal kills, so it is sent only to exactly the process that has one, and to none that
is stopped or waits in the kernel: it could not answer. What is written there is text of somebody
else.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bitwatch import small
from bitwatch.sense.entry import opened
from bitwatch.sense.facts import Facts
from bitwatch.sense.processes import send_signal
from bitwatch.sense.stat import Stat, is_dead, read_raw, read_stat

ANSWER_S = 1.0  # for all that are asked together
STILL_S = 0.03  # an answer that has not grown for so long is whole
LOOK_S = 0.01
IDLE_TICKS_PER_S = 5.0  # of the 100 that a processor has: no work yet
BARRED_S = 0.2  # for which one that is not asked is looked at: many ticks of its processor's time
ANSWER_BYTES = 1 << 20  # of an answer, what is read
FILE_BYTES = 4 << 20  # a file of so many answers begins anew
STATUS_BYTES = 1 << 16
MOST_THREADS, MOST_FRAMES, MOST_CHARACTERS = 200, 100, 500

READ_ONLY = "read-only: a training that bitwatch did not start is not signalled"
ENDED = "it has ended"
STOPPED = "it is stopped by a signal"
IN_KERNEL = "it waits in the kernel and cannot answer"
NO_HANDLER = "it has no handler for the question, which would end it"
NOT_ALLOWED = "this user may not ask it"
NO_ANSWER = f"it has not answered within {ANSWER_S:.0f} s"

_THREAD = re.compile(r"(?:Current thread|Thread) (0x[0-9a-f]+)[^\n]*\(most recent call first\):")
_FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')


class Frame(NamedTuple):
    file: str
    line: int
    function: str


class Thread(NamedTuple):
    """`frames`: innermost first."""

    name: str
    frames: tuple[Frame, ...]


class Target(NamedTuple):
    """A rank, and where it answers: None for one that must not be asked, for a reason."""

    rank: int
    pid: int
    starttime: int
    path: Path | None
    barred: str = ""


class Look(NamedTuple):
    """What was found of one rank. `state` is the letter of /proc/PID/stat, empty when the process
    is gone; `works` whether it used a processor meanwhile. The first of `threads` is the main
    one; where there are none, `why` says why."""

    target: Target
    state: str
    threads: tuple[Thread, ...] = ()
    wchan: str = ""
    why: str = ""
    works: bool = False


class Asking:
    """Asks all at once as it is made. `is_over` never waits: call it again until it is true."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._questions = [_Question(target) for target in targets]
        self._until = time.monotonic() + ANSWER_S

    def is_over(self) -> bool:
        waiting = [question for question in self._questions if not question.is_answered()]
        return not waiting or time.monotonic() >= self._until

    def looks(self) -> list[Look]:
        return [question.look() for question in self._questions]


def ask(targets: Sequence[Target]) -> list[Look]:
    """Takes a second at most."""
    asking = Asking(targets)
    while not asking.is_over():
        time.sleep(LOOK_S)
    return asking.looks()


class _Question:
    def __init__(self, target: Target) -> None:
        self.target = target
        self._size, self._since = 0, 0.0
        self._ticks = 0
        self._begin = 0
        self._made = time.monotonic()
        self.why = self._ask()

    def _ask(self) -> str:
        """Empty when it was asked, else why not."""
        target = self.target
        stat = _stat(target)
        if stat is None:
            return ENDED
        self._ticks = stat.cpu_ticks
        if target.barred:
            return target.barred
        if stat.state in "Tt":
            return STOPPED
        if stat.state == "D":
            return IN_KERNEL
        if target.path is None or not handles(stat, signal.SIGUSR1):
            return NO_HANDLER
        self._begin = self._size = _begin_of_answer(target.path)
        return "" if send_signal(target.pid, target.starttime, signal.SIGUSR1) else NOT_ALLOWED

    def is_answered(self) -> bool:
        if self.why and self.why == self.target.barred:
            return time.monotonic() - self._made >= BARRED_S
        if self.why or self.target.path is None:
            return True
        size, now = _size(self.target.path), time.monotonic()
        if size != self._size:
            self._size, self._since = size, now
        still_s = max(now - self._since, _unwritten_s(self.target.path))
        return size > self._begin and still_s >= STILL_S

    def look(self) -> Look:
        threads: tuple[Thread, ...] = ()
        if not self.why and self.target.path is not None:
            threads = parse(_read(self.target.path, self._begin))
        stat = _stat(self.target)
        if stat is None:
            return Look(self.target, "", why=ENDED)
        why = self.why or ("" if threads else NO_ANSWER)
        # While one is looked at for longer, a thread of it that only keeps time may use ticks.
        looked_s = time.monotonic() - self._made
        idle_ticks = max(1.0, IDLE_TICKS_PER_S * looked_s) if self.target.barred else 0.0
        ticked = bool(self._ticks) and stat.cpu_ticks - self._ticks > idle_ticks
        works = stat.state == "R" or ticked
        return Look(self.target, stat.state, threads, Facts().wchan(stat), why, works)


def handles(stat: Stat, number: signal.Signals) -> bool:
    """Whether exactly this process has a handler for the signal, by the kernel's word."""
    try:
        with opened(stat) as entry:
            status = read_raw("status", entry.folder, STATUS_BYTES) or b""
    except OSError:
        return False
    found = re.search(rb"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)


def parse(text: str) -> tuple[Thread, ...]:
    """What faulthandler has written, the main thread first. It lists threads from the newest to
    the oldest, and the oldest is the main one."""
    found: dict[str, list[Frame]] = {}
    frames: list[Frame] = []
    for line in text.splitlines():
        if heading := _THREAD.fullmatch(line):
            found.pop(heading[1], None)  # somebody else has asked too: the later answer counts
            if len(found) == MOST_THREADS:
                break
            frames = found.setdefault(heading[1], [])
        elif (frame := _FRAME.fullmatch(line)) and len(frames) < MOST_FRAMES:
            number = int(frame[2]) if frame[2].isdecimal() and len(frame[2]) < 10 else 0
            frames.append(Frame(frame[1][-MOST_CHARACTERS:], number, frame[3][:MOST_CHARACTERS]))
    whole = [Thread(name, tuple(frames)) for name, frames in found.items() if frames]
    return tuple(reversed(whole))


def _stat(target: Target) -> Stat | None:
    """Of exactly this process, while anything of it lives."""
    stat = read_stat(target.pid)
    return None if stat is None or stat.starttime != target.starttime or is_dead(stat) else stat


def _begin_of_answer(path: Path) -> int:
    """Where the next answer will stand. The process appends, wherever the end is."""
    size = _size(path)
    if size <= FILE_BYTES:
        return size
    try:
        os.truncate(path, 0)
    except OSError:
        return size
    return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _unwritten_s(path: Path) -> float:
    """For how long nobody has written there, by the clock of its disk: 0 where that differs."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return 0.0


def _read(path: Path, begin: int) -> str:
    try:
        with small.opened(path) as file:
            file.seek(begin)
            return file.read(ANSWER_BYTES).decode(errors="replace")
    except OSError:
        return ""
