"""What is known of the processes of this machine: /proc and the records of the runs, brought
together for `ownership` to judge."""

from __future__ import annotations

import os
from pathlib import Path

from bitwatch.sense import processes
from bitwatch.sense.processes import Scanner, Stat
from bitwatch.supervise.known_runs import KnownRuns
from bitwatch.supervise.ownership import RunFacts, Seen, Verdict, judge


class Machine:
    """Looks again at each call; what cannot change of a process is asked once.

    After a look, `table` is all that can be seen, `everything` what lives of it, `runs` what the
    records say, and `unsettled` whether some process of ours is so young that nobody can say yet
    whose it is.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.table: dict[int, Stat] = {}
        self.everything: list[Seen] = []
        self.known_runs = KnownRuns(home)
        self.runs: list[RunFacts] = []
        self.unsettled = False
        self.scanner = Scanner()
        self._kept: dict[int, Seen] = {}

    def verdicts(self) -> list[Verdict]:
        """Of every process that is ours, or looks like a leftover."""
        self.look()
        return judge(self.everything, self.runs, os.getuid(), ancestors())

    def look(self) -> None:
        """Processes first: what is recorded meanwhile is then no less than what they need."""
        self.table = self.scanner.look(everything=True)
        self.unsettled = False
        alive = [stat for stat in self.table.values() if not processes.is_dead(stat)]
        self.everything = [self._kept_or_seen(stat) for stat in alive]
        here = {stat.pid for stat in alive}
        self._kept = {pid: seen for pid, seen in self._kept.items() if pid in here}
        self.runs = self.known_runs.facts()

    def _kept_or_seen(self, stat: Stat) -> Seen:
        """Most processes are nothing to us and do nothing: the scanner has the same stat of
        them again, and what was seen with it is still so."""
        kept = self._kept.get(stat.pid)
        if kept is not None and kept.stat is stat:
            return kept
        seen = self._seen(stat)
        if self._stays(seen):
            self._kept[stat.pid] = seen
        return seen

    def _stays(self, seen: Seen) -> bool:
        """Whether all that was seen of it holds as long as its stat does."""
        stat = seen.stat
        if seen.looks or seen.run or stat.state == "Z":
            return False
        if not stat.virtual_mib:  # a thread of the kernel
            return True
        known = seen.user != os.getuid() or self.scanner.tags_known(stat)
        return known and self.scanner.is_settled(stat)

    def _seen(self, stat: Stat) -> Seen:
        scanner, mine = self.scanner, os.getuid()
        user = scanner.user(stat)
        if user != mine:
            return Seen(stat, user, None, command := scanner.command(stat), _role(command, stat))
        tags = scanner.tags(stat)
        if tags and not scanner.tags_known(stat):  # perhaps its parent's
            self.unsettled, tags = True, None
        command = scanner.command(stat)
        role = _role(command, stat)
        return Seen(
            stat,
            user,
            scanner.in_our_namespace(stat),
            command,
            role,
            tags.run or "" if tags else "",
            tags.attempt or 0 if tags else 0,
            directory := (tags.directory or "") if tags else "",
            _is_gone(directory, self.home),
            tuple(scanner.gpu_files(stat)) if role else (),
        )


def _is_gone(directory: str, home: Path) -> bool:
    """Whether a run was in this folder, of ours or of a home that is gone too, and is there no
    more: in another home it is judged there. Of a folder that may not be looked at nobody knows.
    The name is text of somebody else."""
    folder = Path(directory)
    if not folder.is_absolute() or _is_there(folder):
        return False
    return folder.parent == home.absolute() or not _is_there(folder.parent)


def _is_there(folder: Path) -> bool:
    try:
        os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def ancestors() -> set[int]:
    """Ourselves and all above us."""
    found, pid = set(), os.getpid()
    while pid and pid not in found:
        found.add(pid)
        stat = processes.read_stat(pid)
        pid = stat.ppid if stat else 0
    return found


def _role(command: str, stat: Stat) -> str:
    role = processes.role_of_command(command, stat.name)
    return "" if role == "other" else role
