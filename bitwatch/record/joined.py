"""The processes of the newest sample, joined with what the journal knows of each.

There are hundreds, a sample comes every second, and from one to the next few are another: whoever
is as before keeps the row that he had.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from bitwatch.record import events

TICKS_PER_S = 100  # of a process's starttime: USER_HZ of every Linux that runs PyTorch

Starts = dict[tuple[int, int], events.ProcessStart]


class ProcessRow(msgspec.Struct, kw_only=True, gc=False):
    """A process as the newest sample saw it, joined with what the journal knows of it.
    `started` is wall-clock seconds. `state` is the letter of /proc/PID/stat; a process in state
    Z with `threads_live` goes on without its first thread."""

    pid: int
    starttime: int
    ppid: int
    role: str
    state: str
    rank: int | None = None
    worker: int | None = None
    cpu_percent: float | None = None
    rss_mib: float | None = None
    shared_mib: float | None = None
    command: str = ""
    started: float | None = None
    threads_live: int = 0

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.starttime


class Joined(NamedTuple):
    """What was measured of a process, what the journal told of it, and the row of both."""

    process: events.Process
    told: events.ProcessStart | None
    row: ProcessRow


def join(sample: events.Processes, starts: Starts, before: list[Joined]) -> list[Joined]:
    """Each process of a sample once. `before` is of an earlier one."""
    known = {(one.process.pid, one.process.starttime): one for one in before}
    found: dict[tuple[int, int], Joined] = {}
    for process in sample.processes:
        key = process.pid, process.starttime
        told, one = starts.get(key), known.get(key)
        if one is None or one.process != process or one.told is not told:
            one = Joined(process, told, _row(process, told, sample))
        found[key] = one
    return list(found.values())


def renew(sample: events.Processes, before: list[Joined]) -> list[Joined] | None:
    """The same for as long as the journal tells nothing new, and the same processes stand in the
    same places; None when they do not."""
    processes = sample.processes
    if len(processes) != len(before):
        return None
    pairs = enumerate(zip(processes, before, strict=True))
    changed = [
        at
        for at, (process, one) in pairs
        if process is not one.process and process != one.process  # the first costs less
    ]
    found = before.copy() if changed else before
    for at in changed:
        process, was = processes[at], before[at]
        if (process.pid, process.starttime) != (was.process.pid, was.process.starttime):
            return None
        found[at] = Joined(process, was.told, _row(process, was.told, sample))
    return found


def _row(
    process: events.Process, told: events.ProcessStart | None, sample: events.Processes
) -> ProcessRow:
    # The monotonic clock of the sample against the start in ticks since boot. It stands
    # still while a machine sleeps, so a record of the start from before then says more.
    started = sample.t - max(0.0, sample.m - process.starttime / TICKS_PER_S)
    return ProcessRow(
        pid=process.pid,
        starttime=process.starttime,
        ppid=process.ppid,
        role=process.role,
        state=process.state,
        rank=process.rank,
        worker=process.worker,
        cpu_percent=process.cpu_percent,
        rss_mib=process.rss_mib,
        shared_mib=process.shared_mib,
        command=process.command or (told.command if told else ""),
        started=min(started, told.t) if told else started,
        threads_live=process.threads_live,
    )
