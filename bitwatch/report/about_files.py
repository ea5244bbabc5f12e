"""Findings about the evidence itself: what is missing where something took place, and logs that
two trainings write into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch.report.facts import FolderSeen, Gathered, ProcessSeen, Story, of_line, of_process
from bitwatch.report.model import Evidence, Finding
from bitwatch.report.paths import is_inside
from bitwatch.report.words import called, listed, pids, wanted
from bitwatch.text import counted

EVIDENCE_LINES = 4


def find(stories: Sequence[Story], gathered: Gathered) -> Iterator[Finding]:
    for story in stories:
        yield from _two_trainings(story)
    for folder in gathered.folders:
        yield from _contradicted(folder, stories, gathered)


def _two_trainings(story: Story) -> Iterator[Finding]:
    if story.mixed:
        yield Finding(
            id="two-trainings",
            severity="warning",
            title="Two trainings write into one log: their steps go back and forth",
            evidence=[of_line(line) for line in story.mixed[:EVIDENCE_LINES]],
            why="Series of steps that alternate are not one attempt after another. What cannot be "
            "told apart (a target, a count) is not compared.",
            next="Give each training a log of its own.",
        )


def _contradicted(
    folder: FolderSeen, stories: Sequence[Story], gathered: Gathered
) -> Iterator[Finding]:
    """Nothing was left where results would lie, and yet something ran."""
    inside = [
        story
        for story in stories
        if story.attempts and any(is_inside(log.path, folder.path) for log in story.logs)
    ]
    shown: list[ProcessSeen] = [
        process
        for process in gathered.processes
        if process.role != "other" and is_inside(process.source, folder.path)
    ]
    if not folder.absent or not (inside or shown):
        return
    evidence: list[Evidence] = [
        of_line(attempt.begins) for story in inside for attempt in story.attempts
    ][:EVIDENCE_LINES]
    evidence += [of_process(process) for process in shown[:EVIDENCE_LINES]]
    took = [
        f"the log tells of {called(attempt, len(story.attempts))} ({wanted(attempt)})"
        for story in inside
        for attempt in story.attempts[:EVIDENCE_LINES]
    ]
    if shown:
        took.append(f"the listing shows {counted(len(shown), 'process')} of a training "
                    f"({pids(shown)})")  # fmt: skip
    yield Finding(
        id="absence-contradicted",
        severity="warning",
        title=f"There is no {' and no '.join(folder.absent)} in {folder.path}, and still a "
        "training took place",
        evidence=evidence,
        why=f"That results are missing shows only that none were written: {listed(took)}.",
        next="Conclude nothing from a missing file; look at logs and processes first.",
    )
