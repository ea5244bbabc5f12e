"""All processes again and again, at the price of those that matter.

Listing /proc costs little, reading 2,000 stats much. So a look lists, and reads what is new
and what is ours; of all others a stat may be EVERYTHING_S old. Nothing is old that has a new
meaning: a pid that may have been given out again since the last look is read anew.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from bitwatch.sense.facts import Facts
from bitwatch.sense.stat import (
    Key,
    Stat,
    children_by_parent,
    descendants,
    parse_stat,
    pids,
    read_raw,
)

EVERYTHING_S = 5.0
TRIES = 3  # where others are hidden, one of ours is too for an instant, as it becomes a program


class Scanner(Facts):
    """`own`: after a look, the processes that were asked for and all below them, parents
    before children."""

    def __init__(self) -> None:
        super().__init__()
        self._table: dict[int, Stat] = {}
        self._raw: dict[int, bytes] = {}  # what the table's stats were made of
        self._refused: dict[int, int] = {}  # looks in which it was listed, but not to be seen
        self._fresh: set[int] = set()  # read in this look
        self._newest: int | None = None
        self._everything_read = -math.inf
        self._shape = 0  # changes when a process comes, goes, or gets another parent
        self._own_of: tuple[int, set[Key]] = (-1, set())  # shape and roots that gave `own`
        self._own_due: set[int] = set()
        self.own: dict[Key, Stat] = {}

    def look(self, own: Iterable[Key] = (), *, everything: bool = False) -> dict[int, Stat]:
        """Every process that can be seen, by pid; fresh are `own`, all below them, and the
        new ones, and with `everything` all."""
        roots = set(own)
        now = time.monotonic()
        everything = everything or now - self._everything_read >= EVERYTHING_S
        listed = pids()
        again = self._given_out_since(listed)  # after the listing, so that none slips between
        for pid in self._table.keys() - listed:
            self._drop(pid)
        for pid in self._refused.keys() - listed:
            del self._refused[pid]
        self._fresh = set()
        due = listed
        if not everything:
            closed = {pid for pid, times in self._refused.items() if times >= TRIES}
            known = self._table.keys() | closed
            watched = {pid for pid, _ in self.own.keys() | roots}
            due = (listed - known) | again | (watched & listed)
        self._read(due)
        while due := self._find_own(roots) - self._fresh:
            self._read(due)
        if everything:
            self._everything_read = now
            self.forget_all_but({stat.key for stat in self._table.values()})
        return dict(self._table)

    def _read(self, due: set[int]) -> None:
        self._fresh |= due
        for pid in due:
            raw = read_raw(f"/proc/{pid}/stat")
            if raw is not None and raw == self._raw.get(pid):
                continue  # as most processes do most of the time, it has done nothing
            stat = parse_stat(raw) if raw else None
            if raw is None or stat is None:
                self._drop(pid)
                self._refused[pid] = self._refused.get(pid, 0) + 1
            else:
                before = self._table.get(pid)
                if before is None or (before.ppid, before.starttime) != (stat.ppid, stat.starttime):
                    self._shape += 1
                self._raw[pid], self._table[pid] = raw, stat
                self._refused.pop(pid, None)

    def _drop(self, pid: int) -> None:
        self._shape += self._table.pop(pid, None) is not None
        self._raw.pop(pid, None)

    def _find_own(self, roots: set[Key]) -> set[int]:
        """Finds `own` by what is known, and returns the pids on which that depends: its own,
        and those of orphans. Whose parent is gone has another now, which may be ours."""
        table = self._table
        if self._own_of == (self._shape, roots):
            self.own = {key: table[key[0]] for key in self.own}
            return self._own_due
        self._own_of = self._shape, set(roots)
        children = children_by_parent(table)
        found = {pid for pid, start in roots if pid in table and table[pid].starttime == start}
        own = [table[pid] for pid in sorted(found)] + descendants(table, found, children)
        self.own = {stat.key: stat for stat in own}
        due = {stat.pid for stat in own}
        for parent in children.keys() - table.keys() - {0}:  # 0: it is outside the namespace
            due.update(children[parent])
        self._own_due = due
        return due

    def _given_out_since(self, listed: set[int]) -> set[int]:
        """The pids that may mean another process than at the last look. The kernel gives them
        out in turn, and says in /proc/loadavg which was the newest."""
        fields = (read_raw("/proc/loadavg") or b"").split()
        before, self._newest = self._newest, int(fields[4]) if len(fields) > 4 else None
        if before is None or self._newest is None:
            return set()
        if before <= self._newest:
            return {pid for pid in listed if before < pid <= self._newest}
        return {pid for pid in listed if pid > before or pid <= self._newest}
