"""The processes of a training that bitwatch did not start, recorded while somebody watches."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from bitwatch.record import events
from bitwatch.record.follow import lives
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.record.samples import SampleWriter
from bitwatch.record.state import RunState
from bitwatch.sense import processes, training
from bitwatch.sense.members import Member
from bitwatch.sense.processes import Key
from bitwatch.sense.training import Log, NoTraining
from bitwatch.sense.training_watch import TrainingWatch
from bitwatch.supervise.evidence import ancestors
from bitwatch.supervise.leftovers import ROLES
from bitwatch.supervise.tree import Tree

LEFT_S = 3.0  # in which the ranks of a launcher that has ended may end by themselves
LOGS_S = 5.0  # between two looks for logs that were opened later
LOGS_LATER_S = 60.0
YOUNG_S = 60.0

NOTHING = RunState()


class Family:
    """`logs` are those that were found so far, `ranks` how many there should be, as far as is
    known now: a training may be attached to before it has any."""

    def __init__(
        self,
        run: RunDir,
        state: RunState,
        attempt: int,
        journal: JournalWriter,
        samples: SampleWriter,
    ) -> None:
        self._run = run
        self._attempt = attempt
        identity = run.identity()
        self.root = identity.root
        # Those that were found before, should nothing live that could name them.
        self.logs = tuple(Log(path, path, 0, "") for path in identity.logs)
        self.ranks = 0
        self._watch = self._found(state)
        self.tree = Tree(
            journal, samples, attempt,
            of_ours=False, leave_out=ancestors(),
            scanner=self._watch.facts if self._watch else None,
        )  # fmt: skip
        self.tree.adopt(state)
        self._recorded = {key: role for key, role in self.tree.roles.items() if role[0] in ROLES}
        self._told: set[tuple[int, Key]] = set()  # ranks, by attempt, in their own files
        self._members: dict[Key, Member] = {}
        self._began = self._logs_at = time.monotonic()
        self._left_since = 0.0

    @property
    def is_known(self) -> bool:
        """Whether there is, or was, any process: else its log is all."""
        return self.root is not None

    @property
    def members(self) -> Iterable[Member]:
        return self._members.values()

    def _found(self, state: RunState) -> TrainingWatch | None:
        """The training, by its launcher or by whoever is left of it."""
        if self.root is None:
            return None
        recorded = [key for key, start in state.journal.processes.items() if start.role in ROLES]
        for key in (self.root, *recorded):
            if lives(*key):
                with contextlib.suppress(NoTraining):
                    found = training.of(key[0])
                    self.logs, self.ranks = found.logs or self.logs, found.ranks
                    return TrainingWatch(found)
        return None

    def look(self) -> None:
        """Who has come and who has gone. What is below a known one belongs to it; a role that
        was once seen stays, though who gave it be dead."""
        if self._watch is not None:
            members = map(self._as_recorded, self._watch.look())
            self._members = {member.stat.key: member for member in members}
            self.ranks = ranks_of(self._members.values()) or self.ranks
            self.tree.name(
                {key: (one.role, one.rank, one.worker) for key, one in self._members.items()}
            )
        self.tree.look({}, NOTHING)
        self._tell_of_ranks()
        self._look_for_logs()

    def _as_recorded(self, member: Member) -> Member:
        """In the role in which somebody saw it who watched before."""
        known = self._recorded.get(member.stat.key)
        if known is None:
            return member
        role, rank, worker = known
        return member._replace(role=role, rank=rank, worker=worker)

    def turn_to(self, attempt: int) -> None:
        self.tree.look({}, NOTHING)
        self.tree.turn_to(attempt)
        self._attempt = attempt

    def _tell_of_ranks(self) -> None:
        """In each rank's own file, where everybody looks for whether it lives."""
        for key, member in self._members.items():
            mark = (self._attempt, key)
            if member.role != "rank" or mark in self._told or not lives(*key):
                continue
            self._told.add(mark)
            writer = JournalWriter(self._run.rank(self._attempt, member.rank or 0))
            writer.write(
                events.ProcessStart(
                    pid=key[0],
                    starttime=key[1],
                    ppid=member.stat.ppid,
                    role="rank",
                    rank=member.rank or 0,
                    attempt=self._attempt,
                    command=member.command,
                )
            )
            writer.close()

    def _look_for_logs(self) -> None:
        now = time.monotonic()
        pause_s = LOGS_S if now - self._began < YOUNG_S else LOGS_LATER_S
        if now - self._logs_at < pause_s:
            return
        self._logs_at = now
        for key in self._members:
            if lives(*key):
                with contextlib.suppress(NoTraining):
                    self.logs = training.of(key[0]).logs
                return

    # -- ends -------------------------------------------------------------------------------

    def rank_keys(self) -> frozenset[Key]:
        return frozenset(key for key, one in self._members.items() if one.role == "rank")

    def living(self) -> list[Key]:
        """Those that count: in a role of a training. A tracker leaves by itself."""
        return [
            key
            for key, stat in self.tree.own.items()
            if self.tree.roles.get(key, ("",))[0] in ROLES and not processes.is_dead(stat)
        ]

    def left_behind(self, state: RunState) -> str:
        """Why what lives is a leftover, as a sentence, once that is sure; empty while it is not.
        Whose launcher is gone, or without one whose ranks are, is no training any more."""
        living = self.living()
        first = self._first(state)
        if not living or not first or any(lives(*key) for key in first):
            self._left_since = 0.0
            return ""
        now = time.monotonic()
        self._left_since = self._left_since or now
        if now - self._left_since < LEFT_S:
            return ""
        who = "launcher" if self._is_launched(state) else "rank" if len(first) == 1 else "ranks"
        pids = ", ".join(str(pid) for pid, _ in sorted(first)[:4])
        are = "are" if len(first) > 1 else "is"
        live = "processes lives" if len(living) == 1 else "processes live"
        return f"its {who} (pid {pids}) {are} gone and {len(living)} of its {live} on"

    def _is_launched(self, state: RunState) -> bool:
        return any(start.role == "agent" for start in state.journal.processes.values())

    def _first(self, state: RunState) -> list[Key]:
        """Without whom the rest is left behind: the launcher, else the ranks."""
        role = "agent" if self._is_launched(state) else "rank"
        recorded = state.journal.processes
        return [
            key
            for key, start in recorded.items()
            if start.role == role and (role == "agent" or start.attempt == self._attempt)
        ]


def ranks_of(members: Iterable[Member]) -> int:
    """How many there should be, by the environment of one, else how many there are; 0 while
    there is none."""
    living = [one for one in members if one.role == "rank" and not processes.is_dead(one.stat)]
    asked = next((one.world_size for one in living if one.world_size), None)
    return asked or len(living)
