"""What lived at a moment of a recorded run, by its records alone: this machine has nothing to
say about it. Pure.
"""

from __future__ import annotations

import msgspec

from bitwatch.record import events
from bitwatch.record.follow import YOUNG_S, Liveness
from bitwatch.record.gpu import Gpu
from bitwatch.record.state import RunState
from bitwatch.record.view import END_STATES, ProcessRow, View

FRESH_S = 150.0  # a sample, or what comes once a minute, that is no older is of now
SINGLE = ("supervisor", "sensor")  # roles of one process at a time

Key = tuple[int, int]


def liveness(state: RunState, now: float, *, silent: bool) -> Liveness:
    """`silent`: nothing was recorded for long after what has been folded, so nobody watched, and
    of a run of our own nothing was there to be watched."""
    journal, run = state.journal, state.journal.run
    foreign = run is not None and run.foreign
    young = run is None or now - run.t < YOUNG_S
    if silent and not foreign:
        return Liveness(young=young)
    newest = state.newest_attempt()
    alive = _alive(state)
    agent = any(s.role == "agent" and (foreign or s.attempt == newest) for s in alive.values())
    ranks = {
        rank
        for rank, told in state.ranks_of(newest).items()
        if told.pid and not told.ended and (told.pid, told.starttime) not in journal.exits
    }
    if foreign:
        ranks |= {start.rank or 0 for start in alive.values() if start.role == "rank"}
    return Liveness(
        young=young,
        supervisor=run is not None and not journal.ended and not silent and _watched(state, now),
        agent=agent,
        ranks=frozenset(ranks),
    )


def with_what_was_known(
    seen: View, state: RunState, minute: events.Minute | None, now: float
) -> View:
    """Where no sample is left of that time: processes as they began and ended, without numbers,
    and GPUs as the aggregate of the minute has them."""
    changes: dict[str, object] = {}
    samples = state.samples
    if samples.processes is None or now - samples.processes.t > FRESH_S:
        over = seen.state in END_STATES
        changes |= {"sampled": None, "processes": [] if over else _rows(state)}
    if samples.gpus is None or now - samples.gpus.t > FRESH_S:
        changes["gpus"] = _gpus(minute, now)
    return msgspec.structs.replace(seen, **changes) if changes else seen


def _alive(state: RunState) -> dict[Key, events.ProcessStart]:
    """What has begun and is not known to have ended."""
    exits = state.journal.exits
    return {key: start for key, start in state.journal.processes.items() if key not in exits}


def _watched(state: RunState, now: float) -> bool:
    """Whether its newest supervisor has not ended, and has not missed its minutes either."""
    journal = state.journal
    if journal.minutes and now - journal.updated > FRESH_S:
        return False
    last = _newest(state, "supervisor")
    return last is None or (last.pid, last.starttime) not in journal.exits


def _newest(state: RunState, role: str) -> events.ProcessStart | None:
    starts = [start for start in state.journal.processes.values() if start.role == role]
    return max(starts, key=lambda start: start.t, default=None)


def _rows(state: RunState) -> list[ProcessRow]:
    """Nobody records that a supervisor or its sensor has ended: the newest one counts."""
    attempt = state.newest_attempt()
    single = {role: _newest(state, role) for role in SINGLE}
    return [
        ProcessRow(
            pid=start.pid,
            starttime=start.starttime,
            ppid=start.ppid,
            role=start.role,
            state="",
            rank=start.rank,
            worker=start.worker,
            command=start.command,
            started=start.t,
        )
        for start in _alive(state).values()
        if start.attempt == attempt and single.get(start.role, start) is start
    ]


def _gpus(minute: events.Minute | None, now: float) -> events.Gpus | None:
    if minute is None or now - minute.t > FRESH_S or not minute.gpu_memory_mib:
        return None
    used, busy = minute.gpu_memory_mib, minute.gpu_utilization_percent
    return events.Gpus(
        note="one value a minute",
        gpus=[
            Gpu(
                index=index,
                memory_used_mib=mib,
                utilization_percent=busy[index] if index < len(busy) else None,
            )
            for index, mib in enumerate(used)
        ],
        t=now,  # it stands for its whole minute
        m=0.0,
    )
