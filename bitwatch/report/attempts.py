"""The attempts that a log tells of: where one begins, what it was to train, how far it came.

A new target, a training loop that begins again, a step number that falls back to the middle and
a restart by torchrun begin one. Lines that several ranks print at once do not, and where a step
number begins again without more it may as well be an epoch's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from bitwatch.attach.said import Line, Said
from bitwatch.report.facts import Attempt, LogSeen, StepRun, Story, position_of
from bitwatch.report.standard_model import same

AT_ONCE_S = 30.0  # in which the ranks of one attempt print the same line
CLOSE_S = 900.0  # between the end of a log and the beginning of the one that continues it
GAP_S = 600.0  # between two steps: longer than an evaluation, as a restart may take
BANNERS = ("target", "configuration", "hardware", "built", "begins", "restart")
ENDS = ("failure", "exception", "out-of-memory", "timeout")
PROBLEMS = (*ENDS, "signal", "error")


def stories(logs: Sequence[LogSeen], *, listed: bool = False) -> list[Story]:
    """Logs that continue one another are one story, whatever the order they are given in.
    `listed`: a listing of processes comes with them, as evidence of one training does."""
    told: list[Story] = []
    for log in sorted(logs, key=_place):
        for story in told:
            if _continues(story.logs[-1], log, listed):
                story.logs.append(log)
                break
        else:
            told.append(Story(logs=[log]))
    for story in told:
        story.mixed = [line for log in story.logs for line in log.mixed]
        story.attempts = _Teller(mixed=bool(story.mixed)).tell(story.logs)
    return told


def _place(log: LogSeen) -> tuple[bool, float, int, str]:
    """By the first time in it; without any, older rotations (train.log.2) before newer ones."""
    begins = log.begins if log.begins is not None else log.modified or 0.0
    return log.begins is None, begins, -_rotation(log.path), log.path


def _rotation(path: str) -> int:
    found = re.search(r"\.(\d{1,4})$", path)
    return int(found[1]) if found else 0


def _continues(before: LogSeen, log: LogSeen, listed: bool) -> bool:
    """Rotations of one log do. Others only if nothing says that the first was all, and a listing
    comes with them: two trainings, one after the other, are not one that was changed."""
    kin = _stem(before.path) == _stem(log.path)
    if before.ends is None or log.begins is None:
        return kin and before.ends is None and log.begins is None and _goes_on(before, log)
    close = listed and log.begins - before.ends <= CLOSE_S and not _finished(before)
    return log.begins >= before.ends and (kin or close)


def _goes_on(before: LogSeen, log: LogSeen) -> bool:
    """Whether the steps of a log begin behind those of the other. Names do not tell it: out.2 and
    out.1 may be of two ranks."""
    last = [position_of(run.last) for run in before.said if isinstance(run, StepRun)]
    first = [position_of(run.first) for run in log.said if isinstance(run, StepRun)]
    if not last or not first or last[-1] is None or first[0] is None:
        return False
    return first[0] > last[-1]


def _finished(log: LogSeen) -> bool:
    """Whether its last word of a training is that it is done."""
    for said in reversed(log.said):
        if isinstance(said, StepRun) or said.what in BANNERS:
            return False
        if said.what == "done":
            return True
    return False


def _stem(path: str) -> str:
    """Without what a rotation adds: train.log.1 and train.log-20250824 are train.log."""
    return re.sub(r"(?:[.-]\d+)+$", "", str(PurePath(path)))


class _Teller:
    """Folds what logs say into attempts."""

    def __init__(self, mixed: bool) -> None:
        self._mixed = mixed
        self._attempts: list[Attempt] = []
        self._over = False
        self._announced = False  # something that a training says when it begins, since a step
        self._lowest: dict[object, float] = {}  # a step that an epoch may begin with

    def tell(self, logs: Sequence[LogSeen]) -> list[Attempt]:
        for log in logs:
            for said in log.said:
                if isinstance(said, StepRun):
                    self._steps(said)
                else:
                    self._hear(said)
            if self._attempts and log.last is not None:
                self._attempts[-1].last = log.last
        return self._attempts

    def _hear(self, said: Said) -> None:
        if said.what == "warning" and not self._attempts:
            return  # of a program that may be no training
        if why := self._begins(said):
            self._begin(said.line, why)
        self._attempts[-1].last = said.line
        self._note(self._attempts[-1], said)

    def _begins(self, said: Said) -> str:
        """Why a new attempt begins with this; empty when it belongs to the current one."""
        if not self._attempts:
            return "its first sign in the log"
        now = self._attempts[-1]
        match said.what:
            case "target":
                if now.target is None:
                    again = self._over or bool(now.steps or now.built)
                else:
                    again = not same(now.target, said) or self._moved_on(now, said.line)
                return "a target is announced again" if again else ""
            case "configuration" | "hardware":
                known = now.configuration if said.what == "configuration" else now.hardware
                again = self._over or (known is not None and self._moved_on(now, said.line))
                return f"its {said.what} is announced again" if again else ""
            case "built":
                return "a model is built again" if self._over else ""
            case "begins":
                again = self._over or (now.loop is not None and bool(now.steps))
                return "a training begins again" if again else ""
            case "restart":
                return "" if now.restart is not None and now.begins == now.last else "a restart"
        return ""

    def _moved_on(self, now: Attempt, line: Line) -> bool:
        """Whether so much has happened that the same line is not another rank's."""
        if now.steps or now.built or now.loop:
            return True
        begins = now.begins.t
        return begins is not None and line.t is not None and line.t - begins > AT_ONCE_S

    def _begin(self, line: Line, why: str) -> None:
        number = len(self._attempts) + 1
        self._attempts.append(Attempt(number=number, begins=line, last=line, why=why))
        self._over = False
        self._lowest = {}

    def _steps(self, run: StepRun) -> None:
        key = (run.first.dialect, run.first.values.get("steps"))
        if not self._attempts:
            self._begin(run.first.line, "its first sign in the log")
        elif not self._mixed and run.fell_back and self._attempts[-1].steps:
            if self._is_restart(run, key):
                self._begin(run.first.line, "its step number falls back")
            else:
                self._attempts[-1].again.append(run.first)
        now = self._attempts[-1]
        now.steps.append(run)
        now.last = run.last.line
        self._over = self._announced = False
        first, last = position_of(run.first), position_of(run.last)
        if first is not None and last is not None:
            stride = (last - first) / max(1, run.count - 1)
            self._lowest.setdefault(key, first + stride)

    def _is_restart(self, run: StepRun, key: object) -> bool:
        """Whether steps that fall back are of another attempt. An epoch, or an evaluation, that
        counts its own steps begins with the first; a checkpoint lies somewhere behind it."""
        if self._over or self._announced:
            return True
        first, lowest = position_of(run.first), self._lowest.get(key)
        if first is not None and lowest is not None and first > lowest:
            return True
        before, now = self._attempts[-1].last.t, run.first.line.t
        return before is not None and now is not None and now - before > GAP_S

    def _note(self, now: Attempt, said: Said) -> None:
        self._announced = self._announced or said.what in BANNERS
        match said.what:
            case "target":
                now.target = now.target or said
            case "configuration":
                now.configuration = now.configuration or said
            case "hardware":
                now.hardware = now.hardware or said
            case "built":
                now.built.append(said)
            case "begins":
                now.loop = now.loop or said
            case "restart":
                now.restart = now.restart or said
            case "evaluation":
                now.evaluations += 1
            case "checkpoint":
                now.checkpoint = said
            case "done":
                now.done = said
            case "workers-exceed-shards":
                now.shards.append(said)
            case "warning":
                now.warnings.append(said)
        if said.what in PROBLEMS:
            now.problems.append(said)
        if said.what in ENDS or said.what == "done":
            self._over = True
