"""What earlier attempts of a run, and the newest earlier run of the same name, were to train."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bitwatch import small
from bitwatch.plan.guard import Target
from bitwatch.plan.result import ModelPlan
from bitwatch.record import rundir
from bitwatch.record.rundir import RunDir, RunDirError


class _Ranks(msgspec.Struct):
    ranks: int = 1


class _Planned(msgspec.Struct):
    """The part of plan.json that says so."""

    model: ModelPlan
    data: _Ranks


def earlier(home: Path, name: str, run: RunDir | None) -> list[Target]:
    """Of `run`, if there is one already, and of the newest other run that is called `name`."""
    found = list(_attempts(run, "attempt {} of this run")) if run else []
    for other in rundir.list_runs(home):
        with contextlib.suppress(RunDirError):
            if (run is None or other.id != run.id) and other.identity().name == name:
                found += list(_attempts(other, f"run {other.id}"))[-1:]
                break
    return found


def _attempts(run: RunDir, where: str) -> Iterator[Target]:
    for number in run.attempts():
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            plan = msgspec.json.decode(small.read(run.plan(number)), type=_Planned)
            model = plan.model
            yield Target(
                where=where.format(number),
                asked=model.asked,
                built=model.built,
                held=tuple(model.held or ()),
                ranks=plan.data.ranks,
            )
