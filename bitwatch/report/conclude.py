"""From gathered evidence to a report: attempts, matched processes, findings, a verdict."""

from __future__ import annotations

import msgspec

from bitwatch.report import (
    about_cause,
    about_data,
    about_end,
    about_files,
    about_model,
    about_processes,
    attempts,
    class_of_cause,
    matching,
    timeline,
    verdict,
)
from bitwatch.report.facts import Gathered, Story
from bitwatch.report.model import Finding, Report, severest_first

MOST_FINDINGS = 60


def conclude(gathered: Gathered) -> Report:
    """The order in which the evidence was gathered makes no difference."""
    gathered = msgspec.structs.replace(
        gathered,
        logs=sorted(gathered.logs, key=lambda log: log.path),
        processes=matching.without_repeats(gathered.processes),
    )
    stories = attempts.stories(gathered.logs, listed=bool(gathered.listings))
    matching.match(stories, gathered.processes)
    findings: list[Finding] = list(gathered.findings)
    for story in stories:
        findings += about_model.find(story)
        findings += about_data.find(story)
        findings += about_end.find(story, _modified(story))
    findings += about_cause.find(stories)
    findings += about_processes.find(stories, gathered)
    findings += about_files.find(stories, gathered)
    findings += class_of_cause.find(stories, findings)
    findings = _without_repeats(findings)
    notes = list(gathered.notes)
    notes += [note for listing in gathered.listings for note in listing.notes]
    notes += [f"{one.path}: not looked at: {one.why}" for one in gathered.unreadable]
    if len(findings) > MOST_FINDINGS:
        notes.append(f"{len(findings) - MOST_FINDINGS} more findings are left out")
    report = Report(
        about=sorted(gathered.about),
        timeline=timeline.make(gathered),
        findings=severest_first(findings)[:MOST_FINDINGS],
        verdict=verdict.make(stories, gathered, findings),
        notes=sorted(dict.fromkeys(notes)),
    )
    return report


def _modified(story: Story) -> float | None:
    times = [log.modified for log in story.logs if log.modified is not None]
    return max(times, default=None)


def _without_repeats(findings: list[Finding]) -> list[Finding]:
    """Each rank's log may say the same: the same words are one finding, with all evidence."""
    found: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        kept = found.setdefault((finding.id, finding.title), finding)
        if kept is not finding:
            more = [one for one in finding.evidence if one not in kept.evidence]
            both = msgspec.structs.replace(kept, evidence=[*kept.evidence, *more][:20])
            found[finding.id, finding.title] = both
    return list(found.values())
