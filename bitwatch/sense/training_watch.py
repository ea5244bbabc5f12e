"""A known training again and again: which of its processes live, and what has joined them.

What started a process may end before it, and the process is handed to others: what was known
of it stays true then.
"""

from __future__ import annotations

from collections.abc import Sequence

from bitwatch.sense.members import Member, Sorter
from bitwatch.sense.programs import launcher
from bitwatch.sense.stat import Key, Stat, descendants
from bitwatch.sense.training import Training
from bitwatch.sense.training_facts import TrainingFacts


class TrainingWatch:
    """Made for a look a second: what cannot change is read once."""

    def __init__(self, training: Training) -> None:
        self.facts = TrainingFacts()
        self._root = training.root
        root = next(one for one in training.members if one.stat.key == training.root)
        # Ranks that a program has started by itself have no environment that says so.
        told = any(one.world_size is not None for one in training.members)
        launches = root.role == "agent" and (told or launcher(root.command) != "")
        self._sorter = Sorter(training.root, launches, self.facts)
        self._known = {member.stat.key: member for member in training.members}
        self._parents = {member.stat.key: member.stat.ppid for member in training.members}

    def look(self) -> tuple[Member, ...]:
        """The members that are there now, parents before children; empty when all are gone.
        A worker keeps its number, and a new one takes the lowest that is free in its rank."""
        self.facts.look(self._known)
        stats = self._ordered(list(self.facts.own.values()))
        sorted_ = [self._remembered(member) for member in self._sorter.members(stats)]
        members = self._numbered(sorted_)
        self._known = {member.stat.key: member for member in members}
        parents = {member.stat.key: member.stat.ppid for member in members}
        self._parents = {key: self._parents.get(key, parent) for key, parent in parents.items()}
        return members

    def _ordered(self, own: list[Stat]) -> list[Stat]:
        table = {stat.pid: stat for stat in own}
        tops = [stat for stat in own if stat.ppid not in table]
        tops.sort(key=lambda stat: stat.key != self._root)
        return [*tops, *descendants(table, {stat.pid for stat in tops})]

    def _remembered(self, member: Member) -> Member:
        """What was known of it when its parent and it lived."""
        key = member.stat.key
        known = self._known.get(key)
        orphaned = member.stat.ppid != self._parents.get(key)
        if known is None or not (orphaned or member.stat.state in "ZX"):
            return member
        return known._replace(stat=member.stat)

    def _numbered(self, members: Sequence[Member]) -> tuple[Member, ...]:
        numbers: dict[Key, int | None] = {}
        taken: dict[int | None, set[int]] = {}
        workers = [member for member in members if member.role == "worker"]
        workers.sort(key=lambda member: (member.stat.starttime, member.stat.pid))
        for member in workers:
            known = self._known.get(member.stat.key)
            if known is not None and known.worker is not None and known.rank == member.rank:
                numbers[member.stat.key] = known.worker
                if member.stat.state not in "ZX":
                    taken.setdefault(member.rank, set()).add(known.worker)
        for member in workers:
            if member.stat.key not in numbers:
                used = taken.setdefault(member.rank, set())
                lowest = next(number for number in range(len(used) + 1) if number not in used)
                numbers[member.stat.key] = lowest
                used.add(lowest)
        return tuple(member._replace(worker=numbers.get(member.stat.key)) for member in members)
