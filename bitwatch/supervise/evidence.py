"""What is known of the processes of this machine: /proc and the records of the runs, brought
together for `ownership` to judge."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from bitwatch.record import rundir
from bitwatch.record.follow import YOUNG_S, Follower, lives
from bitwatch.record.rundir import Identity, RunDir, RunDirError
from bitwatch.record.state import RunState
from bitwatch.sense import processes
from bitwatch.sense.processes import Scanner, Stat
from bitwatch.supervise.ownership import RunFacts, Seen, Verdict, judge


class Machine:
    """Looks again at each call; what cannot change of a process is asked once.

    After a look, `table` is all that can be seen, `runs` what the records say, and `unsettled`
    whether some process of ours is so young that nobody can say yet whose it is.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.table: dict[int, Stat] = {}
        self.runs: list[RunFacts] = []
        self.unsettled = False
        self._scanner = Scanner()

    def verdicts(self) -> list[Verdict]:
        """Of every process that is ours, or looks like a leftover."""
        everything = self._everything()
        self.runs = facts_of(rundir.list_runs(self.home))
        return judge(everything, self.runs, os.getuid(), ancestors())

    def _everything(self) -> list[Seen]:
        """What lives now."""
        self.table = self._scanner.look(everything=True)
        self.unsettled = False
        return [self._seen(stat) for stat in self.table.values() if not processes.is_dead(stat)]

    def _seen(self, stat: Stat) -> Seen:
        scanner, mine = self._scanner, os.getuid()
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
            _is_gone(directory),
            tuple(scanner.gpu_files(stat)) if role else (),
        )


def facts_of(runs: Iterable[RunDir]) -> list[RunFacts]:
    """Of those whose processes can be on this machine now: what was recorded before a reboot,
    in another pid namespace or by another user proves nothing here."""
    found = []
    for run in runs:
        with contextlib.suppress(RunDirError, OSError):
            identity = run.identity()
            if rundir.is_here(identity) or identity.uid != os.getuid():
                continue
            follower = Follower(run, glance=True)
            follower.poll()
            found.append(_facts(run, identity, follower.state))
    return found


def _facts(run: RunDir, identity: Identity, state: RunState) -> RunFacts:
    supervised = run.lock_is_held()
    journal = state.journal
    newest = state.newest_attempt()
    known = journal.attempts.get(newest)
    over = known is not None and known.ended is not None
    agent_lives = any(
        start.role in ("agent", "prepare") and start.attempt == newest and lives(*key)
        for key, start in journal.processes.items()
    )
    # By their own word: who began after the supervisor's death stands nowhere else.
    rank_lives = any(
        rank.pid and lives(rank.pid, rank.starttime) for rank in state.ranks_of(newest).values()
    )
    live = newest if not over and (supervised or agent_lives or rank_lives) else 0
    young = abs(time.time() - identity.created) < YOUNG_S  # a clock may be set back
    return RunFacts(
        run.id,
        str(run.path),
        journal.processes,
        journal.exits,
        live=live,
        supervised=supervised,
        unclosed=newest if not over and not live and not young else 0,
        shared_memory=frozenset(name for names in journal.shared.values() for name in names),
    )


def _is_gone(directory: str) -> bool:
    """Whether there is no such folder; of one that may not be looked at, nobody knows. The
    name is text of somebody else."""
    if not directory.startswith("/"):
        return False
    try:
        os.stat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


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
