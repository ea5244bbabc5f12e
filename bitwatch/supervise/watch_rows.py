"""Which processes of a picture count for the live attempt. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bitwatch.record.view import ProcessRow, View


def of_attempt(view: View) -> list[ProcessRow]:
    """Without what is of ended attempts, which stands in the same sample, in the roles that it
    had."""
    old = of_ended(view)
    return [row for row in view.processes if row.pid not in old]


def of_ended(view: View) -> set[int]:
    """The pids of what ended attempts have left, and of what that has started."""
    left = {start.pid for start in view.leftovers}
    return left | below(view.processes, left)


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
