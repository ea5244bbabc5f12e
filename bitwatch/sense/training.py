"""Which processes make up a training, whoever started it, and what shows it. Only looks."""

from __future__ import annotations

from typing import NamedTuple

from bitwatch.sense.stat import Key, Stat


class NoTraining(Exception):
    """What a pid is instead, as one sentence."""


class Member(NamedTuple):
    """One process of a training. role: agent (the launcher), rank, worker, resource tracker,
    compile worker, or other. `rank`, `local_rank` and `world_size` are from its environment."""

    stat: Stat
    role: str
    command: str = ""
    rank: int | None = None
    worker: int | None = None
    local_rank: int | None = None
    world_size: int | None = None


class Log(NamedTuple):
    """A file that something of a training writes. `path` as it is named; `opened` is the way to
    exactly that file through the process that has it open, also when it has been deleted.
    `how` says who writes it, as in "standard output of rank 0"."""

    path: str
    opened: str
    pid: int
    how: str
    deleted: bool = False


class Training(NamedTuple):
    """`root` is the launcher, or the training itself when it has none. `members` parents first,
    the root among them. `ranks`: how many there should be, by the environment of one; the
    number of ranks found where that does not say. `logs` likeliest first. `evidence`: sentences
    that say why this is a training."""

    root: Key
    command: str
    directory: str
    started: float
    members: tuple[Member, ...]
    ranks: int
    logs: tuple[Log, ...] = ()
    evidence: tuple[str, ...] = ()
