"""A training that bitwatch did not start, as a run on record: its directory, made once.

Two who attach to the same training get the same directory: it is found again by the identity of
the launcher, or of any process that was recorded while somebody watched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bitwatch import __version__, utf8
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import Identity, RunDir, RunDirError
from bitwatch.sense.facts import Facts
from bitwatch.sense.stat import Key
from bitwatch.sense.training import Member, Training
from bitwatch.sense.training_facts import TrainingFacts
from bitwatch.supervise import control

NAME_CHARACTERS = 32
START_TIMEOUT_S = 3600.0  # until a first step: nobody knows what it has to do before
PROGRAM = re.compile(r"(?:^|[ /=])([\w.-]+)\.py(?: |$)")
MODULE = re.compile(r" -m +([\w.]+)")
LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "launch", "run")


def of_training(home: Path, training: Training) -> RunDir:
    """The run of a training that lives. Raises RunDirError."""
    with _alone(home):
        known = _known(home, {training.root, *(m.stat.key for m in training.members)})
        return known or _made(
            home,
            name_of(training),
            command=training.command.split(),
            root=training.root,
            logs=[log.path for log in training.logs if utf8.is_text(log.path)],
            records=[_started(training), *map(_start_of, training.members)],
        )


def of_log(home: Path, log: Path) -> RunDir:
    """The run of a log whose training nobody knows. Raises RunDirError."""
    path = str(log.absolute())
    with _alone(home):
        for run, identity in _foreign(home):
            if identity.root is None and identity.logs == [path] and not _is_unfinished(run):
                return run
        name = _plain_name(log.stem)
        started = events.AttemptStarted(
            attempt=1, cause=f"attached to the log {path}", by=_by(), ranks=1
        )
        return _made(home, name, command=[], root=None, logs=[path], records=[started])


def roots(runs: Iterable[RunDir]) -> set[Key]:
    """The launchers of those that are of trainings that bitwatch did not start."""
    found: set[Key] = set()
    for run in runs:
        with contextlib.suppress(RunDirError):
            root = run.identity().root
            found |= {root} if root is not None else set()
    return found


def _is_unfinished(run: RunDir) -> bool:
    return not run.journal.exists()  # its making was cut short


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Of two who attach at the same instant the second finds what the first has made."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise RunDirError(f"{home}: cannot make a run directory: {error.strerror}") from None
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _foreign(home: Path) -> Iterator[tuple[RunDir, Identity]]:
    """Those that can be about something of this boot, newest first."""
    for run in rundir.list_runs(home):
        with contextlib.suppress(RunDirError):
            identity = run.identity()
            if identity.foreign and not rundir.is_here(identity):
                yield run, identity


def _known(home: Path, keys: set[Key]) -> RunDir | None:
    """The run that watches one of these processes already."""
    runs = [(run, identity) for run, identity in _foreign(home) if identity.root is not None]
    for run, identity in runs:
        if identity.root is not None and tuple(identity.root) in keys and not _is_unfinished(run):
            return run
    for run, _ in runs:  # its launcher is dead, and one of its ranks was named
        follower = Follower(run, glance=True)
        follower.poll()
        journal = follower.state.journal
        if keys & (journal.processes.keys() - journal.exits.keys()):
            return run
    return None


def _made(
    home: Path,
    name: str,
    *,
    command: list[str],
    root: Key | None,
    logs: list[str],
    records: Sequence[events.Record],
) -> RunDir:
    run = rundir.create(
        home,
        name,
        command=command,
        versions={"bitwatch": __version__},
        foreign=True,
        root=root,
        logs=logs,
    )
    identity = run.identity()
    identity.socket = str(control.socket_path(run.path))
    rundir.write_identity(run, identity)
    rundir.new_attempt(run)
    lock = rundir.Lock(run)
    try:
        journal = JournalWriter(run.journal, run.reserve)
        whole = journal.write(events.RunStarted(name=name, run=run.id, foreign=True))
        for record in records:  # whatever ends meanwhile, it is known who took part
            whole = journal.write(record) and whole
        journal.close()
    except OSError as error:
        raise RunDirError(f"{run.journal}: {error.strerror}") from None
    finally:
        lock.release()
    if not whole:
        raise RunDirError(f"{run.journal}: the disk is full")
    return run


def _started(training: Training) -> events.AttemptStarted:
    return events.AttemptStarted(
        attempt=1,
        cause=f"attached to pid {training.root[0]}",
        by=_by(),
        ranks=max(1, training.ranks),
        workers=workers_of(training.members),
        device=device_of(training.members),
        visible_devices=visible_devices_of(training.members),
        start_timeout_s=START_TIMEOUT_S,
    )


def _start_of(member: Member) -> events.ProcessStart:
    stat = member.stat
    return events.ProcessStart(
        pid=stat.pid,
        starttime=stat.starttime,
        ppid=stat.ppid,
        role=member.role,
        rank=member.rank,
        worker=member.worker,
        attempt=1,
        command=member.command,
    )


def workers_of(members: Sequence[Member]) -> int:
    """Of one rank, the most that any has."""
    of: dict[int | None, int] = {}
    for member in members:
        if member.role == "worker":
            of[member.rank] = of.get(member.rank, 0) + 1
    return max(of.values(), default=0)


def device_of(members: Sequence[Member]) -> str:
    """cuda where one of its ranks has a GPU open."""
    facts = Facts()
    ranks = [member for member in members if member.role == "rank"]
    return "cuda" if any(facts.gpu_files(member.stat) for member in ranks) else "cpu"


def visible_devices_of(members: Sequence[Member]) -> str | None:
    """CUDA_VISIBLE_DEVICES of its ranks; some launchers give each one a GPU of its own. None where
    a rank sees all GPUs, or does not show its environment."""
    facts, found = TrainingFacts(), dict[str, None]()
    for member in sorted(members, key=lambda member: member.rank or 0):
        if member.role == "rank":
            value = (facts.variables(member.stat) or {}).get("CUDA_VISIBLE_DEVICES")
            if value is None:
                return None
            found |= dict.fromkeys(value.split(","))
    return ",".join(found) if found else None


def name_of(training: Training) -> str:
    """After its program: what a person would call it."""
    ranks = [member.command for member in training.members if member.role == "rank"]
    for command in (*ranks, training.command):
        names = [Path(name).name for name in PROGRAM.findall(command)]
        names += [name for name in MODULE.findall(command) if name not in LAUNCHERS]
        if names := [name for name in names if name not in ("run", "launch")]:
            return _plain_name(names[0])
    return "training"


def _plain_name(text: str) -> str:
    """Part of a folder's name: letters that no shell and no screen minds."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:NAME_CHARACTERS]
    return plain or "training"


def _by() -> str:
    return f"the screen (pid {os.getpid()})"
