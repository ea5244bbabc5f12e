"""Findings about a recorded run as a whole: its attempts, what was raised while it ran, who
watched it, and what lives of it now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bitwatch.record import events
from bitwatch.record.view import END_STATES, View
from bitwatch.report import meanings
from bitwatch.report.model import Evidence, Finding, Verdict
from bitwatch.report.record_end import Ended
from bitwatch.report.record_read import Record
from bitwatch.report.record_story import AlertStory
from bitwatch.report.record_words import cut
from bitwatch.report.words import moment
from bitwatch.text import counted, duration

SHOWN = 8  # places in the evidence of one finding
END_S = 5.0  # before the end of an attempt, in which its alerts clear for that
DEATHS = ("rank-died", "worker-died")
MILDER: dict[events.Severity, events.Severity] = {"error": "warning", "warning": "info"}


def restarts(record: Record, ends: Sequence[Ended]) -> Iterator[Finding]:
    """More than one attempt: who asked for each, and why."""
    if len(ends) < 2:
        return
    places = record.story.places
    evidence: list[Evidence] = []
    for ended in ends:
        keys = (("attempt", ended.number), ("ended", ended.number))
        evidence += [places[key] for key in keys if key in places]
    shown = evidence if len(evidence) <= 2 * SHOWN else [*evidence[:SHOWN], *evidence[-SHOWN:]]
    failed = sum(ended.state in ("failed", "lost") for ended in ends)
    yield Finding(
        id="restarts",
        severity="info",
        title=f"{counted(len(ends), 'attempt')}, {failed} of them failed or lost",
        evidence=shown,
        why="bitwatch launches an attempt only when somebody asks: who did, and why, stands with "
        "each. torchrun is told never to restart ranks by itself.",
        next="each attempt has its own plan, logs and findings",
    )


def alerts(
    record: Record, ends: Sequence[Ended], seen: View, covered: set[str]
) -> Iterator[Finding]:
    """What was raised, each once; `covered` are ids of which another finding tells."""
    by_number = {ended.number: ended for ended in ends}
    for id_, told in record.story.alerts.items():
        if id_ not in covered:
            yield _alert(id_, told, by_number.get(told.newest.attempt), seen)


def _alert(id_: str, told: AlertStory, ended: Ended | None, seen: View) -> Finding:
    """With the end of an attempt all its alerts clear: that says nothing of their causes."""
    alert = told.newest
    holds = alert.attempt == seen.attempt and seen.state not in END_STATES
    over = ended.attempt.ended.t if ended and ended.attempt.ended else None
    severity, title = alert.severity, cut(alert.text)
    if alert.id in DEATHS and ended is not None and ended.state == "stopped" and not ended.words:
        severity = "info"
        title += f" (while attempt {alert.attempt} was being stopped)"
    elif told.cleared is not None and (over is None or told.cleared < over - END_S):
        severity = MILDER.get(severity, severity)
        title += f" (cleared after {duration(max(0.0, told.cleared - alert.t))})"
    elif not holds:
        title += f" (in attempt {alert.attempt}, until its end)"
    if told.times > 1:
        title += f"; raised {told.times:,} times"
    source = told.raised[-1].source
    more = [
        Evidence(source=source, line=told.raised[-1].line, text=cut(text), t=alert.t)
        for text in alert.evidence[:SHOWN]
    ]
    raised = [
        msgspec.structs.replace(one, text="raised" if one.text.endswith(alert.text) else one.text)
        for one in told.raised
    ]
    return Finding(
        id=id_,
        severity=severity,
        title=title,
        evidence=[*raised, *more],
        why=meanings.why(id_),
        next=meanings.next_of(id_, cut(alert.next)),
    )


def leftovers(
    record: Record, found: Sequence[events.ProcessStart], verdict: Verdict
) -> Iterator[Finding]:
    """What lives now of attempts that are over, by pid and start time of the record."""
    if not found:
        return
    verdict.shown.append(
        f"{counted(len(found), 'process')} of ended attempts of {record.run.id} live now"
    )
    yield Finding(
        id="leftovers",
        severity="error",
        title=f"{counted(len(found), 'process')} of ended attempts of this run "
        f"{'is' if len(found) == 1 else 'are'} still there",
        evidence=[
            Evidence(
                source=f"process {start.pid}",
                text=f"{start.role}{'' if start.rank is None else f' of rank {start.rank}'} of "
                f"attempt {start.attempt}, on record with this pid and start time",
                t=start.t or None,
            )
            for start in sorted(found, key=lambda start: (start.attempt, start.pid))[:SHOWN]
        ],
        why=meanings.why("leftovers"),
        next=f"bitwatch clean {record.run.id} ends them, and nothing else",
    )


def watched(record: Record, seen: View, verdict: Verdict) -> Iterator[Finding]:
    """A training that bitwatch did not start, and times of which nobody wrote."""
    places, gaps = record.story.places, record.story.gaps
    if seen.foreign:
        verdict.unknown.append(f"what {record.run.id} did while nobody watched it")
        yield Finding(
            id="foreign",
            severity="info",
            title="recorded while watched; bitwatch did not start it",
            evidence=[places["run",]] if ("run",) in places else [],
            why="Its processes, its samples and what its log says are on record from the time "
            "somebody watched; what was before is from its log alone.",
            next="bitwatch attach goes on watching it while it lives",
        )
    if gaps:
        total = sum(gap.end - gap.begin for gap in gaps)
        yield Finding(
            id="unwatched",
            severity="info",
            title=f"nobody wrote its record for {duration(total)} in all while it may have gone on",
            evidence=[
                Evidence(
                    source=gap.after.source,
                    line=gap.after.line,
                    t=gap.begin,
                    text=f"nothing from {moment(gap.begin)} to {moment(gap.end)}",
                )
                for gap in gaps[:SHOWN]
            ],
            why="A journal has a line every minute. Its writer was away: "
            + ("nobody had attached. " if seen.foreign else "the supervisor had died, or ")
            + "the machine may have slept. What the ranks wrote themselves is there all the same.",
            next="nothing need be done",
        )


def now(record: Record, seen: View, elsewhere: str, verdict: Verdict) -> Iterator[Finding]:
    """A run that goes on, or of which that cannot be seen from here."""
    run = record.run.id
    if elsewhere and not _is_closed(record, seen):
        verdict.unknown.append(f"whether {run} goes on: it is {elsewhere}")
        yield Finding(
            id="elsewhere",
            severity="info",
            title=f"the run is {elsewhere}",
            why="Its record is read here; its processes cannot be seen from here.",
            next="look at it where it ran",
        )
        return
    if seen.state in END_STATES:
        if seen.note and not elsewhere and not seen.foreign:
            yield _open_record(run, seen)
        return
    of = f" of {seen.steps:,}" if seen.steps else ""
    where = f"step {seen.step:,}{of}" if seen.step else seen.phase or "before its first step"
    verdict.shown.append(f"{run} goes on ({seen.state}): {where}")
    if seen.supervisor == "gone" and not seen.foreign:
        yield Finding(
            id="supervisor-gone",
            severity="warning",
            title="its supervisor is gone; the ranks go on",
            why="Nobody judges the run, ends it as asked or cleans up after it, until somebody "
            "looks after it again. The training itself does not need it.",
            next=f"bitwatch attach {run} gives it a supervisor again",
        )


def _is_closed(record: Record, seen: View) -> bool:
    attempt = record.state.journal.attempts.get(seen.attempt)
    return attempt is not None and attempt.ended is not None


def _open_record(run: str, seen: View) -> Finding:
    return Finding(
        id="not-closed",
        severity="info",
        title=f"its end is not in the journal: {seen.note}",
        why="Its supervisor died before it could write how the run ended. What is said of the end "
        "here is by the last words of its ranks and by what lives.",
        next=f"bitwatch clean {run} closes the record",
    )
