"""Findings about processes: what earlier attempts left behind, and clocks that disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch.attach.said import Line
from bitwatch.report import matching
from bitwatch.report.attempts import ENDS
from bitwatch.report.facts import (
    Attempt,
    Gathered,
    ListingSeen,
    ProcessSeen,
    Story,
    of_line,
    of_process,
)
from bitwatch.report.model import Evidence, Finding
from bitwatch.report.words import called, listed, moment, pids, quoted, span, wanted
from bitwatch.text import counted, duration

EVIDENCE_PROCESSES = 12
CLOCK_S = 60.0  # by which times of one machine may differ before it is said
NEXT = (
    "`bitwatch clean` lists what still lives with its proof and ends it by its pid, or end exactly "
    "these by their pid. Neither `pkill -f multiprocessing.spawn` nor a GPU reset is a remedy: "
    "they end everybody else's jobs too, and leave semaphores behind."
)


NEXT_UNSURE = (
    "`bitwatch attach` shows whether they train, and `bitwatch clean` lists what is left over, "
    "with its proof. End nothing before that is known."
)


def find(stories: Sequence[Story], gathered: Gathered) -> Iterator[Finding]:
    taken = _taken(gathered)
    for story in stories:
        for attempt in story.attempts:
            if attempt.processes and matching.is_over(story, attempt):
                yield from _leftovers(story, attempt, taken, gathered.listings)
    yield from _unmatched(stories, gathered)
    yield from _clocks(gathered)


def _leftovers(
    story: Story, attempt: Attempt, taken: dict[str, float], listings: Sequence[ListingSeen]
) -> Iterator[Finding]:
    """Processes of an attempt that was over when they were listed."""
    over = matching.ended_at(story, attempt)
    left = [
        process
        for process in attempt.processes
        if process.alive is not False and _was_listed_after(process, over, taken)
    ]
    gone_on = [process for process in left if _may_go_on(process, story, attempt)]
    for some, unsure in (([p for p in left if p not in gone_on], False), (gone_on, True)):
        if some:
            yield _left(story, attempt, some, listings, unsure)


def _may_go_on(process: ProcessSeen, story: Story, attempt: Attempt) -> bool:
    """Whether the next attempt may be this very process's: torchrun restarts its ranks and goes
    on itself, and a program that begins anew without an end has no new processes."""
    later = story.attempts[attempt.number :]
    if not later:
        return False
    if process.role == "agent" and any(one.restart is not None for one in later):
        return True
    ended = attempt.done is not None or any(said.what in ENDS for said in attempt.problems)
    return not ended and process.role not in {p.role for one in later for p in one.processes}


def _left(
    story: Story,
    attempt: Attempt,
    left: Sequence[ProcessSeen],
    listings: Sequence[ListingSeen],
    unsure: bool,
) -> Finding:
    name = called(attempt, len(story.attempts))
    begins = attempt.begins.t
    evidence = [of_line(attempt.begins), *map(of_process, left[:EVIDENCE_PROCESSES])]
    if attempt.number < len(story.attempts):
        following = story.attempts[attempt.number]
        evidence.append(of_line(following.begins))
        after = f"{called(following)} had begun"
    else:
        after = "it had ended"
    assert begins is not None
    why = [
        f"{'They' if len(left) > 1 else 'It'} started {span(left, begins)} the first line of {name} "
        f"({wanted(attempt)}, {moment(begins)}), and the listing was taken after {after}.",
        f" The same {'process' if len(left) == 1 else 'processes'} may have gone on with "
        f"{called(story.attempts[attempt.number])}: nothing shows that {name} ended them."
        if unsure
        else "",
        _defunct(left),
        " " + " ".join(sorted({f"Their start: {p.inferred}." for p in left if p.inferred})[:2]),
        _prose(listings, evidence),
        " A listing is of its time: whether they live now it does not say.",
    ]
    roles = listed(sorted({p.role for p in left}))
    many, verb = counted(len(left), "process"), "is" if len(left) == 1 else "are"
    title = f"{many} of {name} {verb} left over ({roles})"
    if unsure:
        title = f"{many} that started with {name} {verb} still there ({roles})"
    return Finding(
        id="leftovers",
        severity="info" if unsure else "warning",
        title=f"{title}: {pids(left)}",
        evidence=evidence,
        why="".join(why).replace("  ", " "),
        next=NEXT_UNSURE if unsure else NEXT,
    )


def _taken(gathered: Gathered) -> dict[str, float]:
    """When each listing was taken at the earliest: after the last start that it shows, and
    where its file's time is its own, then."""
    taken: dict[str, float] = {}
    for process in gathered.processes:
        if process.started is not None:
            taken[process.source] = max(taken.get(process.source, 0.0), process.started)
    for listing in gathered.listings:
        if listing.taken is not None:
            taken[listing.path] = max(taken.get(listing.path, 0.0), listing.taken)
    return taken


def _was_listed_after(process: ProcessSeen, over: float | None, taken: dict[str, float]) -> bool:
    """Whether it is shown at a time when its attempt was over; else it proves nothing."""
    if process.alive:
        return True
    when = taken.get(process.source)
    return over is None or (when is not None and when >= over)


def _defunct(left: Sequence[ProcessSeen]) -> str:
    dead = [process for process in left if process.state.startswith("Z")]
    if not dead:
        return ""
    return f" Defunct, so dead already and waiting for its parent: {pids(dead)}."


def _prose(listings: Sequence[ListingSeen], evidence: list[Evidence]) -> str:
    """What stands between the rows of a listing is quoted, and never counted."""
    more: list[Line] = [line for listing in listings for line in listing.prose if line.text.strip()]
    more = [line for line in more if "more" in line.text.lower()]
    if not more:
        return ""
    evidence.append(of_line(more[0]))
    return f' "{quoted(more[0].text, 60)}" is prose: no process is counted from it.'


def _unmatched(stories: Sequence[Story], gathered: Gathered) -> Iterator[Finding]:
    """Processes that look like a training's and fit no attempt."""
    matched = {id(p) for story in stories for one in story.attempts for p in one.processes}
    left = [p for p in gathered.processes if p.role != "other" and id(p) not in matched]
    left = [p for p in left if p.source in {listing.path for listing in gathered.listings}]
    if not left:
        return
    told = any(story.attempts for story in stories)
    why = (
        "Their start fits no attempt, or those of two logs, or it is not shown."
        if told
        else "No log is there to say what they belong to."
    )
    yield Finding(
        id="processes-without-attempt",
        severity="info",
        title=f"{_that_look(len(left))} like a training's {'belongs' if len(left) == 1 else 'belong'} to "
        f"no attempt that the evidence tells of: {pids(left)}",
        evidence=[of_process(process) for process in left[:EVIDENCE_PROCESSES]],
        why=why,
        next="Look who owns them before anything is ended; `bitwatch clean` lists what lives now.",
    )


def _that_look(many: int) -> str:
    return f"{counted(many, 'process')} that {'looks' if many == 1 else 'look'}"


def _clocks(gathered: Gathered) -> Iterator[Finding]:
    """Times that cannot all be right. An hour that comes twice in a log is no such time where
    clocks are set back."""
    why, evidence = [], []
    set_back = True  # of all that is found
    for listing in gathered.listings:
        if listing.taken is None:
            continue
        ahead = [
            process
            for process in gathered.processes
            if process.source == listing.path
            and process.started is not None
            and process.started > listing.taken + CLOCK_S
        ]
        if ahead:
            by = duration((ahead[-1].started or 0.0) - listing.taken)
            why.append(
                f"{pids(ahead)} began after the listing that shows them was written, by up to {by}."
            )
            evidence += [of_process(process) for process in ahead[:EVIDENCE_PROCESSES]]
            set_back = False
    for log in gathered.logs:
        if log.modified is not None and log.ends is not None:
            ahead_s = log.ends - log.modified
            if ahead_s > CLOCK_S:
                why.append(
                    f"{log.path} was last changed at {moment(log.modified)}, and has a line of "
                    f"{moment(log.ends)}, {duration(ahead_s)} later{_zone(ahead_s)}."
                )
                evidence += [of_line(log.last)] if log.last else []
                set_back = False
        if log.backwards is not None:
            first, then = log.backwards
            hour = is_one_hour_back(first, then)
            set_back = set_back and hour
            why.append(
                f"In {log.path} the time goes back from line {first.number} to {then.number}"
                f"{': by an hour, as when summer time ends' if hour else ''}."
            )
            evidence += [of_line(first), of_line(then)]
    if why:
        yield Finding(
            id="clocks-disagree",
            severity="info" if set_back else "warning",
            title="The clock of a log goes back by an hour"
            if set_back
            else "Times in the evidence cannot all be right",
            evidence=evidence,
            why=" ".join(why),
            next="Compare the clocks and the time zones of the machines that the files come from; "
            "what is matched by time is doubtful until then.",
        )


def is_one_hour_back(first: Line, then: Line) -> bool:
    if first.t is None or then.t is None:
        return False
    return bool(_zone(first.t - then.t)) and round((first.t - then.t) / 1800.0) == 2


def _zone(seconds: float) -> str:
    """Whole half hours are rather another time zone."""
    halves = seconds / 1800.0
    if seconds <= 14 * 3600 + CLOCK_S and abs(halves - round(halves)) < 0.05:
        return ": as in another time zone"
    return ""
