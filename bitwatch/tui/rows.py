"""One line of the process panel, and what lines are ordered and found by. Pure.

A row is known by its identities (pid, starttime), so that a selection stays with a process
whatever row it moves to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bitwatch.attach.others import Other
from bitwatch.record.view import ProcessRow

Key = tuple[int, int]

ROLE_ORDER = (
    "supervisor",
    "agent",
    "prepare",
    "rank",
    "worker",
    "resource tracker",
    "compile worker",
    "sensor",
)
PLACES = {role: place for place, role in enumerate(ROLE_ORDER)}
LETTERS = {
    "R": "running",
    "S": "sleeping",
    "D": "blocked",  # in the kernel, on a disk or a driver: no signal reaches it
    "T": "stopped",
    "t": "traced",
    "Z": "defunct",
    "X": "dead",
    "I": "sleeping",
}
STATE_ROLES = {
    "running": "fine",
    "reading": "fine",
    "waiting": "fine",
    "idle": "warning",
    "blocked": "warning",
    "stopped": "warning",
    "traced": "warning",
    "defunct": "bad",
    "leader dead": "bad",  # its threads live on, and hold what it held
    "dead": "bad",
    "gone": "bad",
    "failed": "bad",
    "stuck": "bad",
    "retrying": "warning",
    "leftover": "bad",
    "starting": "accent",
}
OVER = ("gone", "ended", "defunct", "dead")  # nothing of it runs or holds memory any more
SORTS = ("pid", "role", "state", "age", "cpu", "mem", "shared", "gpu", "command")
LARGEST_FIRST = ("cpu", "mem", "shared", "gpu")
DRIVER_ALONE = "known to the driver alone: its pid is of outside"


@dataclass(slots=True)
class Row:
    """One line. More than one identity: `members` share it. `tone` is the role in which the
    state is shown. `other` is what is known of a process that is not of the live attempt, `group` its
    section, `user` its owner where that is not us. `context`: a filter does not find it, and it is
    shown for what is below it alone."""

    process: ProcessRow
    role: str
    state: str
    guides: str = ""
    keys: tuple[Key, ...] = ()
    gpu_mib: float | None = None
    rss_mib: float | None = None
    shared_mib: float | None = None
    cpu_percent: float | None = None
    tone: str = ""
    children: list[Row] = field(default_factory=list)
    members: tuple[Row, ...] = ()
    other: Other | None = None
    group: str = ""
    attempt: int = 0
    user: str = ""
    context: bool = False

    def __post_init__(self) -> None:
        self.tone = self.tone or STATE_ROLES.get(self.state, "quiet")

    @property
    def living(self) -> int:
        """How many of the processes of this line are more than a number that waits to be asked
        for."""
        if self.members:
            return sum(member.living for member in self.members)
        return len(self.keys) if self.state not in OVER else 0

    @property
    def barred(self) -> str:
        """Why it cannot be signalled from here; empty when it can."""
        if self.other is None:
            return ""
        return self.other.barred or ("" if self.other.starttime else DRIVER_ALONE)

    @property
    def proof(self) -> str:
        return self.other.proof if self.other else ""


def contains(row: Row, text: str) -> bool:
    """Whether the row is of what somebody looks for, by any word that stands in it."""
    if not text:
        return True
    where = f"{row.process.pid} {row.role} {row.state} {row.user} {row.process.command}"
    return text.lower() in where.lower()


def arrow(sort: str, backwards: bool) -> str:
    """Whether what is below is more or less."""
    return "▾" if (sort in LARGEST_FIRST) != backwards else "▴"


def place(process: ProcessRow) -> tuple[int, int, int, int, int]:
    """Where it stands among its like in the tree."""
    return (
        rank_of(process.role),
        -1 if process.rank is None else process.rank,
        -1 if process.worker is None else process.worker,
        process.pid,
        process.starttime,
    )


def _order(row: Row) -> tuple[int, int, int, int, int]:
    return place(row.process)


def rank_of(role: str) -> int:
    """The place of a role in the tree."""
    return PLACES.get(role, len(PLACES))


SORT_KEYS: dict[str, Callable[[Row], Any]] = {
    "pid": lambda row: (row.process.pid, row.process.starttime),
    "role": _order,
    "state": lambda row: (row.state, _order(row)),
    "age": lambda row: (-(row.process.started or 0.0), row.process.pid),
    "cpu": lambda row: (-(row.cpu_percent or 0.0), row.process.pid),
    "mem": lambda row: (-(row.rss_mib or 0.0), row.process.pid),
    "shared": lambda row: (-(row.shared_mib or 0.0), row.process.pid),
    "gpu": lambda row: (-(row.gpu_mib or 0.0), row.process.pid),
    "command": lambda row: (row.process.command, row.process.pid),
}
