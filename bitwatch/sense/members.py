"""What each process of a training is for: its role, its rank, its number among the workers.

The environment of a rank is repeated by all below it: a rank is the first program of Python
below the launcher, or below none, that has the variables. Where the environment says nothing
(processes that a program has spawned by itself) ranks are numbered as they were started.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bitwatch.sense.programs import is_forkserver, launcher
from bitwatch.sense.roles import READER_NAME, role_of_command
from bitwatch.sense.stat import Key, Stat
from bitwatch.sense.training_facts import TrainingFacts, Variables
from bitwatch.sense.trees import number

TOOLS = ("resource tracker", "compile worker")


class Member(NamedTuple):
    """One process of a training. role: agent (the launcher), rank, worker, resource tracker,
    compile worker, or other. `rank`, `local_rank` and `world_size` are from its environment;
    the only process of a training without a launcher is rank 0."""

    stat: Stat
    role: str
    command: str = ""
    rank: int | None = None
    worker: int | None = None
    local_rank: int | None = None
    world_size: int | None = None


class Sorter:
    """Gives each process of one training its role. `root` launches, or is a rank itself."""

    def __init__(self, root: Key, launched: bool, facts: TrainingFacts) -> None:
        self.root, self.launched, self.facts = root, launched, facts
        self._names_readers = False  # torch 2.6 and later do

    def members(self, stats: Iterable[Stat]) -> tuple[Member, ...]:
        """`stats`: parents before children, the root among them."""
        stats = list(stats)
        self._names_readers = any(stat.name == READER_NAME for stat in stats)
        spawned: dict[int, int] = {} if self.launched else self._spawned(stats)
        found: dict[int, Member] = {}
        inside: dict[int, Member] = {}  # the rank that a process is, or is below
        for stat in stats:
            above, rank = found.get(stat.ppid), inside.get(stat.ppid)
            if stat.pid in spawned:
                variables = self.facts.variables(stat)
                member = self._rank(stat, spawned[stat.pid], variables)
            elif stat.key == self.root and spawned and 0 in spawned.values():
                member = Member(stat, "agent", self.facts.command(stat))
            else:
                member = self._member(stat, above, rank)
            found[stat.pid] = member
            if member.role == "rank":
                inside[stat.pid] = member
            elif rank is not None:
                inside[stat.pid] = rank
        return tuple(_numbered(found.values()))

    def _member(self, stat: Stat, above: Member | None, rank: Member | None) -> Member:
        command, variables = self.facts.command(stat), self.facts.variables(stat)
        role = role_of_command(command, stat.name)
        is_copy = above is not None and command == above.command
        if stat.key == self.root and self.launched:
            return Member(stat, "agent", command)
        if launcher(command) and rank is None and not is_copy:
            return Member(stat, "agent", command)
        if rank is not None:
            return self._below(stat, role, command, rank)
        own = number(variables, "RANK")
        if role in TOOLS:
            return Member(stat, role, command, own)
        if stat.name == READER_NAME:  # its rank has ended
            return Member(stat, "worker", command, own)
        if not self.facts.is_python(stat):
            return Member(stat, "other", command, own)
        if above is None and role == "worker":
            return Member(stat, role, command, own)
        if own is None and stat.key == self.root:
            return self._rank(stat, 0, variables)
        # A child of the launcher that cannot be looked into now is a rank, of unknown number.
        hidden = variables is None and above is not None and above.role == "agent"
        if own is not None or hidden:
            return self._rank(stat, own, variables)
        # One process alone needs no variables: accelerate gives it none.
        below_launcher = above is not None and above.role == "agent" and not is_copy
        if below_launcher and self.facts.has_torch(stat):
            return self._rank(stat, 0, variables)
        return Member(stat, "other", command)

    def _rank(self, stat: Stat, rank: int | None, variables: Variables | None) -> Member:
        local, size = number(variables, "LOCAL_RANK"), number(variables, "WORLD_SIZE")
        command = self.facts.command(stat)
        return Member(stat, "rank", command, rank, local_rank=local, world_size=size)

    def _below(self, stat: Stat, role: str, command: str, rank: Member) -> Member:
        """What a rank has started, or what that has."""
        is_child = stat.ppid == rank.stat.pid
        if stat.name == READER_NAME:
            role = "worker"
        elif is_forkserver(command):
            role = "other"
        elif is_child and command == rank.command and not self._names_readers:
            role = "worker"  # a fork
        elif role not in TOOLS and not (role == "worker" and is_child):
            role = "other"
        return Member(stat, role, command, rank.rank)

    def _spawned(self, stats: list[Stat]) -> dict[int, int]:
        """The ranks that the root has started by itself, by pid. It is one of them when
        they begin with 1."""
        root = next((stat for stat in stats if stat.key == self.root), None)
        if root is None or number(self.facts.variables(root), "RANK") is not None:
            return {}
        children = [stat for stat in stats if stat.ppid == root.pid]
        locals_ = {
            stat.pid: rank
            for stat in children
            if (rank := number(self.facts.variables(stat), "LOCAL_RANK")) is not None
        }
        if locals_ and number(self.facts.variables(root), "LOCAL_RANK") is None:
            return locals_
        ranks = [stat for stat in children if self._trains(stat, root, stats)]
        return {
            stat.pid: rank
            for rank, stat in enumerate(sorted(ranks, key=lambda stat: (stat.starttime, stat.pid)))
        }

    def _trains(self, stat: Stat, root: Stat, stats: list[Stat]) -> bool:
        """Whether this copy of the root is a rank: it has workers of its own, or what the root
        has not and so cannot have left to it: connections to other ranks, or a GPU."""
        command = self.facts.command(stat)
        is_copy = role_of_command(command) == "worker" or command == self.facts.command(root)
        if not is_copy or stat.name == READER_NAME or is_forkserver(command):
            return False
        if not self.facts.has_torch(stat):
            return False
        if any(below.ppid == stat.pid and below.name == READER_NAME for below in stats):
            return True
        if self.facts.connections(stat) - self.facts.connections(root):
            return True
        return bool(self.facts.gpu_files(stat)) and not self.facts.gpu_files(root)


def _numbered(members: Iterable[Member]) -> list[Member]:
    """Workers by the order of their start, those of each rank for themselves."""
    members = list(members)
    workers = [member for member in members if member.role == "worker"]
    workers.sort(key=lambda member: (member.stat.starttime, member.stat.pid))
    counts: dict[int | None, int] = {}
    numbers: dict[int, int] = {}
    for member in workers:
        numbers[member.stat.pid] = counts.get(member.rank, 0)
        counts[member.rank] = numbers[member.stat.pid] + 1
    return [member._replace(worker=numbers.get(member.stat.pid)) for member in members]
