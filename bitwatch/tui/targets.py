"""The processes that a signal is meant for, and what it would mean to each. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bitwatch.tui import keys
from bitwatch.tui.draw import plain
from bitwatch.tui.rows import Key, Row

COMMAND_MOST = 400  # characters; a dialog shows one line of it
WHY_MOST = 500
NAME_MOST = 44  # cells that are kept free for a name
OF_THE_ATTEMPT = {
    "supervisor": "without it the training goes on, and nobody watches; attach brings it back",
    "agent": "it holds the ranks together: its end ends the attempt",
    "prepare": "the data is not prepared any further: the attempt ends",
    "rank": "torchrun ends the whole attempt when one rank ends",
    "worker": "its rank fails when it next waits for data, and with it the attempt",
    "resource tracker": "shared memory may be left behind when the attempt ends",
    "compile worker": "its rank compiles more slowly, or fails",
    "sensor": "nothing is known of the GPUs until the supervisor starts another one",
}
OF_SOMEBODY = {
    "agent": "it has launched the ranks: without it the training is over, or goes on unwatched by "
    "whoever launched it",
    "rank": "the others wait for it, or are ended by what launched them; bitwatch starts none again",
    "worker": "its rank fails when it next waits for data, and the training may end with it",
    "resource tracker": "shared memory may be left behind when the training ends",
    "compile worker": "its rank compiles more slowly, or fails",
}
OF_A_TRAINING = "it belongs to a training that bitwatch did not start, which may fail without it"
ENDED = "has ended already"
REAPED = f"{ENDED}, and its parent must reap it"
UNKNOWN = "it belongs to the live attempt, which may fail without it"


class Target(NamedTuple):
    """One identity, with a name for a person. `barred` says why nothing is sent to it, `why`
    what shows that it belongs where it is listed, `role` what it is in the live attempt of a run
    of ours."""

    key: Key
    name: str
    command: str
    means: str
    barred: str = ""
    why: str = ""
    role: str = ""


def name_cells(targets: Iterable[Target]) -> int:
    """How wide their names are, so that what follows them stands in one column."""
    return min(NAME_MOST, max((len(target.name) for target in targets), default=0))


def targets_of(rows: Iterable[Row], *, foreign: bool = False) -> list[Target]:
    """A row that several processes share means all of them. `foreign`: of a training that
    bitwatch did not start, by whatever launcher."""
    found: dict[Key, Target] = {}
    for row in rows:
        for member in row.members or (row,):
            process = member.process
            found[process.key] = Target(
                process.key, _name(member), plain(process.command[:COMMAND_MOST]),
                means(member, foreign), plain(barred(member)), _why(member),
                "" if foreign or member.other or member.group else process.role,
            )  # fmt: skip
    return list(found.values())


def barred(row: Row) -> str:
    """Why nothing is sent to it. What has ended is in the list until its parent has taken note
    of that, which a signal cannot hurry; threads may live on without the first one."""
    if row.barred:
        return row.barred
    if row.state == "gone" or (row.process.state == "X" and not row.process.threads_live):
        return ENDED
    waits = row.process.state == "Z" and row.state != "leader dead"
    return REAPED if waits and not row.process.threads_live else ""


def _why(row: Row) -> str:
    return plain(row.other.why[:WHY_MOST]) if row.other else ""


def _name(row: Row) -> str:
    process = row.process
    name = row.role
    if process.role == "worker" and process.rank is not None and " of rank " not in name:
        name = f"worker {process.worker} of rank {process.rank}"
    return f"{name}, pid {process.pid}"


def means(row: Row, foreign: bool = False) -> str:
    """What the end of this process would mean, in one sentence."""
    process, other = row.process, row.other
    why = _why(row)
    if row.group == "leftover":
        of = f"attempt {row.attempt}" if row.attempt else "an attempt"
        also = f"key {keys.name('clean')} ends it as well"
        return f"left behind by {of}, which has ended: nothing waits for it; {also}"
    if other is not None and other.group == "confirm":
        return f"of a run, but perhaps somebody's: {why or 'look before you end it'}"
    if other is not None and other.group == "suspect":
        return f"only a suspect: {why or 'nothing proves that it is ours'}"
    if other is not None and other.run:
        return f"of a live training, run {plain(other.run)}, which may fail without it"
    if other is not None:
        return why or "not of any run: it holds memory of a GPU"
    if foreign:
        return OF_SOMEBODY.get(process.role, OF_A_TRAINING)
    return OF_THE_ATTEMPT.get(process.role, UNKNOWN)
