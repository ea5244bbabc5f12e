"""From the words of a command to a run that is planned, judged and launched."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bitwatch import config as configuration
from bitwatch import headless as face
from bitwatch.config import Config
from bitwatch.plan import resume
from bitwatch.plan.facts import Facts
from bitwatch.plan.preflight import make_plan
from bitwatch.plan.result import Plan
from bitwatch.record import rundir
from bitwatch.record.rundir import RunDir
from bitwatch.supervise import begin
from bitwatch.supervise.gather import gather

USAGE, REFUSED, HELD = 2, 3, 4
# Problems of the configuration or of a path: usage, not a judgement about a sound one.
USAGE_PROBLEMS = {"more-ranks-than-gpus", "data-unusable", "model-unusable"}


class Failure(Exception):
    """Ends a command with a sentence and an exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def settings(
    named: str | None, changes: tuple[str, ...], sharding: str | None, old: RunDir | None
) -> Config:
    """The configuration of a file or a bundled one, or that of a run that goes on, with
    changes. Raises ConfigError."""
    if sharding:
        changes = (*changes, f'data.sharding="{sharding}"')
    if old and named is None:
        newest = old.attempts()[-1]
        config = configuration.load(old.config(newest), changes, lenient=True)
    else:
        config = configuration.load(configuration.find(named), changes)
    return configuration.anchored(config, Path.cwd())


def resumable(old: RunDir) -> RunDir:
    """Raises Failure when the run cannot go on from this machine now."""
    if old.lock_is_held():
        raise Failure(f"{old.id}: is live; `bitwatch stop {old.id}` stops it first", HELD)
    elsewhere = rundir.is_here(old.identity())
    if elsewhere and elsewhere != rundir.REBOOTED:
        raise Failure(f"{old.id}: {elsewhere}; it can only be resumed there", USAGE)
    if begin.still_lives(old):
        raise Failure(
            f"{old.id}: its supervisor is gone but its ranks go on; `bitwatch stop {old.id}` "
            "stops them with a checkpoint first",
            HELD,
        )
    begin.close_record(old, "bitwatch run --resume")
    begin.move_here(old)
    if not old.attempts():
        raise Failure(f"{old.id}: has never been launched; start a new run instead", USAGE)
    return old


def refuse_another_run(old: RunDir, config: Config, new_epoch: bool) -> None:
    """Raises Failure when the newest checkpoint is of another model, or when its place in the
    text would be lost and nobody has allowed that."""
    model, lost = begin.not_resumable(old, config)
    if model:
        text = f"{old.id}: its checkpoint is of another model: {', '.join(model)}"
        raise Failure(f"{text}; keep the shape, or start a new run", REFUSED)
    if lost and not new_epoch:
        raise Failure(f"{old.id}: {resume.refusal(lost)}", REFUSED)


def planned(config: Config, *, launching: bool, gpu: str | None = None) -> tuple[Facts, Plan]:
    """What is known about model, data and machine, and what would happen."""
    facts = gather(config)
    return facts, make_plan(config, facts, launching=launching, gpu=gpu)


def code_of(plan: Plan) -> int:
    errors = [problem.id for problem in plan.problems if problem.severity == "error"]
    if not errors:
        return 0
    return USAGE if USAGE_PROBLEMS & set(errors) else REFUSED


def refuse(plan: Plan) -> None:
    """Raises Failure when the plan has an error, or when what only a hub knows is missing:
    a launch would fail there minutes later."""
    errors = [problem for problem in plan.problems if problem.severity == "error"]
    unknown = [problem for problem in plan.problems if problem.id == "data-unknown"]
    if blocking := errors or unknown:
        text = " ".join(f"{problem.text} {problem.next}".strip() for problem in blocking)
        raise Failure(text, code_of(plan) or REFUSED)


def say_mode(config: Config, plan: Plan) -> None:
    """Which way of reading was taken, and why, where the configuration left it open."""
    if plan.data.mode_reason:
        asked, taken = config.data.sharding, plan.data.mode
        face.say(f'data.sharding = "{asked}": {taken} ({plan.data.mode_reason})')


def launch(
    old: RunDir | None, home: Path, config: Config, facts: Facts, plan: Plan
) -> tuple[RunDir, int]:
    """Starts a new run, or the next attempt of an old one, under a supervisor of its own; the
    run and the attempt. What could not be started leaves nothing behind. Raises RunDirError."""
    run = old or begin.create(home, config, facts, sys.argv)
    made = run.path
    try:
        attempt = begin.new_attempt(run, config, plan, begin.device_of(config, facts), facts)
        made = run.attempt(attempt) if old else made
        by = f"bitwatch run (pid {os.getpid()})"
        begin.start_supervisor(run, attempt, "launch", by, "resumed" if old else "first launch")
    except rundir.RunDirError:
        if made != run.path or not old:
            rundir.remove(made)
        raise
    return run, attempt
