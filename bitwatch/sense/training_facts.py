"""What tells a process of a training from any other: its program, its variables, torch in its
memory, and the files that it has open. Read when it is asked for, kept while it cannot change.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Set

from bitwatch.sense.entry import opened
from bitwatch.sense.facts import Settled, open_files, read_environment
from bitwatch.sense.roles import PYTHON
from bitwatch.sense.scanner import Scanner
from bitwatch.sense.stat import Key, Stat

NAMES = frozenset(
    b"RANK LOCAL_RANK WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID"
    b" BITWATCH_RUN BITWATCH_DIR CUDA_VISIBLE_DEVICES".split()
)
TORCH = b"/libtorch"  # libtorch_cpu.so and others, of every build of torch
MAPS_BYTES = 16 << 20
SOCKETS_BYTES = 16 << 20

Variables = dict[str, str]


class TrainingFacts(Scanner):
    """Whoever looks again and again keeps one: then only what is new is read."""

    def __init__(self) -> None:
        super().__init__()
        self._variables: Settled[Variables] = Settled()
        self._programs: Settled[str] = Settled()
        self._torch: dict[Key, tuple[tuple[int, int, str], float, bool]] = {}

    def variables(self, stat: Stat) -> Variables | None:
        """Of what it was started with, that which a launcher of trainings sets, and which GPUs it may see; None when that
        cannot be known. Text of somebody else."""
        known = self._variables.get(stat)
        if known is not None:
            return known
        read = read_environment(stat)
        if read is None:
            return None
        raw, _ = read
        if not raw and stat.env_start != stat.env_end:
            return None  # in the first instants of its life
        found: Variables = {}
        for item in raw.split(b"\0"):
            name, _, value = item.partition(b"=")
            if name in NAMES:
                found.setdefault(name.decode(), os.fsdecode(value))
        self._variables.keep(stat, found)
        return found

    def is_python(self, stat: Stat) -> bool:
        """Whether it runs Python, by the program itself: it may call itself anything."""
        program = self._programs.get(stat)
        if program is None:
            try:
                with opened(stat) as entry:
                    link = os.readlink("exe", dir_fd=entry.folder)
            except OSError:
                return PYTHON.match(self.command(stat)) is not None
            program = os.path.basename(link)
            self._programs.keep(stat, program)
        return program.startswith(("python", "pypy"))

    def has_torch(self, stat: Stat) -> bool:
        """Whether it has loaded a library of torch. False also where that cannot be known."""
        image, virtual_mib, found = self._torch.get(stat.key, (None, 0.0, False))
        # What has loaded it keeps it; what has not needs more room to do so.
        if image == stat.image and (found or virtual_mib == stat.virtual_mib):
            return found
        try:
            with opened(stat) as entry:
                found = TORCH in entry.read_memory("maps", MAPS_BYTES)
        except OSError:
            return False
        self._torch[stat.key] = stat.image, stat.virtual_mib, found
        return found

    def connections(self, stat: Stat) -> set[str]:
        """The TCP sockets that it has open, by their number. Empty where they may not be seen."""
        with contextlib.suppress(OSError), opened(stat) as entry:
            sockets = {
                link.removeprefix("socket:[").rstrip("]")
                for link in open_files(entry.folder)
                if link.startswith("socket:[")
            }
            known: set[str] = set()
            for table in ("net/tcp", "net/tcp6") if sockets else ():
                lines = _whole(table, entry.folder).splitlines()[1:]
                known.update(fields[9] for line in lines if len(fields := line.split()) > 9)
            return sockets & known
        return set()

    def directory(self, stat: Stat) -> str:
        """Where it works; empty when that cannot be known."""
        with contextlib.suppress(OSError), opened(stat) as entry:
            return os.readlink("cwd", dir_fd=entry.folder)
        return ""

    def forget_all_but(self, keys: Set[Key]) -> None:
        super().forget_all_but(keys)
        self._variables.forget_all_but(keys)
        self._programs.forget_all_but(keys)
        self._torch = {key: known for key, known in self._torch.items() if key in keys}


def _whole(path: str, folder: int) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(fd, "rb") as file:
        return file.read(SOCKETS_BYTES).decode("ascii", "replace")
