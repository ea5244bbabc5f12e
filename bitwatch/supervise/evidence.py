"""What is known of the processes of this machine: /proc and the records of the runs, brought
together for `ownership` to judge."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from bitwatch.record import rundir
from bitwatch.record.follow import Follower, lives
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.state import RunState
from bitwatch.sense import processes
from bitwatch.sense.processes import Scanner, Stat
from bitwatch.supervise.ownership import RunFacts, Seen, Verdict, judge


class Machine:
    """Looks again at each call; what cannot change of a process is asked once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._scanner = Scanner()

    def verdicts(self) -> list[Verdict]:
        """Of every process that is ours, or looks like a leftover."""
        everything = self.everything()
        runs = facts_of(self._runs(everything))
        return judge(everything, runs, os.getuid(), ancestors())

    def everything(self) -> list[Seen]:
        """What lives now. Of another user's processes only what the scan itself tells."""
        mine = os.getuid()
        return [
            self._seen(stat, mine)
            for stat in self._scanner.look(everything=True).values()
            if self._scanner.lives(stat)
        ]

    def _seen(self, stat: Stat, mine: int) -> Seen:
        scanner = self._scanner
        user = scanner.user(stat)
        command = scanner.command(stat)
        looks = processes.role_of_command(command)
        tags = scanner.tags(stat) if user == mine else None
        return Seen(
            stat,
            user,
            scanner.in_our_namespace(stat) if user == mine else None,
            command,
            looks,
            tags.run if tags else "",
            tags.attempt if tags else 0,
            tags.directory if tags else "",
            tuple(scanner.gpu_files(stat)) if looks and user == mine else (),
        )

    def _runs(self, everything: Iterable[Seen]) -> list[RunDir]:
        """Those of the home, and those that a process names and that are elsewhere."""
        runs = {str(run.path): run for run in rundir.list_runs(self.home)}
        for seen in everything:
            if seen.directory and seen.directory not in runs:
                run = RunDir(Path(seen.directory))
                if run.identity_file.exists():
                    runs[seen.directory] = run
        return list(runs.values())


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
            found.append(_facts(run, follower.state))
    return found


def _facts(run: RunDir, state: RunState) -> RunFacts:
    supervised = run.lock_is_held()
    journal = state.journal
    newest = state.newest_attempt()
    known = journal.attempts.get(newest)
    over = known is not None and known.ended is not None
    agents = [
        start
        for key, start in journal.processes.items()
        if start.role in ("agent", "prepare") and start.attempt == newest and lives(*key)
    ]
    live = newest if not over and (supervised or agents) else 0
    return RunFacts(
        run.id, str(run.path), journal.processes, journal.exits, live=live, supervised=supervised
    )


def ancestors() -> set[int]:
    """Ourselves and all above us."""
    found, pid = set(), os.getpid()
    while pid and pid not in found:
        found.add(pid)
        stat = processes.read_stat(pid)
        pid = stat.ppid if stat else 0
    return found
