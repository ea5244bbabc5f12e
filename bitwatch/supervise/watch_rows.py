"""Which processes of a picture count for the live attempt. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bitwatch.record.view import ProcessRow, View


def of_attempt(view: View) -> list[ProcessRow]:
    """Without what ended attempts have left, and without what that has started: it stands in the
    same sample, in the roles that it had."""
    known = {(left.pid, left.starttime) for left in view.leftovers}
    old = {row.pid for row in view.processes if row.key in known}
    old |= below(view.processes, old)
    return [row for row in view.processes if row.pid not in old]


def below(rows: Sequence[ProcessRow], tops: Collection[int]) -> set[int]:
    """The pids of those that `tops` have started, and so on."""
    if not tops:
        return set()
    children: dict[int, list[int]] = {}
    for row in rows:
        children.setdefault(row.ppid, []).append(row.pid)
    found: set[int] = set()
    due = list(tops)
    while due:
        new = set(children.get(due.pop(), ())) - found
        found |= new
        due += new
    return found
