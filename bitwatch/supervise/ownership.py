"""Whose a process is, what proves it, and so what may be done to it. Pure.

Three proofs: **recorded** (pid and start time in a journal, in one of our roles), **descends**
(below such a process, in the session of one), **tagged** (our variables in its environment).
What belongs to a live attempt or a live supervisor is never touched. Otherwise:

- own: one key ends it. Recorded in a role, below one in its session, or tagged with the command
  line of a role and without a terminal.
- confirm: ours by descent or by its tag, but something that a person may have started inside a
  run (a tmux server, a notebook, a debugger), or in a session in which this program itself
  works; or of a training that we did not start, and whose
  launcher (or without one, each of whose ranks) is dead.
- suspect: no proof, it only looks like a leftover. Shown, never ended but by name.
- never: ourselves, our ancestors, another user's, another pid namespace's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from bitwatch.record import events
from bitwatch.sense.processes import TICKS_PER_S, Stat

Key = tuple[int, int]
Class = Literal["live", "own", "confirm", "suspect", "never"]
Proof = Literal["recorded", "descends", "tagged", ""]

TRACKER = "resource tracker"
ROLES = ("supervisor", "sensor", "agent", "prepare", "rank", "worker", TRACKER, "compile worker")
# Command lines that a training leaves behind, ours or anybody's.
TRAINING = ("agent", "prepare", "rank", "worker", TRACKER, "compile worker")
OURSELVES = "this program itself, or what started it"


class Seen(NamedTuple):
    """One process as /proc shows it. `here`: in our pid namespace, None where that cannot be
    known. `looks`: the role that its command line is of, empty for none. `directory` is that of
    the run that its environment names, `gone` whether it does not exist any more."""

    stat: Stat
    user: int
    here: bool | None = True
    command: str = ""
    looks: str = ""
    run: str = ""
    attempt: int = 0
    directory: str = ""
    gone: bool = False
    gpu_files: tuple[str, ...] = ()


class RunFacts(NamedTuple):
    """What one run's record says. `live` is the attempt that lives now, 0 for none; `foreign`
    a training that we only watch, `shared_memory` names that its processes had mapped.
    `unclosed` is an attempt that is dead, and whose end nobody has written down."""

    id: str
    directory: str
    recorded: Mapping[Key, events.ProcessStart]
    exits: Mapping[Key, events.ProcessExit]
    live: int = 0
    supervised: bool = False
    foreign: bool = False
    shared_memory: frozenset[str] = frozenset()
    unclosed: int = 0

    @property
    def orphaned(self) -> bool:
        """Whether an attempt goes on without its supervisor. One that we only watch has none."""
        return bool(self.live) and not self.supervised and not self.foreign


class Verdict(NamedTuple):
    seen: Seen
    class_: Class
    proof: Proof = ""
    why: str = ""
    role: str = ""
    run: str = ""
    attempt: int = 0
    rank: int | None = None
    worker: int | None = None

    @property
    def key(self) -> Key:
        return self.seen.stat.key


class _Recorded(NamedTuple):
    run: RunFacts
    start: events.ProcessStart

    @property
    def lives(self) -> bool:
        """Whether it is of what lives. Of a training that we only watch all is, while it does:
        its attempts are what a log tells of, and its processes may be of none of them."""
        run, start = self
        if start.role == "supervisor":
            return True
        return bool(run.live) and (run.foreign or start.attempt == run.live)


def _weight(entry: _Recorded) -> tuple[bool, bool, bool]:
    """Which of two runs that have recorded the same process tells of it: of a run that was begun
    inside another the outer one has seen the processes too. Who lives belongs to what lives."""
    run, start = entry
    return (start.pid, start.starttime) not in run.exits, entry.lives, start.role in ROLES


def judge(
    everything: Sequence[Seen], runs: Sequence[RunFacts], user: int, spared: Collection[int]
) -> list[Verdict]:
    """A verdict for each process that is ours or looks like a leftover; of all others nothing.

    everything: that lives now. user: ours. spared: pids of ourselves and our ancestors.
    """
    sessions = {seen.stat.session for seen in everything if seen.stat.pid in spared}
    return [_for_us(verdict, user, spared, sessions) for verdict in claims(everything, runs)]


def claims(everything: Sequence[Seen], runs: Sequence[RunFacts]) -> list[Verdict]:
    """The same by the proofs alone, whoever may touch it: none is of class never."""
    world = _World(everything, runs)
    found = (world.proven(seen) or world.suspected(seen) for seen in everything)
    return [verdict for verdict in found if verdict is not None]


def _for_us(
    verdict: Verdict, user: int, spared: Collection[int], sessions: Collection[int]
) -> Verdict:
    """What the proofs let anybody do may not be for us to do, or not without asking. `sessions`
    are those of `spared`, whether or not their leaders live."""
    if never := _never(verdict.seen, user, spared):
        return verdict._replace(class_="never", why=never)
    ours = verdict.seen.stat.session in sessions
    if verdict.class_ == "own" and verdict.proof == "descends" and ours:
        why = f"{verdict.why}, in which this program itself works"
        return verdict._replace(class_="confirm", why=why)
    return verdict


def _never(seen: Seen, user: int, spared: Collection[int]) -> str:
    if seen.stat.pid in spared:
        return OURSELVES
    if seen.user != user:
        return f"of another user ({seen.user})"
    if seen.here is False:
        return "in another pid namespace"
    return ""


class _World:
    """What the verdicts about single processes need of all the others."""

    def __init__(self, everything: Sequence[Seen], runs: Sequence[RunFacts]) -> None:
        self.by_pid = {seen.stat.pid: seen for seen in everything}
        named = {seen.stat.session for seen in everything} | self.by_pid.keys()
        self.recorded: dict[Key, _Recorded] = {}
        for run in runs:
            for key, start in run.recorded.items():
                if key[0] in named:  # of thousands of old ones nobody is left
                    entry, other = _Recorded(run, start), self.recorded.get(key)
                    if other is None or _weight(entry) > _weight(other):
                        self.recorded[key] = entry
        self.by_directory = {run.directory: run for run in runs}
        # Of a run whose directory is gone, its supervisor's command line still tells.
        self.supervisors = [seen.command for seen in everything if seen.looks == "supervisor"]
        self.leaders: dict[int, list[_Recorded]] = {}
        for key, entry in self.recorded.items():
            if entry.start.role in ROLES:
                self.leaders.setdefault(key[0], []).append(entry)
        self.nearest: dict[int, _Recorded | None] = {}  # recorded, at a pid or above it

    def proven(self, seen: Seen) -> Verdict | None:
        entry = self._entry(seen.stat.key)
        if entry is not None and entry.start.role in ROLES:
            return self._of(seen, entry, "recorded", entry.start)
        above = self._above(seen)
        if above is not None:
            return self._below(seen, above)
        session = self._session_of(seen)
        if session is not None:
            return self._of(seen, session, "descends", entry.start if entry else None)
        if seen.directory:
            return self._tagged(seen)
        return None

    def suspected(self, seen: Seen) -> Verdict | None:
        """By its command line, and that nobody seems to look after it or that it holds a GPU."""
        if seen.looks not in TRAINING:
            return None
        stat = seen.stat
        evidence = []
        if stat.ppid <= 1:
            evidence.append("its parent is gone")
        if stat.session not in self.by_pid:
            evidence.append("the leader of its session is dead")
        if seen.gpu_files:
            evidence.append(f"holds {', '.join(seen.gpu_files)}")
        if not evidence:
            return None
        why = f"looks like a {seen.looks}; {'; '.join(evidence)}; nothing proves that it is ours"
        return Verdict(seen, "suspect", why=why, role=seen.looks)

    def _entry(self, key: Key) -> _Recorded | None:
        """What was recorded of a process that lives. If that one has ended, this is another,
        which began in the same instant, or in the same instant of another boot."""
        entry = self.recorded.get(key)
        return None if entry is None or key in entry.run.exits else entry

    # -- proofs -----------------------------------------------------------------------------

    def _of(
        self, seen: Seen, entry: _Recorded, proof: Proof, start: events.ProcessStart | None
    ) -> Verdict:
        """What is done with a process of a run, once it is proven to be in one of its roles,
        or in the session of one."""
        run, attempt = entry.run, entry.start.attempt
        own: Class = "own"
        why = f"recorded in attempt {attempt}"
        if proof == "descends":
            why = f"in the session of {entry.start.role} {entry.start.pid} of attempt {attempt}"
        if entry.lives:
            own = "live"
        elif run.foreign:
            own = "confirm"
            if proof == "recorded":
                why = "recorded while watching a training that bitwatch did not start"
        role = start.role if start is not None else "other"
        return Verdict(
            seen, own, proof, why, role, run.id, attempt,
            start.rank if start else None, start.worker if start else None,
        )  # fmt: skip

    def _above(self, seen: Seen) -> _Recorded | None:
        """The nearest recorded process above it that lives."""
        pid, way, found = seen.stat.ppid, [], None
        while pid in self.by_pid:
            if pid in self.nearest:
                found = self.nearest[pid]
                break
            self.nearest[pid] = None  # a ring, as a table that changes may have, ends here
            way.append(pid)
            parent = self.by_pid[pid].stat
            entry = self._entry(parent.key)
            if entry is not None and entry.start.role in ROLES:
                found = entry
                break
            pid = parent.ppid
        self.nearest |= dict.fromkeys(way, found)
        return found

    def _below(self, seen: Seen, above: _Recorded) -> Verdict:
        """Below a live supervisor everything is in its hands, also what it has adopted."""
        session = self._session_of(seen)
        if session is not None and above.start.role != "supervisor":
            return self._of(seen, session, "descends", None)
        role, run, attempt = above.start.role, above.run, above.start.attempt
        why = f"below {role} {above.start.pid} of attempt {attempt}, in a session of its own"
        if not above.lives and seen.directory == run.directory:
            tagged = self._tagged(seen)
            if tagged is not None and tagged.class_ == "own":
                return tagged
        class_: Class = "live" if above.lives else "confirm"
        return Verdict(seen, class_, "descends", why, "other", run.id, attempt)

    def _session_of(self, seen: Seen) -> _Recorded | None:
        """The recorded process that leads, or led, its session.

        A session's number is its leader's pid. While the leader lives its start time decides.
        When it is dead, a process that began while the leader was seen to live was born in its
        session: until then nobody else could have had that number.
        """
        stat = seen.stat
        for entry in self.leaders.get(stat.session, ()):
            start = entry.start
            leader = self.by_pid.get(stat.session)
            gone = entry.run.exits.get((start.pid, start.starttime))
            if leader is not None:
                same = leader.stat.starttime == start.starttime and gone is None
                if same and leader is not seen:
                    return entry
                continue
            if gone is None:
                continue
            if start.starttime <= stat.starttime <= int(gone.m * TICKS_PER_S):
                return entry
        return None

    def _tagged(self, seen: Seen) -> Verdict | None:
        known = self.by_directory.get(seen.directory)
        if known is None and not seen.gone:
            return None  # of a run in another folder of runs: that is where it is judged
        if known is not None:
            # Without a number, or with one that the record does not know yet, it may be live.
            newest = not 0 < seen.attempt < known.live
            live = newest if known.live else known.supervised
        else:
            live = any(seen.directory in command for command in self.supervisors)
        told = f"its environment says run {seen.run}, attempt {seen.attempt}"
        if known is None:
            told += ", whose folder is gone"
        role = seen.looks if seen.looks in TRAINING else "other"
        class_: Class = "confirm"
        if live:
            class_ = "live"
        elif role != "other" and not seen.stat.terminal:
            class_ = "own"
        elif seen.stat.terminal:
            told += "; it has a terminal"
        else:
            told += "; it is nothing that a training starts"
        return Verdict(seen, class_, "tagged", told, role, seen.run, seen.attempt)


def of_class(verdicts: Sequence[Verdict], class_: Class) -> Iterator[Verdict]:
    return (verdict for verdict in verdicts if verdict.class_ == class_)
