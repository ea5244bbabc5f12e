"""Which processes make up a training, whoever started it, and what shows it. Only looks: nothing
is signalled, traced or opened that could notice it.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterable
from typing import NamedTuple

from bitwatch.sense.facts import NOBODY, STATUS_BYTES
from bitwatch.sense.log_files import Log, LogFinder
from bitwatch.sense.members import Member, Sorter
from bitwatch.sense.programs import other_program, words_for
from bitwatch.sense.roles import READER_NAME, role_of_command
from bitwatch.sense.stat import Key, Stat, age_s, is_dead, read_raw, read_stat
from bitwatch.sense.training_facts import TrainingFacts
from bitwatch.sense.trees import Forest, Tree
from bitwatch.text import literal

__all__ = ["Log", "Member", "NoTraining", "Training", "all_here", "of"]


class NoTraining(Exception):
    """What a pid is instead, as one sentence. `run_directory`: of the run of bitwatch's own to
    which it belongs, empty for none."""

    def __init__(self, sentence: str, run_directory: str = "") -> None:
        super().__init__(sentence)
        self.run_directory = run_directory


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


def of(pid: int, facts: TrainingFacts | None = None) -> Training:
    """The training to which this process belongs, or the only one below it, or whose output it
    reads. Raises NoTraining."""
    return _Look(facts or TrainingFacts()).training_of(pid)


def all_here(facts: TrainingFacts | None = None) -> list[Training]:
    """All of this user's that bitwatch has not launched, newest first. Whoever asks again and
    again hands in the same `facts`, and pays for what is new only."""
    look = _Look(facts or TrainingFacts())
    found = [look.training(tree) for tree in look.forest.trees]
    return sorted(found, key=lambda training: training.root[1], reverse=True)


class _Look:
    """All processes at one instant."""

    def __init__(self, facts: TrainingFacts) -> None:
        self.facts = facts
        self.table = facts.look(everything=True)
        self.files = LogFinder(self.table)
        self.forest = Forest(self.table, facts, self.files.writes_log)

    def training(self, tree: Tree, *more: str) -> Training:
        stats = tree.members(self.table, self.forest.children)
        members = Sorter(tree.root.key, tree.launched, self.facts).members(stats)
        ranks = [member for member in members if member.role == "rank"]
        asked = next((member.world_size for member in ranks if member.world_size), None)
        return Training(
            root=tree.root.key,
            command=self.facts.command(tree.root),
            directory=self.facts.directory(tree.root),
            started=time.time() - age_s(tree.root),
            members=members,
            ranks=asked or max(len(ranks), 1),
            logs=self.files.logs(tree.root, members),
            evidence=(*tree.evidence, *_processes(ranks, members), *more),
        )

    def training_of(self, pid: int) -> Training:
        stat = self._accepted(pid)
        pid = stat.pid
        tree = self.forest.tree_of(pid)
        if tree is not None:
            return self.training(tree)
        what = self._what(stat)
        below = self.forest.trees_below(pid) if pid != 1 else []
        if len(below) == 1:
            return self.training(below[0], f"pid {pid} is {what}, and this is all it trains")
        if below:
            pids = " or ".join(str(tree.root.pid) for tree in below)
            raise NoTraining(f"pid {pid} is {what}, with several trainings below it: name {pids}")
        for writer in self.files.writers_into(stat):
            tree = self.forest.tree_of(writer.pid)
            if tree is not None:
                return self.training(tree, f"pid {pid} is {what}, and reads what it prints")
        raise NoTraining(self._why_not(stat, what))

    def _accepted(self, pid: int) -> Stat:
        """Its stat, when it may belong to a training of this user that is not our own."""
        stat = self.table.get(pid) or _leader(pid) or read_stat(pid)
        if stat is None:
            if not os.path.exists(f"/proc/{pid}"):
                raise NoTraining(f"there is no process {pid}")
            raise NoTraining(f"pid {pid} may not be looked at")
        if is_dead(stat):
            raise NoTraining(f"pid {pid} is dead and waits for its parent")
        user = self.facts.user(stat)
        if user == NOBODY:
            raise NoTraining(f"there is no process {pid}: it has just ended")
        if user != os.getuid():
            name, what = _user_name(user), literal(stat.name)
            raise NoTraining(f"pid {pid} is of another user ({name}): {what}, not to be watched")
        run = self.forest.run_of(stat)
        if run is not None:
            name, directory = run
            raise NoTraining(f"pid {pid} belongs to run {literal(name)} of bitwatch", directory)
        return stat

    def _what(self, stat: Stat) -> str:
        return literal(words_for(stat.name, self.facts.command(stat)))

    def _why_not(self, stat: Stat, what: str) -> str:
        pid, command = stat.pid, self.facts.command(stat)
        if not command and not stat.env_end:
            return f"pid {pid} is {what}, a thread of the kernel or hidden"
        if stat.state == "D":
            return f"pid {pid} is {what}, which waits in the kernel (D) and cannot be looked into"
        if other_program(command):
            return f"pid {pid} is {what}, which is no training"
        if not self.facts.is_python(stat):
            return f"pid {pid} is {what}: nothing of it runs torch"
        if not self.facts.has_torch(stat):
            return f"pid {pid} is {what}, and has not loaded torch"
        if role_of_command(command, stat.name) == "worker" or stat.name == READER_NAME:
            return f"pid {pid} is a worker without a training: its rank has ended"
        return (
            f"pid {pid} is {what}: it has loaded torch, but has no GPU open, no dataloader"
            " workers and no log, as a training would"
        )


def _processes(ranks: list[Member], members: Iterable[Member]) -> list[str]:
    workers = sum(member.role == "worker" for member in members)
    if not ranks:
        return ["no rank of it is there yet"]
    words = f"{len(ranks)} rank{'' if len(ranks) == 1 else 's'}"
    return [f"{words} and {workers} worker{'' if workers == 1 else 's'} are there"]


def _leader(pid: int) -> Stat | None:
    """The process of which this is a thread: other tools list them alike."""
    for line in (read_raw(f"/proc/{pid}/status", limit=STATUS_BYTES) or b"").splitlines():
        if line.startswith(b"Tgid:"):
            return read_stat(int(line.split()[1]))
    return None


def _user_name(user: int) -> str:
    try:
        return literal(pwd.getpwuid(user).pw_name)
    except KeyError:
        return str(user)
