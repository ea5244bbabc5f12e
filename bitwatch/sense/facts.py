"""What a process says of itself beyond its stat: read when it is asked for, kept while it
cannot change.

In the first instants of its life a process shows its parent's command line and environment,
or none at all: what is read within a second of its start, or is empty, is not kept. What is
kept belongs to the program that the process runs: after an exec it is read again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Set
from typing import Generic, NamedTuple, TypeVar

from bitwatch.sense.entry import opened
from bitwatch.sense.stat import PAGE_MIB, Key, Stat, age_s, read_raw

SETTLE_S = 1.0
COMMAND_BYTES = 4096  # of a command line, what is kept
ENVIRONMENT_BYTES = 4 << 20  # more than the kernel lets a program be started with, commonly
STATUS_BYTES = 1 << 20  # a user may be in thousands of groups
NOBODY = -1  # the user of a process that is gone
GPU_DEVICES = "/dev/nvidia"

Fact = TypeVar("Fact")


class Tags(NamedTuple):
    """What a run leaves in the environment of all that it starts. Text of somebody else:
    whoever may start a process may write anything there."""

    run: str
    attempt: int | None
    directory: str


class Environment(NamedTuple):
    """`known`: that it has these tags, or none, is certain."""

    tags: Tags | None = None
    known: bool = False


UNKNOWN = Environment()


class Settled(Generic[Fact]):
    """Facts by process, each for as long as the process runs the same program."""

    def __init__(self) -> None:
        self._facts: dict[Key, tuple[tuple[int, int, str], Fact]] = {}

    def get(self, stat: Stat) -> Fact | None:
        image, fact = self._facts.get(stat.key, (None, None))
        # The dead have no image any more, and cannot exec: what was known of them stays true.
        return fact if image == stat.image or stat.state in "ZX" else None

    def keep(self, stat: Stat, fact: Fact) -> None:
        if age_s(stat) > SETTLE_S:
            self._facts[stat.key] = stat.image, fact

    def forget_all_but(self, keys: Set[Key]) -> None:
        for key in self._facts.keys() - keys:
            del self._facts[key]


class CommandLines:
    """Command lines, each read once. Of an instant-old process it may be its parent's."""

    def __init__(self) -> None:
        self._known: Settled[str] = Settled()

    def get(self, stat: Stat) -> str:
        known = self._known.get(stat)
        if known:
            return known
        try:
            with opened(stat) as entry:
                raw = entry.read_memory("cmdline", COMMAND_BYTES)
        except OSError:
            return ""
        text = " ".join(raw.decode(errors="replace").split("\0")).strip()
        if text:
            self._known.keep(entry.stat, text)
        return text

    def is_settled(self, stat: Stat) -> bool:
        """Whether what `get` gave is the process's own for good."""
        return self._known.get(stat) is not None

    def forget_all_but(self, keys: Set[Key]) -> None:
        self._known.forget_all_but(keys)


class Facts:
    """Facts of any process, each on its own, each as little as may be known of it.

    What could prove that a process is ours, and what it takes several reads to know, is read
    of exactly this one. The rest is read by its pid: of a process that has just ended it
    may be its successor's, and does no harm there: nobody can act on the dead.
    """

    def __init__(self) -> None:
        self._commands = CommandLines()
        self._environments: Settled[Environment] = Settled()
        self._users: dict[Key, int] = {}
        self._here: dict[Key, bool] = {}

    def command(self, stat: Stat) -> str:
        """Its words with spaces between them; empty when it cannot be known."""
        return self._commands.get(stat)

    def is_settled(self, stat: Stat) -> bool:
        """Whether what `command` gave is the process's own for good."""
        return self._commands.is_settled(stat)

    def tags(self, stat: Stat) -> Tags | None:
        """None when it has none, or when that cannot be known: `tags_known` tells which.
        Of a process that is younger than a second they may be its parent's."""
        return self._environment(stat).tags

    def tags_known(self, stat: Stat) -> bool:
        """Whether what `tags` says is certain."""
        return self._environment(stat).known

    def user(self, stat: Stat) -> int:
        """The uid as which it runs, or NOBODY."""
        if stat.key not in self._users:
            user = owner(stat.pid)
            if user == NOBODY:
                return NOBODY
            self._users[stat.key] = user
        return self._users[stat.key]

    def in_our_namespace(self, stat: Stat) -> bool | None:
        """Whether its pid means the same to it as to us; None when that cannot be known."""
        if stat.key not in self._here:
            with contextlib.suppress(OSError), opened(stat) as entry:
                here = _is_here(entry.folder)
                if here is not None:
                    self._here[stat.key] = here
        return self._here.get(stat.key)

    def gpu_files(self, stat: Stat) -> list[str]:
        """The GPU devices that it holds open. Only of this user's processes."""
        found: set[str] = set()
        if self.user(stat) == os.getuid():
            with contextlib.suppress(OSError), opened(stat) as entry:
                found = {path for path in open_files(entry.folder) if path.startswith(GPU_DEVICES)}
        return sorted(found)

    def shared_mib(self, stat: Stat) -> float | None:
        """The part of its resident memory that is of files and of shared memory."""
        fields = (read_raw(f"/proc/{stat.pid}/statm") or b"").split()
        return int(fields[2]) * PAGE_MIB if len(fields) > 2 else None

    def wchan(self, stat: Stat) -> str:
        """The function of the kernel in which it waits; empty when it does not, or may not
        be known. This may be asked of a process in state D: reading it never waits."""
        name = (read_raw(f"/proc/{stat.pid}/wchan") or b"").decode(errors="replace").strip()
        return "" if name == "0" else name

    def forget_all_but(self, keys: Set[Key]) -> None:
        """Of the others nothing is needed any more, and of none what may have changed."""
        self._commands.forget_all_but(keys)
        self._environments.forget_all_but(keys)
        self._here = {key: here for key, here in self._here.items() if key in keys}
        self._users.clear()  # a daemon begins as root and becomes somebody else

    def _environment(self, stat: Stat) -> Environment:
        known = self._environments.get(stat)
        if known is not None:
            return known
        read = read_environment(stat)
        if read is None:
            return UNKNOWN
        raw, stat = read
        tags = find_tags(raw)
        if tags is None and not _is_whole(raw, stat):
            return UNKNOWN
        self._environments.keep(stat, Environment(tags, known=True))
        return self._environments.get(stat) or Environment(tags)


def read_environment(stat: Stat) -> tuple[bytes, Stat] | None:
    """That of exactly this process, and its stat as it was read; None when it may not be."""
    try:
        with opened(stat) as entry:
            return entry.read_memory("environ", ENVIRONMENT_BYTES), entry.stat
    except OSError:
        return None


def owner(pid: int) -> int:
    """The uid as which the process runs that has this pid now, or NOBODY. Of the files below,
    the kernel says root when a process hides its memory; of the folder itself it never does."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return NOBODY


def find_tags(environment: bytes) -> Tags | None:
    if b"BITWATCH_RUN=" not in environment:
        return None
    values: dict[bytes, str] = {}
    for entry in environment.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name.startswith(b"BITWATCH_"):
            values.setdefault(name, os.fsdecode(value))
    run, attempt = values.get(b"BITWATCH_RUN"), values.get(b"BITWATCH_ATTEMPT", "")
    if not run:
        return None
    number = int(attempt) if attempt.isascii() and attempt.isdecimal() else None
    return Tags(run, number, values.get(b"BITWATCH_DIR", ""))


def _is_whole(environment: bytes, stat: Stat) -> bool:
    """Whether this is an environment as a program was started with, so that a tag which is
    not in it was not there. An empty one is, only if it has no room either; and a program that
    writes its title over it leaves text that is no variable."""
    if not environment:
        return stat.env_start == stat.env_end != 0
    first = environment.split(b"\0", 1)[0]
    return b"=" in first and len(environment) < ENVIRONMENT_BYTES


def _is_here(folder: int) -> bool | None:
    """By the namespace itself where it may be read, else by the pids that the process has in
    the namespaces below that of /proc."""
    with contextlib.suppress(OSError):
        own, theirs = os.stat("/proc/self/ns/pid"), os.stat("ns/pid", dir_fd=folder)
        return (own.st_dev, own.st_ino) == (theirs.st_dev, theirs.st_ino)
    own_depth, depth = _depth("/proc/self/status"), _depth("status", folder)
    if not depth or not own_depth:
        return None
    if depth != own_depth:
        return False
    return True if own_depth == 1 else None


def _depth(path: str, folder: int | None = None) -> int:
    """In how many namespaces a process has a pid, counted from that of /proc; 0: unknown."""
    for line in (read_raw(path, folder, STATUS_BYTES) or b"").splitlines():
        if line.startswith(b"NSpid:"):
            return len(line.split()) - 1
    return 0


def open_files(folder: int) -> list[str]:
    """What its descriptors mean. Their names are read, the files are not touched."""
    found = []
    fds = os.open("fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        for name in os.listdir(fds):
            with contextlib.suppress(OSError):
                found.append(os.readlink(name, dir_fd=fds))
    finally:
        os.close(fds)
    return found
