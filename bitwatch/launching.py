"""From the words of a command to a run that is planned, judged and launched."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bitwatch import config as configuration
from bitwatch import headless as face
from bitwatch.config import Config
from bitwatch.plan import corrections, resume
from bitwatch.plan.facts import Facts
from bitwatch.plan.guard import Target
from bitwatch.plan.preflight import make_plan
from bitwatch.plan.result import Plan
from bitwatch.record import rundir
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.supervise import begin, holding

USAGE, REFUSED, HELD, CANCELLED = 2, 3, 4, 130
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
        config = configuration.load(old.config(_configured(old)), changes, lenient=True)
    else:
        config = configuration.load(configuration.find(named), changes)
    if old and config.data.sharding == "ask":  # a run that is under way has its answer
        recorded = configuration.load(old.config(_configured(old)), lenient=True)
        config.data.sharding = recorded.data.sharding
    return configuration.anchored(config, Path.cwd())


def _configured(old: RunDir) -> int:
    """The newest attempt that has its settings: whoever was making one may have died over it."""
    attempts = old.attempts()
    return next((n for n in reversed(attempts) if old.config(n).exists()), attempts[-1])


def resumable(old: RunDir) -> RunDir:
    """Raises Failure when the run cannot go on from this machine now, RunDirError when bitwatch
    has not started it."""
    begin.refuse_foreign(old, "resumed")
    if not holding.is_free(old):
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


Ask = Callable[[str, Plan, bool], str | None]


def decided(
    config: Config, facts: Facts, before: Sequence[Target], ask: Ask | None
) -> tuple[Config, Plan]:
    """The configuration with a way of reading, and its plan, which has no error.

    Where the configuration leaves the choice open ("ask"), `ask` is given the run's name, the
    plan as configured and whether that is impossible; it answers with a correction's id,
    "as-is", or None for no launch at all. Without an `ask`, or with nothing to choose, the best
    is taken. `before` is what earlier attempts, or runs of the name, aimed at. Raises Failure.
    """
    taken = config
    if config.data.sharding == "ask":
        configured = make_plan(config, facts, launching=True, before=before)
        changes = [c.changes for c in configured.corrections if c.changes]
        choice = "auto"
        if ask is not None and changes:
            better = configuration.changed(config, changes[0])
            refuse(
                make_plan(better, facts, launching=True, before=before)
            )  # wrong whatever is chosen
            blocked = any(problem.severity == "error" for problem in configured.problems)
            answer = ask(config.run.name, configured, blocked)
            if answer is None:
                raise Failure("nothing was launched", CANCELLED)
            choice = answer
        found = [c.changes for c in configured.corrections if c.id == choice]
        taken = configuration.changed(config, found[0] if found else {"data.sharding": choice})
    plan = make_plan(taken, facts, launching=True, before=before)
    refuse(plan)
    if plan.data.mode_reason:
        asked, mode = config.data.sharding, plan.data.mode
        face.say(f'data.sharding = "{asked}": {mode} ({plan.data.mode_reason})')
    return corrections.settled(taken, plan.data), plan


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


def launch(
    old: RunDir | None, home: Path, config: Config, facts: Facts, plan: Plan
) -> tuple[RunDir, int]:
    """Starts a new run, or the next attempt of an old one, under a supervisor of its own; the
    run and the attempt. What could not be started leaves nothing behind. Raises RunDirError."""
    run = old or begin.create(home, config, facts, sys.argv)
    made, attempt = None if old else _which(run.path), 1
    try:
        attempt = begin.new_attempt(run, config, plan, begin.device_of(config, facts), facts)
        made = _which(run.attempt(attempt)) if old else made
        by = f"bitwatch run (pid {os.getpid()})"
        begin.start_supervisor(run, attempt, "launch", by, "resumed" if old else "first launch")
    except rundir.RunDirError:
        folder = run.attempt(attempt) if old else run.path
        if made and _which(folder) == made and not _has_begun(run, attempt):
            rundir.remove(folder)
        raise
    return run, attempt


def _which(folder: Path) -> tuple[int, int] | None:
    """Which folder has this name: another one may have it meanwhile, made by another launch."""
    try:
        facts = folder.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_dev


def _has_begun(run: RunDir, attempt: int) -> bool:
    follower = Follower(run, glance=True)
    follower.poll()
    return begin.has_begun(run, follower.state, attempt)
