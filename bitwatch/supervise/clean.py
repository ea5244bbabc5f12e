"""What ended attempts and runs have left on this machine: listed by class, and ended.

Only what is proven to be ours and over is ended without asking; of the rest, whoever asks
names pids. The result says of each process what proved it and how it ended.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from bitwatch.record.follow import lives
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.sense import processes, shared_memory
from bitwatch.sense.once import gpus
from bitwatch.supervise import begin, cleanup, closing, control, taking_over
from bitwatch.supervise.evidence import Machine
from bitwatch.supervise.ownership import Key, RunFacts, Verdict
from bitwatch.supervise.result import Listed, Result

SETTLED_S = 1.5  # a process of that age shows its own environment
BY_ITS_SUPERVISOR = "by its supervisor"
FREED_S = 5.0  # until a driver has taken back the memory of who has ended
ANSWER_S = 15.0  # of a supervisor that cleans up after its earlier attempts


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
        found.unclosed = [run.id for run in self._in_scope() if run.unclosed]
        found.orphaned = [run.id for run in self._in_scope() if run.orphaned]
        return found

    def clean(
        self,
        found: Result,
        chosen: Collection[int],
        by: str,
        grace_s: float,
        *,
        all_own: bool = True,
    ) -> Result:
        """Ends what is own, and those whose pid was chosen; adds to `found` how that went. Without
        `all_own` only the chosen are ended, and nothing else is done to any run."""
        listed = (*found.own, *found.confirm, *found.suspect)
        meant = {(one.pid, one.starttime) for one in listed if one.pid in chosen}
        if missing := set(chosen) - {one.pid for one in listed}:
            pids = ", ".join(map(str, sorted(missing)))
            found.notes.append(f"pid {pids}: is no leftover and no suspect; left alone")
        _, before = _memory_of_gpus()
        asked = self._ask_supervisors(found) if all_own else set()
        own = [one for one in found.own if all_own or one.pid in chosen]
        gone = [one for one in own if not lives(one.pid, one.starttime)]
        for one in gone:
            one.ended = BY_ITS_SUPERVISOR if one.run in asked else "by itself"
        ended, left = cleanup.clean(lambda: self._targets(meant, all_own), grace_s)
        found.killed = [*gone, *(self._named(one) for one in ended)]
        found.survivors = [self._named(one) for one in left]
        self._machine.verdicts()
        found.shared_memory = self._unlink() if all_own else []
        found.freed_gpu_mib = _freed(before, {one.pid for one in found.killed})
        self._look_after_runs(found, by, all_own)
        return found

    # -- processes --------------------------------------------------------------------------

    def _verdicts(self) -> list[Verdict]:
        verdicts = self._machine.verdicts()
        if self._run is not None:
            verdicts = [v for v in verdicts if v.run == self._run.id and v.class_ != "suspect"]
        self._seen |= {verdict.key: verdict for verdict in verdicts}
        return verdicts

    def _targets(self, meant: Collection[Key], all_own: bool) -> Sequence[cleanup.Target]:
        """Looks once more while somebody is so young that nobody can say whose it is."""
        deadline = time.monotonic() + SETTLED_S
        while True:
            targets = [
                cleanup.Target(verdict.key, verdict.role)
                for verdict in self._verdicts()
                if (verdict.class_ == "own" and all_own)
                or (verdict.class_ in ("own", "confirm", "suspect") and verdict.key in meant)
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
        for run in self._in_scope():
            for key, start in run.recorded.items():
                stat = self._machine.table.get(key[0])
                if stat is None or stat.key != key or not processes.is_dead(stat):
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
        """Names that were recorded of what does not live any more. What a training has mapped
        that somebody else has started is theirs, whatever it is called."""
        names: set[str] = set()
        for run in self._in_scope():
            if not run.live and not run.foreign:
                names |= run.shared_memory
        return shared_memory.unlink_unused(names, self._machine.table.values())

    def _ask_supervisors(self, found: Result) -> set[str]:
        """Those that live end what their own earlier attempts have left, and write it down; the
        runs whose has answered."""
        answered = set()
        for id_ in {one.run for one in found.own}:
            run = self._run_of(id_)
            if run is not None and run.lock_is_held():
                with contextlib.suppress(control.ControlError, RunDirError):
                    request = control.Request("clean", "bitwatch clean")
                    control.ask(control.socket_path(run.path), request, ANSWER_S)
                    answered.add(id_)
        return answered

    def _look_after_runs(self, found: Result, by: str, all_own: bool) -> None:
        """What was done goes into each run's own record; with `all_own` a run that has lost its
        supervisor is closed when nothing of it lives, else it is given a new one."""
        concerned = {one.run for one in (*found.killed, *found.survivors) if one.run}
        for id_ in sorted(concerned - {run.id for run in self._machine.runs}):
            found.notes.append(f"{id_}: has no record any more in which this could be written")
        started: list[begin.Starting] = []
        for facts in self._in_scope():
            run = RunDir(Path(facts.directory))
            killed = [
                one
                for one in found.killed
                if one.run == facts.id and one.ended != BY_ITS_SUPERVISOR  # which has told of it
            ]
            left = [one for one in found.survivors if one.run == facts.id]
            try:
                if killed or left or (facts.unclosed and all_own):
                    found.closed += closing.settle(run, killed, left, by)
                if facts.orphaned and all_own and (starting := begin.take_over(run, by, "clean")):
                    started.append(starting)
            except (RunDirError, OSError) as error:
                found.notes.append(str(error))
        words, wrong = taking_over.wait(started)
        found.taken_over += words
        found.notes += wrong

    def _in_scope(self) -> list[RunFacts]:
        return [run for run in self._machine.runs if self._run is None or run.id == self._run.id]

    def _run_of(self, id_: str) -> RunDir | None:
        known = [run for run in self._machine.runs if run.id == id_]
        return RunDir(Path(known[0].directory)) if known else None


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
