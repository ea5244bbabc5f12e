"""The processes of a live run: who they are, when they begin and end, what they use.

Roles come from those who know: the supervisor knows its sensor and agent, each rank and each
reader wrote its own pid and start time into its file; of a training that bitwatch only watches
somebody has looked into the environments, and names them. Only what nobody claims is judged by
its command line, and only in the sessions of the agent and the ranks: in one of its own (a tmux
server, another run's supervisor) is what somebody else has started inside the run, with trainings
of theirs below it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping

from bitwatch.record import events, kernel
from bitwatch.record.follow import lives
from bitwatch.record.journal import JournalWriter
from bitwatch.record.samples import SampleWriter
from bitwatch.record.state import RunState
from bitwatch.sense import processes, shared_memory
from bitwatch.sense.processes import Key, Scanner, Stat
from bitwatch.supervise.reaper import Exit
from bitwatch.supervise.spared import Spared

SETTLE_S = 3.0  # a process that nobody has claimed by then is recorded as "other"
MINUTE_S = 60.0
SHARED_S = 10.0  # between two looks at what is mapped, a millisecond or two for each process
# The roles in which nobody records itself. What looks like a rank or a worker and has not said
# so may be another program's.
UNCLAIMED = {"prepare", "resource tracker", "compile worker"}


Role = tuple[str, int | None, int | None]  # with the rank and the worker


class Tree:
    """`of_ours`: we are the supervisor, and what is below us is of the run. Otherwise only what
    is named, and what is below that; `leave_out` are pids that have no part in it."""

    def __init__(
        self,
        journal: JournalWriter,
        samples: SampleWriter,
        attempt: int,
        *,
        of_ours: bool = True,
        leave_out: Collection[int] = (),
        scanner: Scanner | None = None,
    ) -> None:
        self._journal = journal
        self._samples = samples
        self._attempt = attempt
        self._scanner = scanner or Scanner()
        self._me = [(os.getpid(), kernel.own_starttime())] if of_ours else []
        self._leave_out = frozenset(leave_out)
        self._spared = Spared()
        self._named: dict[Key, Role] = {}
        self._again: set[Key] = set()  # to be told again, in another attempt
        self._recorded: dict[Key, str] = {}
        self._cpu: dict[Key, tuple[float, int]] = {}
        self._exits: dict[int, Exit] = {}
        self._provisional: dict[Key, str] = {}
        self._minute_ends = time.monotonic() + MINUTE_S
        self._shared: dict[Key, set[str]] = {}
        self._shared_of: dict[Key, Stat] = {}  # as they were when it was looked at
        # What was found of processes that have done nothing since: their stat is the same one.
        self._sure: dict[Key, Stat] = {}  # that their roles are told for good
        self._rows: dict[Key, tuple[Stat, Role, events.Process]] = {}
        self._claims: object = None  # by which they were judged
        self._shared_due = time.monotonic() + 1.0
        self._looked_at = 0.0
        self._leaders: dict[int, int] = {}  # of the agent and the ranks: start time by pid
        self.told: set[Key] = set()  # of whose start we have written
        self.own: dict[Key, Stat] = {}
        self.roles: dict[Key, Role] = {}

    def name(self, roles: Mapping[Key, Role]) -> None:
        """Who is who, of a training that does not say so itself."""
        self._named |= roles

    def turn_to(self, attempt: int) -> None:
        """Those that live from now on are of another attempt, and told of once more."""
        self._attempt = attempt
        self._again = set(self._recorded)
        self._sure.clear()

    def close(self) -> None:
        """Records the end of all, when nothing of it lives; a parent may not have asked yet."""
        for key in list(self._recorded):
            self._record_exit(key, self._looked_at if key in self.own else 0.0)

    def adopt(self, state: RunState) -> None:
        """Takes over what an earlier supervisor recorded of this attempt."""
        for key, start in state.journal.processes.items():
            theirs = start.role in ("supervisor", "sensor") or key in state.journal.exits
            if start.attempt == self._attempt and not theirs:
                self._recorded[key] = start.role
                self.roles[key] = (start.role, start.rank, start.worker)

    def remember(self, state: RunState) -> None:
        """What an earlier attempt has left and nothing could end keeps its role, and its record."""
        for key, start in state.journal.processes.items():
            theirs = start.role in ("supervisor", "sensor") or key in state.journal.exits
            if not theirs and lives(*key):
                self._recorded[key] = start.role
                self.roles[key] = (start.role, start.rank, start.worker)

    def note_exit(self, ended: Exit) -> None:
        self._exits[ended.pid] = ended

    def exit_of(self, key: Key) -> Exit | None:
        """Of exactly this process: its pid may have been another's since, or before."""
        ended = self._exits.get(key[0])
        return ended if ended is not None and ended.starttime == key[1] else None

    def look(self, known: dict[int, str], state: RunState, besides: Collection[int] = ()) -> None:
        """Scans, and records who has come and who has gone. `known`: pid to role. `besides`: pids
        of what was started here and is not of the run."""
        by_themselves = claimed(state, self._attempt)
        by_their_word = by_themselves | self._named
        self.roles |= by_their_word
        self._leaders = {
            key[0]: key[1] for key, role in by_their_word.items() if role[0] in ("rank", "agent")
        }
        before, seen_at = self.own, self._looked_at
        self._looked_at = time.monotonic()
        self._scanner.look([*self._me, *self.roles])
        self.own = self._spared.without(self._scanner.own, besides)
        if self._leave_out:
            self.own = {k: stat for k, stat in self.own.items() if k[0] not in self._leave_out}
        for stat in self.own.values():
            if known.get(stat.pid) == "agent":
                self._leaders[stat.pid] = stat.starttime
            elif self._leaders.get(stat.pid, stat.starttime) != stat.starttime:
                del self._leaders[stat.pid]  # that one is dead, and its pid another's
        claims = by_their_word, dict(known), dict(self._leaders)
        if claims != self._claims:
            self._claims = claims
            self._sure.clear()
        for key, stat in self.own.items():
            if self._sure.get(key) is not stat:
                self._name(stat, known)
        for key in [key for key in self._recorded if key not in self.own]:
            self._record_exit(key, seen_at if key in before else 0.0)
        known_of = self.own.keys() | self._recorded.keys() | by_themselves.keys()
        for key in self.roles.keys() - known_of:
            self._forget(key)  # it has ended before it was recorded, as short commands do

    def sample(self, gpus: events.Gpus | None) -> None:
        now = time.monotonic()
        rows = [self._row(key, stat, now) for key, stat in self.own.items()]
        self._cpu = {key: self._cpu[key] for key in self.own}
        self._note_shared_memory(now)
        self._samples.write(events.Processes(attempt=self._attempt, processes=rows))
        if now >= self._minute_ends:
            self._minute_ends = now + MINUTE_S
            self._journal.write(aggregate(rows, gpus))

    def _row(self, key: Key, stat: Stat, now: float) -> events.Process:
        """Who has done nothing since is as it was: of hundreds most are, most of the time."""
        before = self._cpu.get(key)
        self._cpu[key] = (now, stat.cpu_ticks)
        role = self.roles.get(key, ("other", None, None))
        seen, had, row = self._rows.get(key, (None, None, None))
        if row is not None and seen is stat and had == role and row.cpu_percent == 0:
            return row
        percent = None
        if before and now > before[0]:
            used_s = (stat.cpu_ticks - before[1]) / processes.TICKS_PER_S
            percent = round(100 * used_s / (now - before[0]), 1)
        shared = self._scanner.shared_mib(stat)
        row = events.Process(
            pid=stat.pid,
            starttime=stat.starttime,
            ppid=stat.ppid,
            role=role[0],
            state=stat.state,
            rank=role[1],
            worker=role[2],
            cpu_percent=percent,
            rss_mib=round(stat.rss_mib, 1),
            shared_mib=None if shared is None else round(shared, 1),
            threads_live=processes.live_threads(stat.pid) if stat.state == "Z" else 0,
        )
        if stat.state != "Z":  # whose threads may end without a word in its stat
            self._rows[key] = stat, role, row
        return row

    def _note_shared_memory(self, now: float) -> None:
        """Names below /dev/shm, while those live who have mapped them: nobody can tell
        afterwards. Soon after a process begins, and then now and then."""
        due = now >= self._shared_due
        if due:
            self._shared_due = now + SHARED_S
        for key, stat in self.own.items():
            if (not due and key in self._shared) or self._shared_of.get(key) is stat:
                continue  # what it maps anew would show in its stat
            self._shared_of[key] = stat
            known = self._shared.setdefault(key, set())
            new = shared_memory.mapped(stat) - known
            if new:
                known |= new
                pid, starttime = key
                names = sorted(new)
                self._journal.write(events.SharedMemory(pid=pid, starttime=starttime, names=names))
        self._shared = {key: self._shared[key] for key in self.own if key in self._shared}

    def _name(self, stat: Stat, known: dict[int, str]) -> None:
        """Finds the role of a process and records it once it is sure."""
        if stat.key in self._me:
            role, rank, worker = "supervisor", None, None
        elif stat.pid in known:
            role, rank, worker = known[stat.pid], None, None
        elif self.roles.get(stat.key, ("other",))[0] != "other":
            role, rank, worker = self.roles[stat.key]
        elif self._is_among_ours(stat):
            role, rank, worker = by_command(self._scanner.command(stat)), None, None
        else:
            role, rank, worker = "other", None, None
        self.roles[stat.key] = (role, rank, worker)
        unsure = role == "other" and processes.age_s(stat) < SETTLE_S
        command = self._scanner.command(stat)
        # The instant after its start a process shows no command line of its own yet, or the
        # one before its exec: that is told again, once, when it has settled.
        settled = self._scanner.is_settled(stat)
        renamed = settled and self._provisional.get(stat.key, command) != command
        told = self._recorded.get(stat.key) == role and stat.key not in self._again
        if told and settled and not renamed:
            self._sure[stat.key] = stat
        if unsure or (told and not renamed):
            return
        self._again.discard(stat.key)
        first_of_agent = role == "agent" and stat.key not in self._recorded
        self._recorded[stat.key] = role
        self._provisional.pop(stat.key, None)
        if not settled:
            self._provisional[stat.key] = command
        whole = self._journal.write(
            events.ProcessStart(
                pid=stat.pid,
                starttime=stat.starttime,
                ppid=stat.ppid,
                role=role,
                rank=rank,
                worker=worker,
                attempt=self._attempt,
                command=command,
            ),
            last_word=first_of_agent,  # a training that no record names could not be found
        )
        if whole:
            self.told.add(stat.key)

    def _is_among_ours(self, stat: Stat) -> bool:
        """Whether it is in the session of the agent or of a rank, be that alive or dead."""
        starttime = self._leaders.get(stat.session)
        return starttime is not None and stat.starttime >= starttime

    def _forget(self, key: Key) -> None:
        self._named.pop(key, None)
        for found in (self.roles, self._provisional, self._sure, self._rows, self._shared_of):
            found.pop(key, None)

    def _record_exit(self, key: Key, seen_at: float) -> None:
        role, rank, _ = self.roles.get(key, ("other", None, None))
        self._forget(key)
        del self._recorded[key]
        self.told.discard(key)
        self._again.discard(key)
        ended = self.exit_of(key)
        self._journal.write(
            events.ProcessExit(
                pid=key[0],
                starttime=key[1],
                role=role,
                rank=rank,
                status=ended.status if ended else None,
                signal=ended.signal if ended else None,
                m=seen_at,
            )
        )


def claimed(state: RunState, attempt: int) -> dict[Key, Role]:
    """Ranks and workers by their own word."""
    roles: dict[Key, Role] = {}
    for reader in state.readers_of(attempt):
        roles[reader.pid, reader.starttime] = ("worker", reader.rank, reader.worker)
    for rank, own in state.ranks_of(attempt).items():  # a rank may be its own reader
        if own.pid:
            roles[own.pid, own.starttime] = ("rank", rank, None)
    return roles


def by_command(command: str) -> str:
    """The role of a process that nobody claims."""
    role = processes.role_of_command(command)
    return role if role in UNCLAIMED else "other"


def aggregate(rows: list[events.Process], gpus: events.Gpus | None) -> events.Minute:
    cpu = [row.cpu_percent for row in rows if row.cpu_percent is not None]
    return events.Minute(
        processes=len(rows),
        cpu_percent=round(sum(cpu), 1) if cpu else None,
        rss_mib=round(sum(row.rss_mib or 0.0 for row in rows), 1),
        gpu_memory_mib=[gpu.memory_used_mib for gpu in gpus.gpus] if gpus else [],
        gpu_utilization_percent=[gpu.utilization_percent for gpu in gpus.gpus] if gpus else [],
    )
