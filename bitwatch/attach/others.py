"""The processes of this machine beside those of the live attempt: what ended attempts have
left, what may be somebody's, what only looks like a leftover, and who else holds a GPU."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec

from bitwatch.attach.signals import OUTSIDE, barred, user_name
from bitwatch.record import afterwards
from bitwatch.record.afterwards import Left
from bitwatch.record.rundir import RunDir
from bitwatch.record.state import RunState
from bitwatch.record.view import View
from bitwatch.sense import processes
from bitwatch.sense.gpu_fields import NO_PID
from bitwatch.sense.processes import Key, Stat
from bitwatch.supervise.evidence import Machine, ancestors
from bitwatch.supervise.ownership import Seen, Verdict, claims

CALM_S = 10.0  # between two looks; what is recorded as left over is looked for more often
WATCHED_S = 2.0  # while something is left of ended attempts
MOST_OF_A_CORE = 0.02  # that looking may take: among very many processes it is done less often
SAMPLE_S = 10.0  # a sample that is older says nothing of who holds a GPU now

Group = Literal["leftover", "confirm", "suspect", "gpu"]


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """One process that is not of the live attempt. Its identity is (pid, starttime).

    `group`: leftover, `c` ends it; confirm, ours by descent or by its tag, but perhaps somebody's;
    suspect, nothing proves that it is ours; gpu, it only holds memory of a GPU. `words` is its
    state in words, `barred` why it cannot be signalled from here, empty when it can. `why` is
    the evidence. starttime 0: known to the driver alone (a pid of outside this namespace).
    """

    pid: int
    starttime: int
    ppid: int = 0
    group: Group
    role: str = ""
    run: str = ""
    attempt: int = 0
    rank: int | None = None
    worker: int | None = None
    user: str = ""
    state: str = ""
    words: str = ""
    barred: str = ""
    proof: str = ""
    why: str = ""
    age_s: float | None = None
    cpu_percent: float | None = None
    rss_mib: float | None = None
    shared_mib: float | None = None
    gpu_mib: float | None = None
    command: str = ""

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.starttime


def left(seen: View, others: Collection[Other]) -> list[Left]:
    """What `c` ends: what a look at the machine has found, and what the journal alone tells of,
    which no look has seen yet."""
    known = {other.key for other in others}
    starts = [start for start in seen.leftovers if (start.pid, start.starttime) not in known]
    return afterwards.recorded(starts) + [
        Left(
            other.pid,
            "process" if other.role in ("", "other") else other.role,
            other.rank,
            other.attempt,
            "" if other.run == seen.run else other.run,
            other.proof,
        )
        for other in others
        if other.group == "leftover"
    ]


def left_of_watched(seen: View, others: Collection[Other]) -> list[Left]:
    """What was recorded of this training, which bitwatch did not start, and lives on after it.
    Not what only stands in the session of one: a tracker of experiments leaves by itself."""
    return [
        Left(other.pid, other.role or "process", other.rank, other.attempt, proof=other.proof)
        for other in others
        if other.group == "confirm" and other.run == seen.run and other.role not in ("", "other")
    ]


def with_leftovers(seen: View, others: Collection[Other], now: float) -> View:
    """A picture whose alert counts what the panel shows; the supervisor knows less. What is left
    of a training that bitwatch did not start is counted for itself: nothing ends it unasked."""
    alerts = [alert for alert in seen.alerts if alert.id != afterwards.LEFTOVERS]
    alerts += afterwards.leftovers(left(seen, others), seen.attempt, now, over=not seen.gone)
    if seen.foreign and (theirs := left_of_watched(seen, others)):
        alerts += afterwards.left_of_watched(theirs, seen.attempt, now)
    return msgspec.structs.replace(seen, alerts=alerts)


class Held(msgspec.Struct):
    """What the driver says of one pid: on which GPUs, and how much (None: it does not say)."""

    gpus: list[int]
    mib: float | None = None


GROUPS: dict[str, Group] = {"own": "leftover", "confirm": "confirm", "suspect": "suspect"}
ORDER: tuple[Group, ...] = ("leftover", "confirm", "suspect", "gpu")


class Others:
    """Looks at the machine again and again for one run, and knows when it is time to."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._machine = Machine(run.path.parent)
        self._spared: Collection[int] = ()
        self._cpu: dict[Key, tuple[float, int]] = {}
        self._cpu_before: dict[Key, tuple[float, int]] = {}
        self._absent: dict[int, float] = {}
        self._cost_s = 0.0
        self._next = 0.0

    def read(self, limit_s: float) -> bool:
        """Reads some of the home's records before a first look; whether nothing is left."""
        return self._machine.known_runs.read(limit_s)

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def look_soon(self) -> None:
        self._next = 0.0

    def look(self, state: RunState) -> tuple[Other, ...]:
        """Who is there now. `state` is of this run: its newest sample knows the GPUs, which are
        never asked from here."""
        began = time.thread_time()
        self._machine.look()
        self._spared = ancestors()
        self._cpu_before, self._cpu = self._cpu, {}
        held, unseen = self._held(state)
        verdicts = claims(self._machine.everything, self._machine.runs)
        found = list(self._judged(verdicts, held))
        found += self._users_of_gpus(verdicts, held, {other.pid for other in found})
        found += [_outsider(pid, one) for pid, one in unseen.items()]
        left = any(other.group in ("leftover", "confirm") for other in found)
        # One look in passing may cost more, above all the first, which reads what then is known.
        before_s, self._cost_s = self._cost_s, time.thread_time() - began
        share_s = min(before_s, self._cost_s) / MOST_OF_A_CORE
        self._next = time.monotonic() + max(WATCHED_S if left else CALM_S, share_s)
        return tuple(sorted(found, key=self._place))

    def _judged(self, verdicts: Collection[Verdict], held: Mapping[int, Held]) -> Iterator[Other]:
        """What is left, and what may be. Of what only looks like a leftover, others' is theirs."""
        for verdict in verdicts:
            group = GROUPS.get(verdict.class_)
            if group is None:
                continue
            other = self._other(verdict.seen, group, verdict, held)
            if group != "suspect" or not other.barred:
                yield other

    def _users_of_gpus(
        self, verdicts: Collection[Verdict], held: Mapping[int, Held], shown: Collection[int]
    ) -> Iterator[Other]:
        """Who else holds memory of a GPU; another run of ours that lives is one of them."""
        live = {v.seen.stat.pid: v for v in verdicts if v.class_ == "live"}
        for seen in self._machine.everything:
            pid = seen.stat.pid
            if pid not in held or pid in shown:
                continue
            verdict = live.get(pid, Verdict(seen, "never", role=seen.looks))
            if verdict.class_ != "live" or verdict.run != self._run.id:
                yield self._other(seen, "gpu", verdict, held)

    def _other(self, seen: Seen, group: Group, verdict: Verdict, held: Mapping[int, Held]) -> Other:
        stat, scanner = seen.stat, self._machine.scanner
        on = held.get(stat.pid)
        why = verdict.why
        if group == "gpu":
            why = f"of a live attempt of run {verdict.run}; " if verdict.run else ""
            why += _holds(on)
        shared = scanner.shared_mib(stat)
        return Other(
            pid=stat.pid,
            starttime=stat.starttime,
            ppid=stat.ppid,
            group=group,
            role=verdict.role,
            run=verdict.run,
            attempt=verdict.attempt,
            rank=verdict.rank,
            worker=verdict.worker,
            user=user_name(seen.user),
            state=stat.state,
            words=processes.state_words(stat),
            barred=barred(stat, scanner, self._spared),
            proof=verdict.proof,
            why=why,
            age_s=processes.age_s(stat),
            cpu_percent=self._cpu_percent(stat),
            rss_mib=stat.rss_mib,
            shared_mib=shared,
            gpu_mib=on.mib if on else None,
            command=seen.command,
        )

    def _cpu_percent(self, stat: Stat) -> float | None:
        """Of one core, since the last look; None at the first."""
        now = time.monotonic()
        self._cpu[stat.key] = now, stat.cpu_ticks
        then, ticks = self._cpu_before.get(stat.key, (now, 0))
        if now <= then:
            return None
        return 100 * (stat.cpu_ticks - ticks) / processes.TICKS_PER_S / (now - then)

    # -- GPUs -------------------------------------------------------------------------------

    def _held(self, state: RunState) -> tuple[dict[int, Held], dict[int, Held]]:
        """Who holds memory of a GPU, by pid; and whom the driver names but nobody here is.

        A driver may tell the pids of another namespace. Then one means nobody here, or somebody
        who has no GPU open. Who has only just ended looks like that too, so it must be named
        again after it was not found.
        """
        sample, now = state.samples.gpus, time.time()
        named: dict[int, Held] = {}
        if sample is None or abs(now - sample.t) > SAMPLE_S:
            self._absent = {}
            return {}, {}
        for gpu in sample.gpus:
            for pid, mib in gpu.processes or ():
                if pid not in NO_PID:
                    one = named.setdefault(pid, Held([]))
                    one.gpus.append(gpu.index)
                    one.mib = one.mib if mib is None else (one.mib or 0.0) + mib
        absent = {pid: self._absent.get(pid, now) for pid in named if not self._may_mean(pid)}
        self._absent = absent
        unseen = {pid: named[pid] for pid, since in absent.items() if since < sample.t}
        return {pid: one for pid, one in named.items() if pid not in absent}, unseen

    def _may_mean(self, pid: int) -> bool:
        """Whether the process that has this pid here can be the one that the driver means."""
        stat = self._machine.table.get(pid)
        if stat is None:
            return False
        scanner = self._machine.scanner
        if scanner.user(stat) != os.getuid() or stat.state == "Z":
            return True  # its files cannot be looked at
        return bool(scanner.gpu_files(stat))

    def _place(self, other: Other) -> tuple[object, ...]:
        """What is this run's comes first in each group."""
        numbers = [-1 if one is None else one for one in (other.rank, other.worker)]
        theirs = other.run != self._run.id
        group = ORDER.index(other.group)
        return group, theirs, other.run, other.attempt, *numbers, other.pid


def _outsider(pid: int, held: Held) -> Other:
    why = f"{_holds(held)}; there is no such process here"
    return Other(pid=pid, starttime=0, group="gpu", barred=OUTSIDE, why=why, gpu_mib=held.mib)


def _holds(held: Held | None) -> str:
    gpus = ", ".join(f"GPU {index}" for index in sorted(set(held.gpus if held else ())))
    return f"the driver says that it holds memory of {gpus}"
