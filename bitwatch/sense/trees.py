"""Which processes of this user belong together as a training, and what shows it.

A training has a launcher above its ranks; or its launcher is gone, and the ranks know each
other by the address that their environments name; or it is one program, with or without
copies of itself below it. Runs of bitwatch's own are left out: their record knows them better.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bitwatch.sense.programs import launcher, other_program
from bitwatch.sense.roles import role_of_command
from bitwatch.sense.stat import Stat, children_by_parent, descendants, is_dead
from bitwatch.sense.training_facts import TrainingFacts, Variables

HELPERS = ("worker", "resource tracker", "compile worker", "supervisor", "sensor", "prepare")

# The command line of a supervisor: a directory, an attempt, what to do with it, then words.
SUPERVISED = re.compile(
    r"bitwatch\.supervise\.supervisor (?P<directory>.+?) \d+ (?:launch|adopt|relaunch)(?: |$)"
)

Table = dict[int, Stat]
Address = tuple[str, str, str]


class Tree(NamedTuple):
    """`tops`: the root, and what has lost its parent. All below them belongs to it too."""

    root: Stat
    tops: tuple[Stat, ...]
    evidence: tuple[str, ...]
    launched: bool  # whether the root launches ranks and is none itself

    def members(self, table: Table, children: dict[int, list[int]] | None = None) -> list[Stat]:
        """Parents before children."""
        tops = {stat.pid for stat in self.tops}
        below = descendants(table, tops, children)
        return [self.root, *(top for top in self.tops if top != self.root), *below]


def number(variables: Variables | None, name: str) -> int | None:
    text = (variables or {}).get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def ancestors(table: Table, stat: Stat) -> Iterator[Stat]:
    """Its parent first."""
    seen = {stat.pid}
    while (above := table.get(stat.ppid)) is not None and above.pid not in seen:
        seen.add(above.pid)
        yield above
        stat = above


class Forest:
    """The trainings in one look at all processes."""

    def __init__(self, table: Table, facts: TrainingFacts, writes_log: Callable[[Stat], bool]):
        self.table, self.facts, self._writes_log = table, facts, writes_log
        self.children = children_by_parent(table)
        user = os.getuid()
        self.mine = {
            pid: stat
            for pid, stat in table.items()
            if not is_dead(stat) and facts.user(stat) == user and facts.is_python(stat)
        }
        self.mine = {pid: stat for pid, stat in self.mine.items() if not self.run_of(stat)}
        self.claimed: set[int] = set()
        self.trees: list[Tree] = []
        for kind in (self._launched, self._without_launcher, self._single):
            self.trees.extend(kind())
        self._adopt()

    def run_of(self, stat: Stat) -> tuple[str, str] | None:
        """The name and the directory of bitwatch's own run to which it belongs."""
        for one in (stat, *ancestors(self.table, stat)):
            variables = self.facts.variables(one) if one.pid == stat.pid else None
            if variables and variables.get("BITWATCH_RUN"):
                return variables["BITWATCH_RUN"], variables.get("BITWATCH_DIR", "")
            command = self.facts.command(one)
            if role_of_command(command) == "supervisor":
                after = SUPERVISED.search(command)
                directory = after["directory"] if after else ""
                return os.path.basename(directory), directory
        return None

    def tree_of(self, pid: int) -> Tree | None:
        for tree in self.trees:
            if any(stat.pid == pid for stat in tree.members(self.table, self.children)):
                return tree
        return None

    def trees_below(self, pid: int) -> list[Tree]:
        below = {stat.pid for stat in descendants(self.table, {pid}, self.children)}
        return [tree for tree in self.trees if tree.root.pid in below]

    def _claim(self, tree: Tree) -> Tree:
        self.claimed |= {stat.pid for stat in tree.members(self.table, self.children)}
        return tree

    def _launched(self) -> Iterator[Tree]:
        roots: dict[int, Stat] = {}
        for stat in self.mine.values():
            if launcher(self.facts.command(stat)):
                chain = [stat, *ancestors(self.table, stat)]
                top = [
                    one
                    for one in chain
                    if one.pid in self.mine and launcher(self.facts.command(one))
                ][-1]
                roots[top.pid] = top
        for stat in roots.values():
            name = launcher(self.facts.command(stat))
            name = f"{name}, which launches trainings"
            yield self._claim(Tree(stat, (stat,), (f"pid {stat.pid} is {name}",), True))

    def _without_launcher(self) -> Iterator[Tree]:
        """Ranks, by their environments, that no known launcher is above."""
        groups: dict[tuple[Address, int], list[Stat]] = {}
        for stat in self._free():
            address, size = self._address(stat), number(self._of(stat), "WORLD_SIZE")
            if address is not None and size is not None and self._is_rank(stat):
                groups.setdefault((address, size), []).append(stat)
        found = [
            (ranks_of_one, size)
            for (_, size), ranks in groups.items()
            for ranks_of_one in self._apart(ranks)
        ]
        starts = Counter(parent for ranks, _ in found for parent in {one.ppid for one in ranks})
        for ranks, size in found:
            yield self._claim(self._group(ranks, size, starts))

    def _group(self, ranks: list[Stat], size: int, starts: Counter[int]) -> Tree:
        """`starts`: how many trainings each process has started. Who has started several is
        part of none."""
        ranks = sorted(ranks, key=lambda stat: number(self._of(stat), "RANK") or 0)
        parents = {stat.ppid for stat in ranks}
        numbers = ", ".join(str(number(self._of(stat), "RANK")) for stat in ranks)
        pids = ", ".join(str(stat.pid) for stat in ranks)
        word = "ranks" if len(ranks) > 1 else "rank"
        evidence = f"by environment and torch in memory, {word} {numbers} of {size}: pid {pids}"
        parent = parents.pop() if len(parents) == 1 else 0
        above = self.mine.get(parent) if starts[parent] == 1 else None
        if above is not None and not other_program(self.facts.command(above)):
            return Tree(above, (above,), (evidence, f"pid {above.pid} launched them"), True)
        return Tree(ranks[0], tuple(ranks), (evidence, "no launcher of them is there"), False)

    def _apart(self, ranks: list[Stat]) -> Iterator[list[Stat]]:
        """The same address may have served two trainings, one after the other. Where it has, what
        has lost its parent is not of the one whose ranks have theirs."""
        numbers = Counter(number(self._of(stat), "RANK") for stat in ranks)
        orphans = [stat for stat in ranks if self._is_orphan(stat)]
        if max(numbers.values()) > 1 and 0 < len(orphans) < len(ranks):
            yield from self._one_after_the_other(orphans)
            ranks = [stat for stat in ranks if stat not in orphans]
        yield from self._one_after_the_other(ranks)

    def _is_orphan(self, stat: Stat) -> bool:
        above = self.table.get(stat.ppid)
        return above is None or above.pid == 1 or above.name == "systemd"

    def _one_after_the_other(self, ranks: list[Stat]) -> Iterator[list[Stat]]:
        group: dict[int | None, Stat] = {}
        for stat in sorted(ranks, key=lambda stat: stat.starttime):
            rank = number(self._of(stat), "RANK")
            if rank in group:
                yield list(group.values())
                group = {}
            group[rank] = stat
        yield list(group.values())

    def _single(self) -> Iterator[Tree]:
        tops: dict[int, Stat] = {}
        for stat in self._free():
            if self._may_train(stat) and self.facts.has_torch(stat):
                top = self._original(stat)
                if self._may_train(top):
                    tops[top.pid] = top
        for top in tops.values():
            shown = self._shown(top)
            if shown:
                first = f"pid {top.pid} has torch in its memory"
                yield self._claim(Tree(top, (top,), (first, *shown), False))

    def _original(self, stat: Stat) -> Stat:
        """The program of which this is a copy, forked or spawned; itself if it is none."""
        for above in ancestors(self.table, stat):
            command = self.facts.command(stat)
            copied = command == self.facts.command(above) or role_of_command(command) == "worker"
            if not copied or not self._is_free(above) or not self.facts.has_torch(above):
                break
            stat = above
        return stat

    def _shown(self, top: Stat) -> list[str]:
        """Why a program that has torch trains with it. Having it alone means nothing."""
        family = [top, *descendants(self.table, {top.pid}, self.children)]
        found = []
        holders = [stat.pid for stat in family if self.facts.gpu_files(stat)]
        if holders:
            found.append(f"pid {holders[0]} has a GPU open")
        readers = [
            stat
            for stat in family[1:]
            if role_of_command(self.facts.command(stat), stat.name) == "worker"
        ]
        if readers:
            pids = ", ".join(str(stat.pid) for stat in readers[:4])
            more = ", and more" if len(readers) > 4 else ""
            found.append(
                f"processes that load data or compute for it are below it: pid {pids}{more}"
            )
        if self._writes_log(top):
            found.append("it writes a log")
        return found

    def _adopt(self) -> None:
        """Workers whose rank has ended belong to the training that their environment names."""
        addresses = [self._addresses(tree) for tree in self.trees]
        for stat in self._free():
            address = self._address(stat)
            for index, tree in enumerate(self.trees):
                began_before = tree.root.starttime <= stat.starttime
                if address and address in addresses[index] and began_before:
                    self.trees[index] = self._claim(tree._replace(tops=(*tree.tops, stat)))
                    break

    def _addresses(self, tree: Tree) -> set[Address | None]:
        members = tree.members(self.table, self.children)
        return {self._address(stat) for stat in members if stat.pid in self.mine}

    def _is_rank(self, stat: Stat) -> bool:
        """Rank variables and torch: in a container everything may have the variables. What has
        the same rank as the program above it is a helper of that one."""
        if not self._may_train(stat) or number(self._of(stat), "RANK") is None:
            return False
        above = self.mine.get(stat.ppid)
        is_repeated = (
            above is not None
            and self._of(above).get("RANK") == self._of(stat).get("RANK")
            and self.facts.has_torch(above)
        )
        return self.facts.has_torch(stat) and not is_repeated

    def _address(self, stat: Stat) -> Address | None:
        """What all ranks of a training share, and their workers with them."""
        variables = self._of(stat)
        if not variables.get("RANK") or not variables.get("MASTER_PORT"):
            return None
        names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
        host, port, run = (variables.get(name, "") for name in names)
        return host, port, run

    def _may_train(self, stat: Stat) -> bool:
        command = self.facts.command(stat)
        role = role_of_command(command, stat.name)
        return role not in HELPERS and not other_program(command)

    def _of(self, stat: Stat) -> Variables:
        return self.facts.variables(stat) or {}

    def _free(self) -> list[Stat]:
        return [stat for stat in self.mine.values() if stat.pid not in self.claimed]

    def _is_free(self, stat: Stat) -> bool:
        return stat.pid in self.mine and stat.pid not in self.claimed
