"""From a plan to a run that is under way: its directory, its next attempt, its supervisor."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from bitwatch import __version__, small
from bitwatch import config as configuration
from bitwatch.config import Config
from bitwatch.plan import resume
from bitwatch.plan.facts import Facts
from bitwatch.plan.result import Plan
from bitwatch.record import events, kernel, rundir
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.state import RunState
from bitwatch.supervise import control, ending, holding, launch, notify

NOT_OURS = "bitwatch did not start it and only watches it"
START_S = 30.0  # a supervisor says that it is there within a fraction of a second


def device_of(config: Config, facts: Facts) -> str:
    """cuda or cpu. "auto" takes GPUs only if there are as many as ranks."""
    gpus = len(facts.devices.gpus) if facts.devices else 0
    if config.parallel.device == "auto":
        return "cuda" if gpus >= config.parallel.ranks else "cpu"
    return config.parallel.device


def create(home: Path, config: Config, facts: Facts, command: list[str]) -> RunDir:
    """A new run directory. Raises RunDirError."""
    versions: dict[str, str | None] = {"bitwatch": __version__, "python": sys.version.split()[0]}
    if facts.versions:
        versions |= msgspec.to_builtins(facts.versions)
    run = rundir.create(
        home,
        config.run.name,
        command=command,
        versions=versions,
        gpus=[gpu.name for gpu in facts.devices.gpus] if facts.devices else [],
        git_commit=_git_commit(),
    )
    identity = run.identity()
    identity.socket = str(control.socket_path(run.path))
    rundir.write_identity(run, identity)
    return run


def is_foreign(run: RunDir) -> bool:
    """Whether it is of a training that bitwatch only watches. False of what cannot be read."""
    try:
        return run.identity().foreign
    except RunDirError:
        return False


def refuse_foreign(run: RunDir, done: str) -> None:
    """Raises RunDirError for what is not done to a training that bitwatch only watches."""
    if is_foreign(run):
        raise RunDirError(f"{run.id}: {NOT_OURS}; it is {done} where it was started")


def name_gpus(run: RunDir, gpus: events.Gpus) -> None:
    """Writes which GPUs and which driver a run has into its run.json, if that can be."""
    with contextlib.suppress(OSError, RunDirError):
        identity = run.identity()
        identity.gpus = [gpu.uuid or f"GPU {gpu.index}" for gpu in gpus.gpus]
        identity.versions["driver"] = gpus.note.removeprefix("driver ") or None
        rundir.write_identity(run, identity)


def not_resumable(run: RunDir, config: Config) -> tuple[list[str], list[str]]:
    """What makes the model of `config` another one than the newest checkpoint's, and what keeps
    its place in the text from being found again; empty when nothing does, or when there is no
    checkpoint or no place yet. Only the trainer knows whether the text itself is the same."""
    folder = run.checkpoints(config.checkpoint.folder)
    steps = [path for path in folder.glob("step-*/manifest.json") if path.parent.name[5:].isdigit()]
    for path in sorted(steps, key=lambda path: int(path.parent.name[5:]), reverse=True):
        try:
            said = json.loads(small.read(path))
            model, text = dict(said["config"]["model"]), said["counters"]["text"]
            place, saved = text["position"], dict(text["order"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a damaged one: the trainer passes it over too
        saved.pop("text", None)
        lost = resume.differences(saved, resume.order(config)) if place else []
        return resume.model_differences(model, config.model), lost
    return [], []


def new_attempt(run: RunDir, config: Config, plan: Plan, device: str, facts: Facts) -> int:
    """Writes what the attempt will be launched with, and what the plan was made from. Raises
    RunDirError, and leaves no attempt that could not be written."""
    attempt = rundir.new_attempt(run)
    try:
        rundir.write_whole(run.facts(attempt), msgspec.json.encode(facts))
        rundir.write_whole(run.config(attempt), configuration.dump(config).encode())
        whole = {**msgspec.to_builtins(plan), "device": device}
        rundir.write_whole(run.plan(attempt), msgspec.json.format(msgspec.json.encode(whole)))
    except OSError as error:
        rundir.remove(run.attempt(attempt))
        raise RunDirError(f"{run.attempt(attempt)}: {error.strerror}") from None
    return attempt


def has_begun(run: RunDir, state: RunState, attempt: int) -> bool:
    """Whether anything was launched in it: its record, its ranks or its agent say so."""
    said = attempt in state.journal.attempts or attempt in state.prepares
    return said or bool(state.ranks_of(attempt)) or (run.logs(attempt) / "agent.log").exists()


class Starting(NamedTuple):
    """A supervisor that was started just now. What it says of itself begins at `log_offset`."""

    run: RunDir
    attempt: int
    process: subprocess.Popen[bytes]
    log_offset: int

    def is_there(self) -> bool:
        """Whether it holds the run, or has ended already with nothing left to do. Raises LockHeld
        when another one has the run, RunDirError when it ended before it had begun."""
        holder = self.run.holder()
        if holder and holder.pid == self.process.pid and self.run.lock_is_held():
            return True
        code = self.process.poll()
        if code:
            _say_why(self.run, code, self.log_offset)
        return code == 0


def start_supervisor(
    run: RunDir, attempt: int, how: str, by: str, cause: str
) -> subprocess.Popen[bytes]:
    """Starts a detached supervisor (`how`: launch, adopt or relaunch) and waits until it holds the run.
    One that was to adopt a run may have ended already, with nothing left to do.

    Raises LockHeld when another one does, RunDirError when it ends before it has begun.
    """
    starting = _start(run, attempt, how, by, cause)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if starting.is_there():
            # Whoever started it may outlive it, and nobody else can take its status.
            threading.Thread(target=starting.process.wait, name="reaper", daemon=True).start()
            return starting.process
        time.sleep(0.02)
    raise RunDirError(f"{run.id}: the supervisor did not begin in {START_S:.0f} s")


def _start(run: RunDir, attempt: int, how: str, by: str, cause: str) -> Starting:
    command = [sys.executable, "-m", holding.SUPERVISOR]
    command += [str(run.path), str(attempt), how, by, cause]
    try:
        with open(run.supervisor_log, "ab") as log:
            offset = log.tell()
            process = subprocess.Popen(
                command,
                env=notify.hand_down(launch.clean_environment(dict(os.environ))),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise RunDirError(f"{run.path}: cannot start a supervisor: {error.strerror}") from None
    return Starting(run, attempt, process, offset)


def take_over(run: RunDir, by: str, cause: str) -> Starting | None:
    """Starts a supervisor for an attempt that has lost its own, while its agent or its ranks
    live, and does not wait for it; None when there is no such attempt. Raises RunDirError when
    none can be started."""
    identity = run.identity()
    if identity.uid != os.getuid() or rundir.is_here(identity) or identity.foreign:
        return None
    follower = Follower(run, glance=True)
    follower.poll()
    attempt = follower.state.newest_attempt()
    alive = follower.liveness()
    if ending.is_over(follower.state, attempt) or alive.supervisor:
        return None
    if not alive.agent and not alive.ranks:
        return None
    try:
        configuration.load(run.config(attempt), lenient=True)  # which a supervisor must know
    except configuration.ConfigError as error:
        raise RunDirError(
            f"attempt {attempt} has no supervisor, and can have none: {error}"
        ) from None
    return _start(run, attempt, "adopt", by, cause)


def close_record(run: RunDir, by: str) -> bool:
    """Writes the end of an attempt that nobody closed; whether there was one to close.

    Raises LockHeld while a supervisor has the run, RunDirError when its ranks go on without one.
    What bitwatch did not start is left to who watches it next: its log may tell more.
    """
    if is_foreign(run):
        return False
    follower = Follower(run)
    if not _open_attempt(follower):
        return False
    lock = rundir.Lock(run)
    try:
        attempt = _open_attempt(follower)  # whoever had the lock may have closed it
        if not attempt:
            return False
        alive = follower.liveness()
        if alive.agent or alive.ranks:
            raise RunDirError(
                f"{run.id}: its supervisor is gone but its ranks go on; `bitwatch stop {run.id}` "
                "stops them with a checkpoint first"
            )
        ending.close_dead(run, follower, attempt, by)
    finally:
        lock.release()
    return True


def _open_attempt(follower: Follower) -> int:
    """The newest attempt, if its end is not in the record; else 0."""
    follower.poll()
    attempt = follower.state.newest_attempt()
    return 0 if ending.is_over(follower.state, attempt) else attempt


def close_if_dead(run: RunDir, by: str) -> None:
    """The same, when nothing of the run lives and it can be written; otherwise nothing."""
    if not still_lives(run):
        with contextlib.suppress(RunDirError):
            close_record(run, by)


def still_lives(run: RunDir) -> bool:
    """Whether a supervisor, the agent or a rank of the newest attempt is there."""
    follower = Follower(run, glance=True)
    follower.poll()
    alive = follower.liveness()
    return alive.supervisor or alive.agent or bool(alive.ranks)


def move_here(run: RunDir) -> None:
    """A run that ended at a reboot goes on under this boot. What it recorded of processes
    before proves nothing any more: the same pid and start time may come again. So all of it has
    ended, at a time that the clock of this boot does not know."""
    identity = run.identity()
    if identity.boot_id == kernel.boot_id():
        return
    follower = Follower(run)
    follower.poll()
    known = follower.state.journal
    lock = rundir.Lock(run)
    try:
        journal = JournalWriter(run.journal)
        for (pid, starttime), start in known.processes.items():
            told = known.exits.get((pid, starttime)) or events.ProcessExit(
                pid=pid, starttime=starttime, role=start.role, rank=start.rank
            )
            journal.write(msgspec.structs.replace(told, m=0.0))
        journal.close()
        identity.boot_id = kernel.boot_id()
        rundir.write_identity(run, identity)
    finally:
        lock.release()


def _say_why(run: RunDir, code: int, offset: int) -> None:
    text = ending.tail(run.supervisor_log) if offset == 0 else _since(run.supervisor_log, offset)
    lines = [line for line in text.splitlines() if line.strip()]
    why = lines[-1] if lines else f"exit code {code}"
    if code == 4:
        raise rundir.LockHeld(why)
    raise RunDirError(f"{run.id}: the supervisor could not begin: {why}")


def _since(path: Path, offset: int) -> str:
    with small.opened(path) as file:
        file.seek(offset)
        return file.read().decode(errors="replace")


def _git_commit() -> str | None:
    """The commit of the working directory's repository, if it is one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, timeout=5, check=True, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
