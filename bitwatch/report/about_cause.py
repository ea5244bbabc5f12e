"""Findings about what ended attempts: the first cause and its echoes, in this log or in another
rank's, that somebody stopped it, and what the training survived."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from bitwatch.attach.said import Said
from bitwatch.report.facts import Attempt, Story, of_line
from bitwatch.report.first_cause import (
    finished,
    first_cause,
    has_own_cause,
    is_echo,
    is_later,
    is_stop,
    last_step,
    may_have_gone_on,
    standing,
    survived,
)
from bitwatch.report.how_it_failed import failed, no_memory, threw, timed_out
from bitwatch.report.model import Evidence, Finding
from bitwatch.report.words import called, quoted, sentence

EVIDENCE_LINES = 5
ANY_NUMBER = re.compile(r"\d+")
OF_RANK = re.compile(r"rank[-_.]?\d+|(?<=/attempt_\d/)\d+", re.IGNORECASE)  # as torchrun's too
MOST_COMPARED = 200  # attempts of other logs: each rank may have one of its own


def find(stories: Sequence[Story]) -> Iterator[Finding]:
    """After all logs have been told: what one rank's log says may be another one's echo."""
    causes = _own_causes(stories)
    for story in stories:
        for attempt in story.attempts:
            yield from _cause(story, attempt, causes)
            yield from _survived(story, attempt)
            yield from _before(story, attempt)


def _own_causes(stories: Sequence[Story]) -> list[tuple[Story, Attempt, Said]]:
    """Those that are no echo, where there is more than one log to compare."""
    if len(stories) < 2:
        return []
    found = []
    for story in stories:
        for attempt in story.attempts:
            cause = first_cause(story, attempt)
            if cause is not None and not is_stop(cause) and has_own_cause(story, attempt):
                found.append((story, attempt, cause))
    return found[:MOST_COMPARED]


def _cause(
    story: Story, attempt: Attempt, causes: Sequence[tuple[Story, Attempt, Said]]
) -> Iterator[Finding]:
    cause = first_cause(story, attempt)
    if cause is None or _is_only_before(story, attempt):
        return
    name = called(attempt, len(story.attempts))
    others = [said for said in attempt.problems if said is not cause]
    evidence = [of_line(cause.line), *(of_line(said.line) for said in others[:EVIDENCE_LINES])]
    echoes = [said for said in standing(story, attempt) if said is not cause]
    if is_stop(cause):
        yield _stopped(cause, attempt, name, evidence)
    elif cause.what == "timeout" or is_echo(cause):
        yield _of_others(story, attempt, cause, name, evidence, causes)
    elif cause.what == "out-of-memory":
        yield _placed(story, attempt, cause, no_memory(cause, name, evidence))
    elif cause.what == "exception":
        yield _placed(story, attempt, cause, threw(cause, name, len(echoes), evidence))
    else:
        yield failed(cause, name, evidence)
    timeouts = [said for said in echoes if said.what == "timeout"]
    if cause.what != "timeout" and timeouts:
        yield _echo(timeouts[0], cause, name)


def _placed(story: Story, attempt: Attempt, cause: Said, finding: Finding) -> Finding:
    """With the word that it may have been handled, where steps after it may be older than it,
    or that it came at last."""
    done = finished(story, attempt)
    if done is not None and is_later(story, cause.line, done.line):
        why = (
            "It came after the last step, when the training had said that it finished: what was "
            "to be written then, as the model, may be missing or incomplete."
        )
        lines = [*finding.evidence, of_line(done.line)]
        return _with(finding, why, lines)
    if not may_have_gone_on(story, cause):
        return finding
    why = (
        "It ended the training, or was handled: the steps after it may have waited in a buffer "
        "of what Python prints, which is written at its end. With `python -u` nothing waits."
    )
    return _with(finding, why, finding.evidence)


def _with(finding: Finding, why: str, evidence: list[Evidence]) -> Finding:
    both = f"{finding.why} {why}".strip()
    return msgspec.structs.replace(finding, why=both, evidence=evidence)


def _of_others(
    story: Story,
    attempt: Attempt,
    cause: Said,
    name: str,
    evidence: list[Evidence],
    causes: Sequence[tuple[Story, Attempt, Said]],
) -> Finding:
    """A time-out or a lost connection: what another rank's log says may explain it."""
    elsewhere = [one for one in causes if one[0] is not story]
    for other, its, first in elsewhere:
        sure = _overlap(attempt, its) is True and _is_kin(story, other)
        if sure or (_overlap(attempt, its) is None and _is_kin(story, other, of_ranks=True)):
            return _echo(cause, first, name)
    where = "in the evidence" if not elsewhere else "in this log"
    more = ""
    for _, its, first in sorted(elsewhere, key=lambda one: _overlap(attempt, one[1]) is None):
        at_once = _overlap(attempt, its)
        if at_once is not False:
            more = (
                f" Another log{' of that time' if at_once else ''} has one: "
                f'"{quoted(first.line.text, 120)}". If it is of the same training, this is its echo.'
            )
            break
    if cause.what == "timeout":
        return timed_out(cause, name, where, more, evidence)
    return threw(cause, name, 0, evidence, where, more)


def _echo(late: Said, cause: Said, name: str) -> Finding:
    what = "time-out" if late.what == "timeout" else "lost connection"
    rank = late.values.get("rank")
    return Finding(
        id="timeout" if late.what == "timeout" else "exception",
        severity="info",
        title=f"The {what} of {'a rank' if rank is None else f'rank {rank}'} in {name} is an echo",
        evidence=[of_line(cause.line), of_line(late.line)],
        why="Ranks that work together wait for one that has failed, or lose it: "
        f'"{quoted(cause.line.text, 120)}".',
        next="Look at the first cause; a longer time-out would only make the wait longer.",
    )


def _stopped(cause: Said, attempt: Attempt, name: str, evidence: list[Evidence]) -> Finding:
    by = next((one for one in attempt.problems if one.dialect == "slurm"), None)
    signal = cause.values.get("signal")
    how = " by Ctrl-C or SIGINT" if "KeyboardInterrupt" in cause.line.text else ""
    how = f" by signal {quoted(str(signal), 20)}" if signal is not None else how
    why = "That is no failure of the training: somebody, or whoever schedules the jobs, ended it."
    if by is not None:
        why += f' The log says by whom: "{quoted(by.line.text)}".'
    return Finding(
        id="stopped",
        severity="warning",
        title=f"{sentence(name).removesuffix('.')} was stopped{how}",
        evidence=evidence,
        why=why,
        next="Go on from its last checkpoint."
        if by is None
        else "Go on from its last checkpoint, with what the scheduler allows.",
    )


def _survived(story: Story, attempt: Attempt) -> Iterator[Finding]:
    handled = survived(story, attempt)
    if not handled:
        return
    done, last = finished(story, attempt), last_step(story, attempt)
    first = handled[0]
    what = _named(first)
    name = called(attempt, len(story.attempts))
    if done is not None and all(is_later(story, one.line, done.line) for one in handled):
        how = "came after it had finished"
        why = "The training had said so before, and nothing after it says that a rank failed."
    else:
        step = last.values.get("step") if last is not None else None
        to = f"went on to step {step:,}" if isinstance(step, int) else "went on"
        how = f"was handled: the training {to if last is not None else 'says that it finished'}"
        why = "Steps or the end of the training follow upon it, so it is no cause of an end."
    more = f" (and {len(handled) - 1:,} more besides)" if len(handled) > 1 else ""
    yield Finding(
        id="handled",
        severity="info",
        title=f"{what} in {name} {how}{more}",
        evidence=[of_line(one.line) for one in handled[:EVIDENCE_LINES]],
        why=why,
        next="",
    )


def _before(story: Story, attempt: Attempt) -> Iterator[Finding]:
    if not _is_only_before(story, attempt):
        return
    cause = first_cause(story, attempt)
    assert cause is not None
    following = story.attempts[attempt.number]
    yield Finding(
        id="before-training",
        severity="info",
        title=f"{_named(cause)} stands before {called(following)} begins",
        evidence=[of_line(cause.line), of_line(following.begins)],
        why="Nothing of a training is in the log before it. Whether it was handled, or ended a "
        f'launch before this one, the log does not say: "{quoted(cause.line.text, 120)}".',
        next="",
    )


def _is_only_before(story: Story, attempt: Attempt) -> bool:
    """An exception, and nothing else, before the next attempt in the same log begins."""
    following = story.attempts[attempt.number :]
    signs = (attempt.target, attempt.built, attempt.configuration, attempt.hardware, attempt.loop)
    started = any(signs) or bool(attempt.steps) or attempt.restart is not None
    cause = first_cause(story, attempt)
    return (
        bool(following)
        and not started
        and cause is not None
        and cause.what == "exception"
        and following[0].begins.source == cause.line.source
        and following[0].restart is None
        and not any(said.what == "failure" for said in attempt.problems)
    )


def _named(said: Said) -> str:
    if said.what == "exception":
        return quoted(str(said.values.get("type", "An exception")), 80)
    if said.what == "out-of-memory":
        return "A lack of memory"
    return {"timeout": "A time-out", "failure": "A rank's end"}.get(said.what, "A signal")


def _is_kin(story: Story, other: Story, of_ranks: bool = False) -> bool:
    """Names that differ only in a number, as those of ranks do: rank0/stderr.log. `of_ranks`:
    in one that is surely a rank's, where run1.log and run2.log may be two trainings."""
    number = OF_RANK if of_ranks else ANY_NUMBER
    return bool(_numberless(story, number) & _numberless(other, number))


def _numberless(story: Story, number: re.Pattern[str]) -> set[str]:
    return {number.sub("#", log.path) for log in story.logs}


def _overlap(one: Attempt, other: Attempt) -> bool | None:
    """Whether both were at work at a time; None where their times do not tell it."""
    times = one.begins.t, one.last.t, other.begins.t, other.last.t
    begins, ends, its_begins, its_ends = times
    if begins is None or ends is None or its_begins is None or its_ends is None:
        return None
    return begins <= its_ends and its_begins <= ends
