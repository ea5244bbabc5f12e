"""Which processes began with which attempt, by the times at which they started."""

from __future__ import annotations

from collections.abc import Sequence

from bitwatch.report.facts import Attempt, ProcessSeen, Story

BEFORE_S = 2.0  # a launcher starts before it has printed its first line
SOON_S = 10.0  # after an attempt began: its ranks and workers
TAIL_S = 120.0  # after the last line of a log, in which its last attempt may have started more


def match(stories: Sequence[Story], processes: Sequence[ProcessSeen]) -> list[ProcessSeen]:
    """Gives each attempt the processes that started in its time, and returns those that fit
    none. A process that fits attempts of two logs is given to neither: nothing tells which."""
    left: list[ProcessSeen] = []
    for process in processes:
        if process.role == "other" or process.started is None:
            left.append(process)
            continue
        fitting = [
            attempt
            for story in stories
            for attempt in story.attempts
            if _fits(process, attempt, _next(story, attempt))
        ]
        if len(fitting) == 1:
            fitting[0].processes.append(process)
        else:
            left.append(process)
    return left


def without_repeats(processes: Sequence[ProcessSeen]) -> list[ProcessSeen]:
    """A process that several listings show is one: the same pid, start and command."""
    found: dict[tuple[int, int | None, str], ProcessSeen] = {}
    for process in processes:
        started = None if process.started is None else round(process.started)
        key = (process.pid, started, process.command)
        kept = found.get(key)
        if kept is None or (kept.alive is None and process.alive is not None):
            found[key] = process
    return sorted(found.values(), key=_place)


def is_over(story: Story, attempt: Attempt) -> bool:
    """Whether something shows that it had ended: a later attempt, or its own word."""
    return attempt is not story.attempts[-1] or attempt.done is not None


def ended_at(story: Story, attempt: Attempt) -> float | None:
    """When it was over at the latest."""
    following = _next(story, attempt)
    return following.begins.t if following is not None else attempt.last.t


def _next(story: Story, attempt: Attempt) -> Attempt | None:
    return story.attempts[attempt.number] if attempt.number < len(story.attempts) else None


def _fits(process: ProcessSeen, attempt: Attempt, following: Attempt | None) -> bool:
    assert process.started is not None
    begins = attempt.begins.t
    if begins is None:
        return False
    first, last = process.started, process.started + process.within_s
    if last < begins - BEFORE_S:
        return False
    if following is not None:
        ends = following.begins.t
        # One that starts just before the next attempt's first line is that one's launcher,
        # but one that began just behind this one's is this one's.
        return ends is not None and (last < ends - BEFORE_S or last <= begins + SOON_S < ends)
    end = max(begins + SOON_S, (attempt.last.t or begins) + TAIL_S)
    return first <= end


def _place(process: ProcessSeen) -> tuple[float, int, str]:
    return (process.started or 0.0, process.pid, process.source)
