"""Findings about attempts: how many there are, that a loss is no number, that nothing says how
one ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from bitwatch.attach.said import Line, Said
from bitwatch.report import matching
from bitwatch.report.facts import Attempt, Story, of_line
from bitwatch.report.first_cause import finished, first_cause
from bitwatch.report.model import Finding
from bitwatch.report.words import called, listed, moment, quoted, sentence, wanted
from bitwatch.text import counted, duration

EVIDENCE_LINES = 5
SERIES = 2  # that are told of a log into which two trainings write
YOUNG_S = 120.0  # since the last change of a log, in which its training may well go on


def find(story: Story, modified: float | None) -> Iterator[Finding]:
    yield from restarts(story)
    for attempt in story.attempts:
        yield from _not_finite(story, attempt)
        yield from _silent(story, attempt, modified)


def restarts(story: Story) -> Iterator[Finding]:
    if len(story.attempts) < 2:
        return
    by_torchrun = [attempt for attempt in story.attempts if attempt.restart is not None]
    each = [
        f"{called(attempt)} at {moment(attempt.begins.t)} ({wanted(attempt)}; {attempt.why})"
        for attempt in story.attempts[:EVIDENCE_LINES]
    ]
    if len(story.attempts) > EVIDENCE_LINES:
        each.append(f"{len(story.attempts) - EVIDENCE_LINES} more")
    why = sentence(listed(each))
    if by_torchrun:
        why += f" {counted(len(by_torchrun), 'restart')} came from the launcher itself."
    yield Finding(
        id="attempts",
        severity="warning" if by_torchrun else "info",
        title=f"{counted(len(story.attempts), 'attempt')}, not one",
        evidence=[of_line(attempt.begins) for attempt in story.attempts[:EVIDENCE_LINES]],
        why=why,
        next="Judge each attempt by itself: a loss or a count of one says nothing of another.",
    )


def _not_finite(story: Story, attempt: Attempt) -> Iterator[Finding]:
    bad = [run for run in attempt.steps if run.nonfinite is not None]
    if not bad:
        return
    run = next((run for run in bad if run.finite_again is None), bad[0])
    assert run.nonfinite is not None
    title = f"The loss of {called(attempt, len(story.attempts))} is no number"
    if run.finite_again is not None:
        yield Finding(
            id="loss-not-finite",
            severity="warning",
            title=f"{title} {_at(run.nonfinite)}, and is one again {_at(run.finite_again)}",
            evidence=[of_line(run.nonfinite.line), of_line(run.finite_again.line)],
            why="Such a step was skipped, as a scaler of the loss does, or did no lasting harm: "
            "parameters that are no numbers would not have given a loss again.",
            next="A few such steps at the beginning are usual in half precision; if they come "
            "again, lower the learning rate or look at the batch.",
        )
        return
    yield Finding(
        id="loss-not-finite",
        severity="error",
        title=f"{title} {_at(run.nonfinite)}",
        evidence=[of_line(run.nonfinite.line)],
        why="No later loss that could be read is a number: from then on the parameters are worth "
        "nothing.",
        next="Go on from a checkpoint before it, with a lower learning rate or without the batch.",
    )


def _at(said: Said) -> str:
    step = said.values.get("step")
    return f"at step {step:,}" if isinstance(step, int) else "early"


def is_silent(story: Story, attempt: Attempt) -> bool:
    return finished(story, attempt) is None and first_cause(story, attempt) is None


def _silent(story: Story, attempt: Attempt, modified: float | None) -> Iterator[Finding]:
    """An attempt without an end: the next one begins, or the log stops."""
    if not is_silent(story, attempt):
        return
    name = called(attempt, len(story.attempts))
    last = attempt.last
    steps = _steps_said(story, attempt)
    errors = last_errors(attempt)
    evidence = [of_line(attempt.loop.line)] if attempt.loop is not None else []
    evidence += [of_line(run.line) for run in [attempt.last_step] if run is not None]
    if last not in [
        attempt.loop and attempt.loop.line,
        attempt.last_step and attempt.last_step.line,
    ]:
        evidence.append(of_line(last))
    evidence += [of_line(said.line) for said in errors if said.line != last]
    if attempt is not story.attempts[-1]:
        following = story.attempts[attempt.number]
        ended = matching.ended_at(story, attempt)
        after = (
            f" {duration(ended - last.t)} later" if ended is not None and last.t is not None else ""
        )
        yield Finding(
            id="silent-end",
            severity="info",
            title=f"Nothing says how {name} ended: {called(following)} begins{after}; {steps}",
            evidence=[*evidence, of_line(following.begins)],
            why=_last_error(errors) or "Neither an error nor an exit is in the log.",
            next="Ask who started the next one, and whether this one was stopped first.",
        )
        return
    age_s = _age_s(last, modified)
    young = age_s is not None and age_s < YOUNG_S
    yield Finding(
        id="silent-end",
        severity="info" if young else "warning",
        title=f"The log ends at {moment(last.t)} ({_place(last)}) without a word of an end; {steps}",
        evidence=evidence,
        why=(
            f"It was written {duration(max(0.0, age_s or 0.0))} ago: it may well go on."
            if young
            else f"{_last_error(errors) or 'No error, no time-out, no exit is in it.'} That it ended, "
            "that it was stopped and that it waited are all possible, and nothing in the evidence "
            "tells them apart."
        ),
        next="Look whether its processes live: `bitwatch attach` shows them, and where they wait.",
    )


def last_errors(attempt: Attempt) -> list[Said]:
    """The last line that its log itself calls an error: all that there is of a silent end."""
    return [said for said in attempt.problems if said.what in ("error", "exception")][-1:]


def _last_error(errors: Sequence[Said]) -> str:
    said = [f'The last error in it is "{quoted(one.line.text)}".' for one in errors]
    return " ".join(said)


def _age_s(last: Line, modified: float | None) -> float | None:
    """Since the log was written: by its last line, because a copy of a file is young."""
    written = last.t if last.t is not None else modified
    return None if written is None else time.time() - written


def _steps_said(story: Story, attempt: Attempt) -> str:
    last = attempt.last_step
    if last is None:
        return "no step was ever printed"
    if story.mixed:
        runs = sorted(attempt.steps, key=lambda run: run.last.line.number)[-SERIES:]
        ends = list(dict.fromkeys(_number(run.last) for run in runs))
        if len(ends) > 1:
            return f"its series of steps end at {listed(ends)}"
    return f"its last step is {_number(last)}"


def _number(said: Said) -> str:
    step = said.values.get("step")
    return f"{step:,}" if isinstance(step, int) else f"of epoch {said.values.get('epoch')}"


def _place(line: Line) -> str:
    return f"line {line.number}" if line.number else "its last line"
