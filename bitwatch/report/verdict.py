"""What the evidence shows, what is likely, and what it cannot tell, each in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch.report import about_model, matching
from bitwatch.report.about_end import is_silent
from bitwatch.report.facts import Attempt, Gathered, ProcessSeen, Story
from bitwatch.report.first_cause import finished
from bitwatch.report.model import Finding, Verdict
from bitwatch.report.standard_model import is_exact, number, same
from bitwatch.report.words import called, moment, pids, span, wanted
from bitwatch.text import counted, duration

MOST_ATTEMPTS = 8  # that are told one by one
FROM_FINDINGS = {  # whose titles say what is shown
    "target-lowered", "target-raised", "count-is-shard", "parameters-differ",
    "workers-exceed-shards", "out-of-memory", "timeout", "exception", "rank-died", "stopped",
    "loss-not-finite", "absence-contradicted", "two-trainings", "clocks-disagree",
}  # fmt: skip


def make(stories: Sequence[Story], gathered: Gathered, findings: Sequence[Finding]) -> Verdict:
    verdict = Verdict(
        shown=list(gathered.shown), likely=list(gathered.likely), unknown=list(gathered.unknown)
    )
    known = {id(finding) for finding in gathered.findings}  # a record has said them itself
    for story in stories:
        verdict.shown += _attempts(story)
        verdict.likely += _likely(story)
        verdict.unknown += _unknown(story)
    for finding in findings:
        if (finding.id in FROM_FINDINGS and id(finding) not in known) or (
            finding.id == "silent-end" and finding.severity != "info"
        ):
            verdict.shown.append(f"{finding.title}.")
        elif finding.id == "remedy-refused":
            verdict.shown.append(f"{finding.title}: {finding.why}")
        elif finding.id == "leftovers" and id(finding) not in known:
            verdict.likely.append(f"{finding.title}, by their start times.")
        elif finding.id == "class-of-cause":
            lead = verdict.likely if finding.evidence else verdict.unknown
            lead.append(f"{finding.title}. {finding.why}")
    if gathered.listings and gathered.processes:
        verdict.unknown.append("Whether the listed processes live now: a listing is of its time.")
    if not any((verdict.shown, verdict.likely, verdict.unknown)):
        verdict.unknown.append("Nothing that was looked at tells of a training.")
    for name in ("shown", "likely", "unknown"):
        setattr(verdict, name, list(dict.fromkeys(getattr(verdict, name))))
    return verdict


def _attempts(story: Story) -> Iterator[str]:
    for attempt in story.attempts[:MOST_ATTEMPTS]:
        began = f"began at {moment(attempt.begins.t)}" if attempt.begins.t else "is in the log"
        name = called(attempt, len(story.attempts)).capitalize()
        text = f"{name} ({wanted(attempt)}) {began}{_with_processes(attempt)}"
        built = [said for said in attempt.built if is_exact(said)]
        target = attempt.target
        if target is not None and any(same(said, target) for said in built):
            text += "; it built the model that was asked for"
        done = finished(story, attempt)
        if done is not None:
            when = f", at {moment(done.line.t)}" if done.line.t is not None else ""
            text += f"; it says itself that it finished{when}"
        yield f"{text}."
    if len(story.attempts) > MOST_ATTEMPTS:
        yield f"{len(story.attempts) - MOST_ATTEMPTS} more attempts followed."


def _with_processes(attempt: Attempt) -> str:
    """Those that began so soon after it that nothing else is near."""
    begins = attempt.begins.t
    if begins is None:
        return ""
    soon = [process for process in attempt.processes if _soon(process, begins)]
    if not soon:
        return ""
    return f", and {pids(soon)} started {span(soon, begins)} its first line"


def _soon(process: ProcessSeen, begins: float) -> bool:
    started = process.started
    return (
        started is not None
        and process.within_s <= 60.0
        and started + process.within_s >= begins
        and started <= begins + matching.SOON_S
    )


def _likely(story: Story) -> Iterator[str]:
    for attempt in story.attempts:
        target = number(attempt.target)
        if target is None or attempt.configuration is not None:
            continue
        shape = about_model.shape(attempt, target)
        if shape is not None:
            yield f"A target of {target:,} parameters is a model of {shape}: that gives exactly it."


def _unknown(story: Story) -> Iterator[str]:
    before: Attempt | None = None
    for attempt in story.attempts:
        now = number(attempt.target)
        was = number(before.target) if before is not None else None
        if before is not None and was is not None and now is not None and not story.mixed:
            changed = about_model.target_changed(before, attempt)
            if changed and not about_model.says_so(story, before, attempt):
                yield f"Who or what changed the target from {was:,} to {now:,}."
        before = attempt if now is not None else before
        if attempt.again:
            yield _begins_again(attempt, len(story.attempts))
    if not story.attempts or not is_silent(story, story.attempts[-1]):
        return
    last = story.attempts[-1]
    if last.shards and not last.steps:
        yield (
            "Why no step was printed: the warning of too many workers does not explain it, and "
            "nothing else in the evidence does."
        )
    yield f"How {called(last, len(story.attempts))} ended, or whether it has ended: no exit is shown."
    gap = _wait(last)
    if gap:
        yield f"What happened in the {gap} between its last step and its last line."


def _begins_again(attempt: Attempt, of: int) -> str:
    line = attempt.again[0].line
    more = f" and {counted(len(attempt.again) - 1, 'time')} more" if attempt.again[1:] else ""
    where = f"line {line.number} of {line.source}" if line.number else f"a line of {line.source}"
    return (
        f"Whether {called(attempt, of)} was restarted where its step number begins again, in "
        f"{where}{more}: epochs and evaluations that count their own steps look the same."
    )


def _wait(last: Attempt) -> str:
    step = last.last_step
    if step is None or step.line.t is None or last.last.t is None:
        return ""
    seconds = last.last.t - step.line.t
    return duration(seconds) if seconds > 600.0 else ""
