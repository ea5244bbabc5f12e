"""What ended attempts and runs have left on this machine: listed by class, and ended.

Only what is proven to be ours and over is ended without asking; of the rest, whoever asks
names pids. The result says of each process what proved it and how it ended.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower, lives
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.sense import processes, shared_memory
from bitwatch.sense.once import gpus
from bitwatch.supervise import cleanup, control, ending
from bitwatch.supervise.evidence import Machine
from bitwatch.supervise.ownership import Key, Verdict
from bitwatch.text import counted

SETTLED_S = 1.5  # a process of that age shows its own environment
FREED_S = 5.0  # until a driver has taken back the memory of who has ended
ANSWER_S = 15.0  # of a supervisor that cleans up after its earlier attempts


class Listed(msgspec.Struct, kw_only=True):
    """One process. `why` is the evidence in words; `ended` how it ended, or, of a survivor,
    why it did not."""

    pid: int
    starttime: int
    state: str
    role: str
    run: str
    attempt: int
    rank: int | None
    worker: int | None
    proof: str
    why: str
    age_s: float
    rss_mib: float
    gpu_mib: float | None
    command: str
    ended: str = ""


class Result(msgspec.Struct, kw_only=True):
    """`own`, `confirm`, `suspect`, `defunct` are what was there at the beginning. Of defunct
    ones nothing is left but a number that their parent must take. `notes`: what could not be
    done as it should."""

    own: list[Listed] = []
    confirm: list[Listed] = []
    suspect: list[Listed] = []
    defunct: list[Listed] = []
    shared_memory: list[str] = []
    killed: list[Listed] = []
    survivors: list[Listed] = []
    freed_gpu_mib: float | None = None
    notes: list[str] = []


def said(found: Result) -> str:
    """How it went, as a sentence or two."""
    parts = [f"ended {_names(found.killed)}"] if found.killed else []
    parts += [f"{_names([one])} is still there: {one.ended}" for one in found.survivors]
    if found.shared_memory:
        parts.append(f"unlinked {counted(len(found.shared_memory), 'file')} of shared memory")
    if found.freed_gpu_mib:
        parts.append(f"{found.freed_gpu_mib:,.0f} MiB of GPU memory came back")
    if found.confirm:
        parts.append(
            f"{counted(len(found.confirm), 'process')} may be somebody's: bitwatch clean lists them"
        )
    return "; ".join([*parts, *found.notes]) or "nothing is left of ended attempts"


def _names(listed: Sequence[Listed]) -> str:
    def name(one: Listed) -> str:
        of = "" if one.rank is None else f" {one.rank}"
        if one.role == "worker" and one.rank is not None:
            of = f" {one.worker} of rank {one.rank}"
        return f"{one.role or 'process'}{of} (pid {one.pid})"

    shown = [name(one) for one in listed[:4]]
    more = [f"{len(listed) - 4} more"] if len(listed) > 4 else []
    return ", ".join(shown + more)


class Cleaner:
    """`run`: only what belongs to it, or everything when None."""

    def __init__(self, home: Path, run: RunDir | None = None) -> None:
        self._machine = Machine(home)
        self._run = run
        self._seen: dict[Key, Verdict] = {}
        self._gpu_mib: dict[int, float] = {}

    def look(self) -> Result:
        """What there is, without touching anything."""
        self._gpu_mib, _ = _memory_of_gpus()
        verdicts = self._verdicts()
        found = Result(defunct=self._defunct())
        for name in ("own", "confirm", "suspect"):
            listed = [self._listed(verdict) for verdict in verdicts if verdict.class_ == name]
            setattr(found, name, listed)
        return found

    def clean(self, found: Result, chosen: Collection[int], by: str, grace_s: float) -> Result:
        """Ends what is own, and those of `confirm` and `suspect` whose pid was chosen; adds to
        `found` how that went."""
        meant = {
            (one.pid, one.starttime)
            for one in (*found.confirm, *found.suspect)
            if one.pid in chosen
        }
        if missing := set(chosen) - {
            one.pid for one in (*found.own, *found.confirm, *found.suspect)
        }:
            pids = ", ".join(map(str, sorted(missing)))
            found.notes.append(f"pid {pids}: is no leftover and no suspect; left alone")
        _, before = _memory_of_gpus()
        self._ask_supervisors(found)
        handed_over = [one for one in found.own if not lives(one.pid, one.starttime)]
        for one in handed_over:
            one.ended = "by its supervisor"
        ended, left = cleanup.clean(lambda: self._targets(meant), grace_s)
        found.killed = [*handed_over, *(self._named(one) for one in ended)]
        found.survivors = [self._named(one) for one in left]
        self._machine.verdicts()
        found.shared_memory = self._unlink()
        found.freed_gpu_mib = _freed(before, {one.pid for one in found.killed})
        self._journal(found, by)
        return found

    # -- processes --------------------------------------------------------------------------

    def _verdicts(self) -> list[Verdict]:
        verdicts = self._machine.verdicts()
        if self._run is not None:
            verdicts = [v for v in verdicts if v.run == self._run.id and v.class_ != "suspect"]
        self._seen |= {verdict.key: verdict for verdict in verdicts}
        return verdicts

    def _targets(self, meant: Collection[Key]) -> Sequence[cleanup.Target]:
        """Looks once more while somebody is so young that nobody can say whose it is."""
        deadline = time.monotonic() + SETTLED_S
        while True:
            targets = [
                cleanup.Target(verdict.key, verdict.role)
                for verdict in self._verdicts()
                if verdict.class_ == "own" or (verdict.class_ != "never" and verdict.key in meant)
            ]
            if targets or not self._machine.unsettled or time.monotonic() > deadline:
                return targets
            time.sleep(0.05)

    def _named(self, one: cleanup.Ended) -> Listed:
        listed = self._listed(self._seen[one.key])
        listed.ended = one.how
        return listed

    def _listed(self, verdict: Verdict) -> Listed:
        seen = verdict.seen
        return Listed(
            pid=seen.stat.pid,
            starttime=seen.stat.starttime,
            state=seen.stat.state,
            role=verdict.role,
            run=verdict.run,
            attempt=verdict.attempt,
            rank=verdict.rank,
            worker=verdict.worker,
            proof=verdict.proof,
            why=verdict.why,
            age_s=round(processes.age_s(seen.stat), 1),
            rss_mib=round(seen.stat.rss_mib, 1),
            gpu_mib=self._gpu_mib.get(seen.stat.pid),
            command=seen.command,
        )

    def _defunct(self) -> list[Listed]:
        """Recorded ones that are dead and wait for their parent."""
        found = []
        for run in self._machine.runs:
            for key, start in run.recorded.items():
                stat = self._machine.table.get(key[0])
                if stat is None or stat.key != key or not processes.is_dead(stat):
                    continue
                if self._run is not None and run.id != self._run.id:
                    continue
                found.append(
                    Listed(
                        pid=stat.pid,
                        starttime=stat.starttime,
                        state=stat.state,
                        role=start.role,
                        run=run.id,
                        attempt=start.attempt,
                        rank=start.rank,
                        worker=start.worker,
                        proof="recorded",
                        why=f"dead; its parent, pid {stat.ppid}, has not asked for its status yet",
                        age_s=round(processes.age_s(stat), 1),
                        rss_mib=0.0,
                        gpu_mib=self._gpu_mib.get(stat.pid),
                        command=start.command,
                    )
                )
        return found

    # -- what is not a process ----------------------------------------------------------------

    def _unlink(self) -> list[str]:
        """Names that were recorded of what does not live any more."""
        names: set[str] = set()
        for run in self._machine.runs:
            if not run.live and (self._run is None or run.id == self._run.id):
                names |= run.shared_memory
        return shared_memory.unlink_unused(names, self._machine.table.values())

    def _ask_supervisors(self, found: Result) -> None:
        """Those that live end what their own earlier attempts have left, and write it down."""
        for id_ in {one.run for one in found.own}:
            run = self._run_of(id_)
            if run is not None and run.lock_is_held():
                with contextlib.suppress(control.ControlError, RunDirError):
                    request = control.Request("clean", "bitwatch clean")
                    control.ask(control.socket_path(run.path), request, ANSWER_S)

    def _journal(self, found: Result, by: str) -> None:
        """In each run's own record, where nobody else writes it."""
        concerned = {one.run for one in (*found.killed, *found.survivors) if one.run}
        for id_ in sorted(concerned):
            run = self._run_of(id_)
            if run is None or not run.path.exists():
                continue
            try:
                lock = rundir.Lock(run)
            except RunDirError as error:
                found.notes.append(f"not written into the record: {error}")
                continue
            try:
                _write(run, [one for one in found.killed if one.run == id_], found, by)
            except OSError as error:
                found.notes.append(f"{run.journal}: {error.strerror}")
            finally:
                lock.release()

    def _run_of(self, id_: str) -> RunDir | None:
        known = [run for run in self._machine.runs if run.id == id_]
        return RunDir(Path(known[0].directory)) if known else None


def _write(run: RunDir, killed: Iterable[Listed], found: Result, by: str) -> None:
    follower = Follower(run)
    follower.poll()
    newest = follower.state.newest_attempt()
    known = follower.state.journal.attempts.get(newest)
    if known is not None and known.ended is None:
        ending.close_dead(run, follower, newest, by)
    journal = JournalWriter(run.journal)
    left = [one for one in found.survivors if one.run == run.id]
    ended = list(killed)
    for one in ended:
        journal.write(
            events.ProcessExit(pid=one.pid, starttime=one.starttime, role=one.role, rank=one.rank)
        )
    words = f"ended {_names(ended)}" if ended else "ended nothing"
    if left:
        words += f"; {_names(left)} still there"
    attempts = ", ".join(str(n) for n in sorted({one.attempt for one in (*ended, *left)}))
    journal.write(events.Action(name="clean", by=by, on=f"attempt {attempts}", result=words))
    journal.close()


def _memory_of_gpus() -> tuple[dict[int, float], float | None]:
    """MiB by pid, and used in all; nothing where there is no GPU."""
    record = gpus()
    if record is None:
        return {}, None
    held = {pid: mib for gpu in record.gpus for pid, mib in gpu.processes or () if mib is not None}
    used = [gpu.memory_used_mib for gpu in record.gpus if gpu.memory_used_mib is not None]
    return held, sum(used) if used else None


def _freed(before: float | None, ended: Collection[int]) -> float | None:
    """How much less is used, once the driver holds nothing for those that have ended."""
    if before is None:
        return None
    deadline = time.monotonic() + FREED_S
    while True:
        held, after = _memory_of_gpus()
        if not set(held) & set(ended) or time.monotonic() > deadline:
            return None if after is None else round(before - after, 1)
        time.sleep(0.1)
