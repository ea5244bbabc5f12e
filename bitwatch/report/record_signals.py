"""Findings about processes of a recorded run that a signal ended: which was the first, and who
sent it where the record says so. The kernel's log is what could say more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bitwatch.record import events
from bitwatch.report.model import Evidence, Finding, Verdict
from bitwatch.report.record_end import Ended
from bitwatch.report.record_words import how, name, signal_name

SENT_S = 120.0  # from an action to the exit that it explains
TOGETHER_S = 5.0  # within which those follow whose parent was ended
KILLED = re.compile(  # as causes say it: of a rank, a worker, or torchrun
    r"(?P<who>torchrun|worker \d+ of rank \d+|rank \d+)(?: \(pid (?P<pid>\d{1,9})\))?"
    r"(?:,[^:;]{0,80},)? was killed by (?P<signal>SIG[A-Z0-9]+|signal \d+)"
)
BY_REQUEST = ("stop", "escalate", "clean")  # actions that end a whole attempt


class Killed(NamedTuple):
    """`who` names the process, `signal` the signal."""

    who: str
    signal: str
    t: float
    pid: int = 0
    evidence: Evidence | None = None


def signals(ended: Ended, verdict: Verdict) -> Iterator[Finding]:
    killed = _first(ended)
    if killed is None or ended.state == "done":
        return
    evidence = [killed.evidence] if killed.evidence else []
    if sender := sent_by(ended, killed):
        by, place = sender
        verdict.shown.append(f"{killed.who} of {ended.name} was ended by {killed.signal}: {by}")
        yield Finding(
            id="killed",
            severity="info",
            title=f"{killed.who} was ended by {killed.signal}, as was asked: {by}",
            evidence=[*evidence, place],
            why="The record has the action shortly before the end: this is no failure of the run.",
            next="nothing need be done",
        )
        return
    unknown = (
        f"who sent {killed.signal} to {killed.who} of {ended.name}: no action in the record did"
    )
    verdict.unknown.append(unknown)
    if killed.signal == "SIGKILL" and killed.who.startswith(("rank", "worker")):
        verdict.likely.append(
            f"{killed.who} of {ended.name} was killed for want of memory of the machine: the "
            "kernel's out-of-memory killer is what most often sends SIGKILL to a training; only "
            "the kernel's log can show it"
        )
    yield Finding(
        id="killed",
        severity="error" if ended.state in ("failed", "lost") else "warning",
        title=f"{killed.who} was killed by {killed.signal}",
        evidence=evidence,
        why=f"A signal comes from outside of the process. It is not known {unknown}.",
        next="dmesg or journalctl -k shows whether the kernel did it for want of memory, and the "
        "log of a scheduler whether it did",
    )


def _first(ended: Ended) -> Killed | None:
    """Who was ended by a signal before the others, which then lost their parent or were ended
    by torchrun."""
    places = ended.record.story.places
    exits = sorted(
        (exit for exit in ended.exits if not _follows(exit, ended)), key=lambda exit: exit.t
    )
    if exits:
        first = exits[0]
        place = places.get(("exit", first.pid, first.starttime))
        return Killed(name(first), signal_name(first.signal or 0), first.t, first.pid, place)
    word = ended.words[0] if ended.words else None
    said = KILLED.search(word.cause if word else ended.cause)
    if said is None:
        return None
    t = ended.attempt.ended.t if ended.attempt.ended else ended.updated
    place = places.get(("ended", ended.number))
    if word is not None:
        t, place = word.t, places.get(("word", ended.number, word.rank), place)
    return Killed(said["who"], said["signal"], t, int(said["pid"] or 0), place)


def _follows(exit: events.ProcessExit, ended: Ended) -> bool:
    """Whether its end is what the end of another one leads to: workers go with their rank,
    ranks with torchrun, and torchrun ends the others once one has failed."""
    if exit.role == "agent":
        return False
    agents = [other for other in ended.exits if other.role == "agent"]
    if any(other.t <= exit.t + TOGETHER_S for other in agents):
        return True
    failed = {word.rank for word in ended.words}
    ranks = [other for other in ended.exits if other.role == "rank" and other is not exit]
    if exit.role == "worker":
        lost = any(other.rank == exit.rank for other in ranks)
        return lost or exit.rank in failed or signal_name(exit.signal or 0) == "SIGTERM"
    if how(exit).endswith("SIGTERM"):
        return bool(failed) or any(not how(other).endswith("SIGTERM") for other in ranks)
    return False


def sent_by(ended: Ended, killed: Killed) -> tuple[str, Evidence] | None:
    """The action of the record shortly before that explains it: in words, and its place."""
    for action, place in ended.record.story.actions:
        if not -TOGETHER_S <= killed.t - action.t <= SENT_S:
            continue
        said = f"{action.on} {action.result}"
        named = killed.pid and re.search(rf"\b{killed.pid}\b", said)
        whole = action.name in BY_REQUEST and action.on == f"attempt {ended.number}"
        if named or whole:
            return f"{action.name} by {action.by or 'somebody unnamed'}", place
    return None
