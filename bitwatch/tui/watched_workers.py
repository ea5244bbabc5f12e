"""The dataloader workers of a training that bitwatch did not start: what the kernel alone can
tell of them. What they read, nobody has said. Pure."""

from __future__ import annotations

from bitwatch.record.view import ProcessRow, View
from bitwatch.text import counted
from bitwatch.tui.draw import Line, centred, fit
from bitwatch.tui.rows import LETTERS

UNKNOWN = "what they read is unknown"
GIB = 1024.0  # MiB


def lines(view: View, width: int, height: int) -> list[Line]:
    """What cannot be known; then a line a rank."""
    ranks = _by_rank(view)
    if not ranks:
        words = "no process of it is known" if not view.processes else "no worker is running"
        return centred(words, width, height)
    shown = [_rank(rank, rows) for rank, rows in ranks.items()]
    room = height - 1
    if len(shown) > room:
        shown = [
            *shown[: max(0, room - 1)],
            Line(f"and {len(shown) - room + 1} more ranks", "quiet"),
        ]
    space = [Line()] if height >= len(shown) + 2 else []
    return [line.cut(width) for line in (summary(view), *space, *shown)][:height]


def summary(view: View) -> Line:
    workers = [row for row in view.processes if row.role == "worker"]
    line = Line("workers ", "quiet").add(f"{len(workers):,}")
    if view.ranks:
        line.add(" of ", "quiet").add(counted(view.ranks, "rank"))
    return line.add("  ").add(UNKNOWN, "quiet") if workers else line


def _by_rank(view: View) -> dict[int, list[ProcessRow]]:
    found: dict[int, list[ProcessRow]] = {}
    for row in view.processes:
        if row.role in ("rank", "worker") and row.rank is not None:
            workers = found.setdefault(row.rank, [])
            if row.role == "worker":
                workers.append(row)
    return dict(sorted(found.items()))


def _rank(rank: int, workers: list[ProcessRow]) -> Line:
    """rank 0   2 workers   cpu 22 %   0.81 GiB   sleeping"""
    line = Line("rank ", "quiet").add(fit(str(rank), 3), "strong text")
    if not workers:
        return line.add(" no worker: it reads for itself", "quiet")
    cpu = sum(row.cpu_percent or 0.0 for row in workers)
    memory = sum(row.rss_mib or 0.0 for row in workers) / GIB
    line.add(fit(f" {counted(len(workers), 'worker')}", 13))
    line.add("cpu ", "quiet").add(f"{cpu:4.0f}").add(" %  ", "quiet")
    line.add(f"{memory:.2f}").add(" GiB  ", "quiet")
    odd = {LETTERS[row.state] for row in workers if row.state in "DTtZ" and row.state in LETTERS}
    return line.add(", ".join(sorted(odd)), "warning")
