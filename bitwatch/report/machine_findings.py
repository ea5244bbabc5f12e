"""Findings about what runs on this machine now: leftovers with their proof, suspects, trainings
of others, who holds GPUs, and runs of ours that are in trouble or that nobody looks after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bitwatch.record import afterwards, events
from bitwatch.report import meanings
from bitwatch.report.model import Evidence, Finding
from bitwatch.report.record_words import cut
from bitwatch.sense.gpu_fields import NO_PID
from bitwatch.sense.log_files import Log
from bitwatch.sense.training import Training
from bitwatch.supervise.result import Listed
from bitwatch.supervise.watch_processes import HELD_MIB
from bitwatch.text import counted, duration, literal

if TYPE_CHECKING:
    from bitwatch.report.machine import Here, Live

SHOWN = 16  # processes in the evidence of one finding


def findings(here: Here) -> Iterator[Finding]:
    found = here.found
    if found.own:
        many = counted(len(found.own), "process")
        runs = len({one.run for one in found.own})
        yield Finding(
            id="leftovers",
            severity="error",
            title=f"{many} of {counted(runs, 'ended run')} {_are(found.own)} still there",
            evidence=[*_processes(found.own, here), *_logs(found.own, here)],
            why=meanings.why("leftovers"),
            next="bitwatch clean lists them with their proof and ends them, and nothing else",
        )
    if found.confirm:
        many = counted(len(found.confirm), "process")
        yield Finding(
            id="leftovers-ask",
            severity="warning",
            title=f"{many} came from ended runs, and may be somebody's",
            evidence=[*_processes(found.confirm, here), *_logs(found.confirm, here)],
            why="They are proven to be of a run, but a person may have started them inside it, or "
            "it is a training that bitwatch only watched.",
            next="bitwatch clean --pid PID ends one of them",
        )
    if found.suspect:
        many = counted(len(found.suspect), "process")
        yield Finding(
            id="suspects",
            severity="warning",
            title=f"{many} {'looks' if len(found.suspect) == 1 else 'look'} like what a training "
            "leaves behind",
            evidence=[*_processes(found.suspect, here), *_logs(found.suspect, here)],
            why="Their command lines are those of workers, ranks or launchers, and nobody seems to "
            "look after them; nothing proves whose they are. To end all that look alike (pkill -f)"
            " would end the work of others too.",
            next="see whose they are; bitwatch clean --pid PID ends one of them",
        )
    if found.defunct:
        yield Finding(
            id="defunct",
            severity="info",
            title=f"{counted(len(found.defunct), 'process')} dead, waiting for a parent",
            evidence=_processes(found.defunct, here),
            why="Nothing of them is left but a number. They hold no memory and no GPU.",
            next="nothing need be done; they go with their parents",
        )
    yield from _trainings(here.trainings)
    yield from _gpus(here)
    yield from _runs(here)


def _are(listed: Sequence[Listed]) -> str:
    return "is" if len(listed) == 1 else "are"


def _processes(listed: Sequence[Listed], here: Here) -> list[Evidence]:
    found = [
        Evidence(
            source=f"process {one.pid}",
            t=here.now - one.age_s,
            text=f"{one.role or 'process'}{'' if one.rank is None else f' of rank {one.rank}'}"
            f"{f' of run {one.run}, attempt {one.attempt}' if one.run else ''}, "
            f"{duration(one.age_s)} old: {one.why}"
            f"{f' (proof: {one.proof})' if one.proof else ''}; {literal(one.command)[:160]}",
        )
        for one in listed[:SHOWN]
    ]
    if len(listed) > SHOWN:
        text = f"and {len(listed) - SHOWN:,} more"
        found.append(Evidence(source="bitwatch clean --dry-run", text=text))
    return found


def _logs(listed: Sequence[Listed], here: Here) -> list[Evidence]:
    """Logs that they hold open: what they did can be read there."""
    paths: dict[str, Log] = {}
    for one in listed:
        for log in here.logs.get(one.pid, ()):
            paths.setdefault(log.path, log)
    return [_log(log) for log in list(paths.values())[:SHOWN]]


def _log(log: Log) -> Evidence:
    gone = "; it has been deleted, and lives on only there" if log.deleted else ""
    return Evidence(source=log.path, text=f"held open by process {log.pid} as {log.how}{gone}")


def _trainings(trainings: Sequence[Training]) -> Iterator[Finding]:
    for training in trainings:
        pid, _ = training.root
        workers = sum(member.role == "worker" for member in training.members)
        yield Finding(
            id="foreign-training",
            severity="info",
            title=f"a training that bitwatch did not start: {counted(training.ranks, 'rank')}, "
            f"{counted(workers, 'worker')}, launched as process {pid}",
            evidence=[
                *(
                    Evidence(source=f"process {pid}", t=training.started, text=cut(text))
                    for text in (training.command, *training.evidence)
                ),
                *(_log(log) for log in training.logs[:SHOWN]),
            ],
            why="It is looked at and never touched. What it does is not on record until somebody "
            "attaches to it.",
            next=f"bitwatch attach {pid} shows and records it",
        )
        deleted = [log for log in training.logs if log.deleted]
        if deleted:
            yield Finding(
                id="deleted-log",
                severity="warning",
                title=f"the log {deleted[0].path} has been deleted while it is written",
                evidence=[_log(log) for log in deleted[:SHOWN]],
                why="The file lives as long as a process has it open, and is lost after that.",
                next=f"cp {deleted[0].opened} SOMEWHERE keeps what is in it so far",
            )


def _gpus(here: Here) -> Iterator[Finding]:
    """Memory of GPUs in the hands of who is in no training that goes on."""
    if here.gpus is None:
        return
    training = {member.stat.pid for one in here.trainings for member in one.members}
    for live in here.live:
        training |= live.pids
    left = {one.pid: one for one in (*here.found.own, *here.found.confirm, *here.found.suspect)}
    held = [
        (gpu, pid, mib)
        for gpu in here.gpus.gpus
        for pid, mib in gpu.processes or ()
        if pid not in NO_PID and pid not in training and (mib is None or mib >= HELD_MIB)
    ]
    if held:
        ours = [pid for _, pid, _ in held if pid in left]
        yield Finding(
            id="gpu-held",
            severity="warning",
            title="GPU memory is held by who is in no training that goes on: "
            f"{counted(len({pid for _, pid, _ in held}), 'process')} on GPU "
            f"{', '.join(map(str, sorted({gpu.index for gpu, _, _ in held})))}",
            evidence=[
                Evidence(
                    source=f"process {pid}",
                    text=f"GPU {gpu.index}: {'memory' if mib is None else f'{mib:,.0f} MiB'}"
                    + (f", {left[pid].role}, {left[pid].why}" if pid in left else ", not of ours"),
                )
                for gpu, pid, mib in held[:SHOWN]
            ],
            why=meanings.why("gpu-held"),
            next="bitwatch clean ends what ended runs have left"
            if ours
            else "ask whose they are; a GPU reset would end the work of everybody on it",
        )
    for gpu in here.gpus.gpus:
        if gpu.error:
            yield Finding(
                id="gpu-lost",
                severity="error",
                title=f"GPU {gpu.index} does not answer: {gpu.error}",
                evidence=[Evidence(source="the NVIDIA driver", text=gpu.error, t=here.gpus.t)],
                why="Class of the cause, where a run failed on it: hardware, or its driver.",
                next="look at the kernel log for Xid lines",
            )


def _runs(here: Here) -> Iterator[Finding]:
    for id_ in here.found.orphaned:
        yield Finding(
            id="supervisor-gone",
            severity="warning",
            title=f"run {id_} goes on, and nobody looks after it",
            evidence=[
                Evidence(source=f"run {id_}", text="its ranks live, its supervisor does not")
            ],
            why="The training itself does not need its supervisor; what it would do (judge, stop, "
            "clean up) is not done until there is one again.",
            next=f"bitwatch attach {id_} gives it one",
        )
    for id_ in here.found.unclosed:
        yield Finding(
            id="not-closed",
            severity="info",
            title=f"nothing of run {id_} lives, and its record is not closed",
            evidence=[
                Evidence(source=f"run {id_}", text="no end of its newest attempt is on record")
            ],
            why="Its supervisor died before it could write how the run ended.",
            next=f"bitwatch report {id_} says what is known of its end",
        )
    for live in here.live:
        for alert in live.seen.alerts:
            if alert.severity != "info" and alert.id != afterwards.SUPERVISOR_GONE:  # said above
                yield _trouble(live, alert)


def _trouble(live: Live, alert: events.Alert) -> Finding:
    run = live.run.id
    return Finding(
        id=alert.id,
        severity=alert.severity,
        title=f"run {run} ({live.seen.state}, step {live.seen.step:,}): {cut(alert.text)}",
        evidence=[
            Evidence(source=f"run {run}", t=alert.t, text=cut(text))
            for text in (alert.evidence[:SHOWN] or [alert.text])
        ],
        why=meanings.why(alert.id),
        next=meanings.next_of(alert.id, cut(alert.next)) or f"bitwatch attach {run}",
    )
