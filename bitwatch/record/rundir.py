"""The directory of a run: its layout, its identity, and the lock of its one writer.

Knows nothing of what the records say: see `state` for that.
"""

from __future__ import annotations

import datetime
import fcntl
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from bitwatch import small, utf8
from bitwatch.record import kernel

REBOOTED = "ended at reboot"
RESERVE_BYTES = 256 << 10  # kept for the last words of a run whose disk is full
PROBE_S = 0.2  # longest that readers' momentary probes may keep the lock from a new writer


class RunDirError(Exception):
    """A run or its directory that cannot be used, as one sentence."""


class LockHeld(RunDirError):
    """Another process is this run's writer."""


class Identity(msgspec.Struct, kw_only=True):
    """run.json. Fields that nobody could tell are None; readers ignore fields they lack."""

    id: str
    name: str
    created: float
    host: str
    boot_id: str
    pid_namespace: int
    uid: int
    command: list[str] = []
    versions: dict[str, str | None] = {}
    gpus: list[str] = []
    git_commit: str | None = None
    socket: str = ""
    format: int = 1
    foreign: bool = False  # a training that bitwatch did not start; `command` is its launcher's
    root: tuple[int, int] | None = None  # pid and start time of that launcher; None: a log alone
    logs: list[str] = []  # its logs, by path


class Holder(msgspec.Struct, kw_only=True):
    """Who holds the lock. `starttime` is in clock ticks since boot."""

    pid: int
    starttime: int
    pid_namespace: int


class RunDir:
    """Paths below one run's directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name
        self.identity_file = path / "run.json"
        self.lock_file = path / "lock"
        self.journal = path / "journal.jsonl"
        self.samples = path / "samples"
        self.supervisor_log = path / "supervisor.log"
        self.reserve = path / "reserve"

    def attempt(self, n: int) -> Path:
        return self.path / "attempts" / str(n)

    def config(self, n: int) -> Path:
        return self.attempt(n) / "config.toml"

    def plan(self, n: int) -> Path:
        return self.attempt(n) / "plan.json"

    def facts(self, n: int) -> Path:
        """What the plan was made from."""
        return self.attempt(n) / "facts.json"

    def exit(self, n: int) -> Path:
        return self.attempt(n) / "exit.json"

    def stop(self, n: int) -> Path:
        """The file that asks an attempt to stop: written by anyone, read by rank 0."""
        return self.attempt(n) / "stop"

    def relaunch(self, n: int) -> Path:
        """The file that asks for a next attempt after this one, and how."""
        return self.attempt(n) / "relaunch"

    def logs(self, n: int) -> Path:
        return self.attempt(n) / "logs"

    def prepare(self, n: int) -> Path:
        """What `trainer.prepare` says of its work, before there are ranks."""
        return self.attempt(n) / "prepare.jsonl"

    def index(self, n: int) -> Path:
        """Where the prepared text lies, for the ranks: written when it is whole."""
        return self.attempt(n) / "index.json"

    def rank(self, n: int, rank: int) -> Path:
        return self.attempt(n) / f"rank{rank}.jsonl"

    def unwritten(self, n: int, rank: int) -> Path:
        """Where a rank tells what its record has no room for (see `aside`)."""
        return self.attempt(n) / f"rank{rank}.unwritten"

    def history(self, n: int) -> Path:
        """Steps of a log that were printed before anybody watched it: fewer than there were."""
        return self.attempt(n) / "history.jsonl"

    def stacks(self, n: int, rank: int) -> Path:
        """Where a rank writes what its threads do, when it is asked to by a signal."""
        return self.attempt(n) / "stacks" / f"rank{rank}.txt"

    def reader(self, n: int, rank: int, loader: str, worker: int, incarnation: str) -> Path:
        return self.attempt(n) / "readers" / f"{rank}-{loader}-{worker}-{incarnation}.jsonl"

    def checkpoints(self, folder: str | None = None) -> Path:
        """`folder` is checkpoint.folder: a place for big files, with one folder a run."""
        if folder:
            return Path(folder).expanduser().absolute() / self.id / "checkpoints"
        return self.path / "checkpoints"

    def attempts(self) -> list[int]:
        """Numbers of the attempts there are, oldest first."""
        return sorted(
            int(entry.name)
            for entry in _entries(self.path / "attempts")
            if entry.name.isdecimal() and entry.is_dir()
        )

    def identity(self) -> Identity:
        """Raises RunDirError when run.json is missing or not readable."""
        try:
            return msgspec.json.decode(small.read(self.identity_file), type=Identity)
        except OSError as error:
            raise RunDirError(f"{self.identity_file}: {error.strerror}") from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RunDirError(f"{self.identity_file}: not a run of bitwatch: {error}") from None

    def holder(self) -> Holder | None:
        """Who wrote itself into the lock file last (it may be dead: see `lock_is_held`)."""
        try:
            return msgspec.json.decode(small.read(self.lock_file), type=Holder)
        except (OSError, msgspec.MsgspecError):
            return None

    def lock_is_held(self) -> bool:
        """Whether a live process holds the lock. Needs no right to write."""
        try:  # never waits: a pipe may lie where the lock should
            fd = os.open(self.lock_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(fd)
        return False


class Lock:
    """The flock of a run's one writer, held until `release` or the end of the process."""

    def __init__(self, run: RunDir) -> None:
        """Raises LockHeld when another process has it, RunDirError when it cannot be made."""
        try:
            self._fd = os.open(run.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RunDirError(f"{run.lock_file}: {error.strerror}") from None
        deadline = time.monotonic() + PROBE_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() < deadline:  # it may be a reader asking `lock_is_held`
                    time.sleep(0.01)
                    continue
                os.close(self._fd)
                holder = run.holder()
                who = f" (pid {holder.pid})" if holder else ""
                raise LockHeld(f"{run.id}: another process{who} holds this run") from None
        me = Holder(
            pid=os.getpid(), starttime=kernel.own_starttime(), pid_namespace=kernel.pid_namespace()
        )
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, msgspec.json.encode(me), 0)
        except OSError:
            pass  # a full disk: the lock itself still holds

    def is_deleted(self) -> bool:
        """Whether the lock file, and so the run's directory, was deleted. A file system that
        is only away for a while does not say so."""
        try:
            return os.fstat(self._fd).st_nlink == 0
        except OSError:
            return False

    def release(self) -> None:
        os.close(self._fd)


# ---------------------------------------------------------------------------------------
# Making and finding


def create(home: Path, name: str, **facts: Any) -> RunDir:
    """A new run directory with its run.json. Raises RunDirError (full, read-only, ...)."""
    day = datetime.datetime.now().strftime("%Y-%m-%d")
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            run = RunDir(home / f"{day}-{name}-{os.urandom(2).hex()}")
            try:
                run.path.mkdir(mode=0o700)
                break
            except FileExistsError:
                continue
        for folder in (run.samples, run.path / "attempts"):
            folder.mkdir(mode=0o700)
        identity = Identity(
            id=run.id,
            name=name,
            created=time.time(),
            host=os.uname().nodename,
            boot_id=kernel.boot_id(),
            pid_namespace=kernel.pid_namespace(),
            uid=os.getuid(),
            **facts,
        )
        write_identity(run, identity)
    except OSError as error:
        raise RunDirError(f"{home}: cannot make a run directory: {error.strerror}") from None
    return run


def write_identity(run: RunDir, identity: Identity) -> None:
    write_whole(run.identity_file, msgspec.json.format(utf8.to_json(identity)))


def new_attempt(run: RunDir) -> int:
    """Makes the folders of the next attempt and returns its number."""
    number = max(run.attempts(), default=0) + 1
    try:
        for folder in (run.attempt(number), run.logs(number), run.attempt(number) / "readers"):
            folder.mkdir(mode=0o700)
        with open(run.reserve, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
    except FileExistsError:
        raise LockHeld(f"{run.id}: another launch of it is under way") from None
    except OSError as error:
        remove(run.attempt(number))  # half of an attempt would stand in the way of the next
        raise RunDirError(f"{run.attempt(number)}: {error.strerror}") from None
    return number


def write_whole(path: Path, data: bytes) -> None:
    """Replaces a small file so that a reader sees the old or the new one, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def list_runs(home: Path) -> list[RunDir]:
    """All runs below `home`, newest first. Folders without a run.json are not runs."""
    runs = []
    for entry in _entries(home):
        run = RunDir(Path(entry.path))
        try:
            runs.append((run.identity_file.stat().st_mtime, run))
        except OSError:
            continue
    return [run for _, run in sorted(runs, key=lambda pair: (pair[0], pair[1].id), reverse=True)]


def find(home: Path, wanted: str) -> RunDir:
    """The run whose id is `wanted` or begins with it; the name of a run also does, when
    only one run has it. Raises RunDirError when there is none, or more than one."""
    runs = list_runs(home)
    if not wanted:
        raise RunDirError("the run id is empty; `bitwatch ls` lists the runs")
    for run in runs:
        if run.id == wanted:
            return run
    matches = [run for run in runs if run.id.startswith(wanted)]
    matches = matches or [run for run in runs if _name_of(run) == wanted]
    if len(matches) == 1:
        return matches[0]
    if matches:
        some = ", ".join(run.id for run in matches[:4]) + (", ..." if len(matches) > 4 else "")
        raise RunDirError(f"{wanted}: {len(matches)} runs match ({some}); give more of the id")
    raise RunDirError(f"{wanted}: no such run in {home}; `bitwatch ls` lists them")


def remove(folder: Path) -> None:
    """Deletes what was made for a run or an attempt that never started."""
    import shutil  # milliseconds, that a listing need not pay

    shutil.rmtree(folder, ignore_errors=True)


def _name_of(run: RunDir) -> str | None:
    try:
        return run.identity().name
    except RunDirError:
        return None


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def is_here(identity: Identity) -> str:
    """Empty when the run's processes could be on this machine now; else why not."""
    if identity.host != os.uname().nodename:
        return f"on another host ({identity.host})"
    if identity.boot_id != kernel.boot_id():
        return REBOOTED
    if identity.pid_namespace != kernel.pid_namespace():
        return "in another pid namespace (a container)"
    return ""
