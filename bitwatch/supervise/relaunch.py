"""A relaunch: the next attempt of a run, with other settings or with the same.

A wish travels as a file, `attempts/<n>/relaunch`, so that it outlives whoever asked; of several
who ask, the first is heard. Whoever holds the run's lock acts on it when attempt n has ended,
with a checkpoint: else there would be something to lose, and a person decides anew. A stop that
is asked for meanwhile takes the wish away (`stopping`).
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, NamedTuple

import msgspec

from bitwatch import config as configuration
from bitwatch import small
from bitwatch.config import Config
from bitwatch.plan import corrections, resume
from bitwatch.plan.cures import CURED
from bitwatch.plan.facts import Facts
from bitwatch.plan.preflight import make_plan
from bitwatch.plan.result import Plan
from bitwatch.record import events, rundir, stops
from bitwatch.record.afterwards import RELAUNCH_FAILED
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.state import RunState
from bitwatch.strict import ConfigError
from bitwatch.supervise import begin, ending, gather, leftovers, stopping, targets

SAME, BACK = "same", "back"
LEFTOVER_GRACE_S = 3.0
ASKED, CANCELLED = "relaunch", "relaunch-cancelled"  # actions


class Wish(msgspec.Struct):
    """`correction` is the id of one of the attempt's plan, "same" for its settings as they
    were, or "back" for those of the attempt that it relaunched."""

    correction: str = SAME
    by: str = "unknown"
    t: float = 0.0


class Following(NamedTuple):
    """What the next attempt would be launched with. `words` say what is different."""

    config: Config
    facts: Facts
    plan: Plan
    words: str


def ask(run: RunDir, attempt: int, correction: str, by: str, *, anew: bool = False) -> Wish:
    """Writes the wish, and returns the one that counts: the first. `anew` replaces one that
    nobody has acted on. Raises OSError."""
    path = run.relaunch(attempt)
    wish = Wish(correction, by, time.time())
    data = msgspec.json.encode(wish)
    if anew:
        rundir.write_whole(path, data)
        return wish
    whole = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        whole.write_bytes(data)
        os.link(whole, path)  # whole, and never in place of another
    except FileExistsError:
        return read(run, attempt) or wish
    finally:
        whole.unlink(missing_ok=True)
    return wish


def stop_for(run: RunDir, attempt: int, by: str) -> None:
    """Asks the attempt to stop for the wish that is there; without a stop there is no wish
    either. Raises OSError."""
    try:
        stopping.ask(run, attempt, f"{by}, for a relaunch", to_relaunch=True)
    except OSError:
        run.relaunch(attempt).unlink(missing_ok=True)
        raise


def read(run: RunDir, attempt: int) -> Wish | None:
    """The wish, if there is one; a file that cannot be understood is none."""
    try:
        return msgspec.json.decode(small.read(run.relaunch(attempt)), type=Wish)
    except (OSError, msgspec.MsgspecError):
        return None


def following(run: RunDir, attempt: int, correction: str) -> Following:
    """The settings, the plan and the words of the attempt that a wish would make.

    Raises RunDirError, in a sentence, for what cannot be launched or would lose something that
    nobody has been told of.
    """
    source, words = attempt, "with the same settings"
    if correction == BACK:
        source = _relaunched_by(run, attempt)
        words = f"back to the settings of attempt {source}"
    try:
        config = configuration.load(run.config(source), lenient=True)
        allowed = correction in (SAME, BACK)
        if not allowed:
            found = _correction(run, attempt, correction)
            changes = found["changes"]
            words = ", ".join(
                f"{key} = {value} instead of {configuration.value(config, key)}"
                for key, value in changes.items()
            )
            words += found["against"]
            config = configuration.changed(config, changes)
            # Of an attempt that was itself allowed to, the checkpoint may be an earlier one's.
            allowed = "new-epoch" in (found["resume"], found["attempt_resume"])
    except ConfigError as error:
        raise RunDirError(str(error)) from None
    model, lost = begin.not_resumable(run, config)
    if model:
        raise RunDirError(f"{run.id}: its checkpoint is of another model: {', '.join(model)}")
    if lost and not allowed:
        raise RunDirError(f"{run.id}: {resume.refusal(lost)}")
    facts = facts_of(run, source)
    before = targets.earlier(run.path.parent, config.run.name, run)
    plan = make_plan(config, facts, launching=True, before=before)
    if errors := [
        problem
        for problem in plan.problems
        if problem.severity == "error" or problem.id == "data-unknown"
    ]:
        raise RunDirError(" ".join(f"{error.text} {error.next}".strip() for error in errors))
    plan.resume = "new-epoch" if lost else "exact"
    return Following(corrections.settled(config, plan.data), facts, plan, words)


def facts_of(run: RunDir, attempt: int) -> Facts:
    """What an attempt's plan was made from; asked of the trainer again, which takes seconds,
    where an older version has not kept it."""
    try:
        return msgspec.json.decode(small.read(run.facts(attempt)), type=Facts)
    except (OSError, msgspec.MsgspecError):
        config = configuration.load(run.config(attempt), lenient=True)
        facts = gather.gather(config)
        if not has_gaps(facts):
            rundir.write_whole(run.facts(attempt), msgspec.json.encode(facts))
        return facts


def has_gaps(facts: Facts) -> bool:
    """Whether a later look could tell more."""
    parts = (facts, facts.model, facts.data, facts.devices)
    return any(part is None or part.error is not None for part in parts)


class Launch(NamedTuple):
    """What `supervisor` launches next."""

    attempt: int
    by: str
    cause: str
    relaunch_of: int = 0
    correction: str = ""


def take_up(
    run: RunDir,
    attempt: int,
    ended: tuple[str, str],
    journal: JournalWriter,
    heard: Wish | None = None,
) -> Launch | None:
    """The next attempt, made and ready to be launched, when somebody wished for one and
    `ended` (state, cause) of this one lets it be. `heard` is the wish that was there once. For
    the holder of the lock."""
    wish = read(run, attempt)
    state, cause = ended
    on = f"attempt {attempt}"
    if wish is None or state == "done":
        if gone := wish or heard:
            by, why = gone.by, "the run was done before"
            if wish is None:
                stop = stopping.read(run, attempt)
                by, why = stop.by if stop else by, f"stopped instead; {gone.by} had asked"
            journal.write(events.Action(name=CANCELLED, by=by, on=on, result=why))
        return None
    try:
        if not stops.lost_nothing(state, cause):
            raise RunDirError(
                f"attempt {attempt} ended without a checkpoint of its own ({state}"
                f"{f': {cause}' if cause else ''}); key R goes on from the newest one there is"
            )
        return _made(run, attempt, wish)
    except (RunDirError, OSError) as error:
        said = events.Action(name=RELAUNCH_FAILED, by=wish.by, on=on, result=str(error))
        journal.write(said, last_word=True)
        return None


def drop_unstarted(run: RunDir, state: RunState, but: int = 0) -> None:
    """Takes away attempts that were made and never launched: whoever made them has died. For
    the holder of the lock. `but` is being launched. Of a young one the supervisor may only be
    about to begin."""
    for number in run.attempts():
        if number == but or begin.has_begun(run, state, number):
            continue
        with contextlib.suppress(OSError):  # whoever made it takes it away just now
            age_s = time.time() - run.attempt(number).stat().st_mtime
            if abs(age_s) >= begin.START_S:  # a clock may be set back
                rundir.remove(run.attempt(number))


def of_ended(run: RunDir, attempt: int, by: str) -> Launch | None:
    """The same for an attempt that had ended before anybody wished. Closes its record and ends
    what it has left behind first. Raises RunDirError when there is a later one already."""
    follower = Follower(run)
    follower.poll()
    if (newest := follower.state.newest_attempt()) != attempt:
        raise RunDirError(f"{run.id}: attempt {attempt} is over; {newest} came next")
    known = follower.state.journal.attempts.get(attempt)
    if known is None or known.ended is None:
        ending.close_dead(run, follower, attempt, by)
        follower.poll()
    journal = JournalWriter(run.journal, run.reserve)
    try:
        ended = leftovers.ended_attempts(follower.state)
        leftovers.end(follower.state, ended, journal, by, LEFTOVER_GRACE_S)
        drop_unstarted(run, follower.state)
        return take_up(run, attempt, ("stopped", ""), journal)
    finally:
        journal.close()


def _made(run: RunDir, attempt: int, wish: Wish) -> Launch:
    settings = following(run, attempt, wish.correction)
    device = begin.device_of(settings.config, settings.facts)
    number = begin.new_attempt(run, settings.config, settings.plan, device, settings.facts)
    cause = f"relaunch of attempt {attempt}: {settings.words}"
    return Launch(number, wish.by, cause, attempt, wish.correction)


def still_wished(run: RunDir, launch: Launch, journal: JournalWriter) -> bool:
    """Whether nobody has asked for a stop since; else the attempt that was made is taken away."""
    if not launch.relaunch_of or read(run, launch.relaunch_of) is not None:
        return True
    rundir.remove(run.attempt(launch.attempt))
    stop = stopping.read(run, launch.relaunch_of)
    by, on = stop.by if stop else "unknown", f"attempt {launch.relaunch_of}"
    why = f"stopped instead; {launch.by} had asked"
    journal.write(events.Action(name=CANCELLED, by=by, on=on, result=why))
    return False


def _correction(run: RunDir, attempt: int, wanted: str) -> dict[str, Any]:
    try:
        plan = msgspec.json.decode(small.read(run.plan(attempt)))
        found = next(c for c in plan["corrections"] if c["id"] == wanted and c["changes"])
        return {
            "resume": "new-epoch",
            "attempt_resume": plan.get("resume"),
            "against": _against(plan),
            **found,
        }
    except (OSError, msgspec.MsgspecError, KeyError, TypeError, StopIteration):
        raise RunDirError(
            f"{run.plan(attempt)}: offers no correction {wanted!r} that can be launched"
        ) from None


def _against(plan: dict[str, Any]) -> str:
    """What the correction is for: the first sentence of what is wrong with the plan."""
    wrong = [problem["text"] for problem in plan.get("problems", ()) if problem["id"] in CURED]
    return f" ({wrong[0].partition('. ')[0].removesuffix('.')})" if wrong else ""


def _relaunched_by(run: RunDir, attempt: int) -> int:
    """The attempt that this one was a relaunch of."""
    follower = Follower(run, glance=True)
    follower.poll()
    known = follower.state.journal.attempts.get(attempt)
    if known is None or known.started is None or not known.started.relaunch_of:
        raise RunDirError(f"{run.id}: attempt {attempt} is no relaunch: nothing to go back to")
    return known.started.relaunch_of
