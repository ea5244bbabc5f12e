"""What the readers' accounts say together: the grid of their states, and their rates. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bitwatch.record.events import Reader
from bitwatch.record.view import END_STATES, View

NEVER = "never"  # no account of this reader, and none to come
GONE_S = 5.0  # a sample this much newer than a reader's last word, without its process
SEVERITY = ("failed", "dead", "retrying", "idle", "starting", NEVER, "stopped", "reading", "done")


def grid(view: View) -> dict[int, list[tuple[int, str, Reader | None]]]:
    """(worker, state, account) by rank: every reader that there is or should be."""
    accounts = {(r.rank, r.worker): r for r in view.readers if r.loader == "train"}
    ranks = max(view.ranks, *(rank + 1 for rank, _ in accounts), 0) if accounts else view.ranks
    workers = max(view.workers, 1, *(worker + 1 for _, worker in accounts))
    if not accounts and not view.attempt:
        return {}
    alive = {row.key for row in view.processes}
    return {
        rank: [
            (
                worker,
                _state(view, accounts.get((rank, worker)), alive),
                accounts.get((rank, worker)),
            )
            for worker in range(workers)
        ]
        for rank in range(ranks)
    }


def _state(view: View, reader: Reader | None, alive: set[tuple[int, int]]) -> str:
    over = view.state in END_STATES
    if reader is None:
        return NEVER if over else "starting"
    if over and reader.state in ("reading", "starting"):
        return "stopped"
    if over or reader.state not in ("reading", "starting"):
        return reader.state
    vanished = (reader.pid, reader.starttime) not in alive and bool(alive)
    if vanished and view.sampled is not None and view.sampled > reader.t + GONE_S:
        return "dead"
    return "retrying" if reader.state == "reading" and reader.error else reader.state


def worst(states: Iterable[str]) -> str:
    return min(states, key=SEVERITY.index)


def shard_progress(view: View) -> dict[str, float]:
    """How much of each shard has been read in this epoch, the mean over those who read it;
    known only where the plan knows the rows and a reader has that shard alone."""
    data = view.plan.get("data") or {}
    rows = {
        (part["rank"], part["worker"]): part["rows"]
        for part in data.get("assignment") or ()
        if part.get("rows")
    }
    shares: dict[str, list[float]] = {}
    for reader in view.readers:
        expected = rows.get((reader.rank, reader.worker))
        if reader.loader == "train" and len(reader.shards) == 1 and expected and reader.rows:
            share = min(1.0, reader.rows / expected)
            shares.setdefault(str(reader.shards[0]), []).append(share)
    return {shard: sum(known) / len(known) for shard, known in shares.items()}


class Rates:
    """Samples a second of each rank, from successive accounts of its readers."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], tuple[float, int]] = {}
        self._rates: dict[tuple[int, int], float] = {}

    def take(self, view: View) -> None:
        for reader in view.readers:
            if reader.loader != "train":
                continue
            key = (reader.rank, reader.worker)
            before = self._last.get(key)
            if before == (reader.t, reader.samples):
                continue
            self._last[key] = (reader.t, reader.samples)
            self._rates.pop(key, None)
            if before and reader.t > before[0] and reader.samples >= before[1]:
                self._rates[key] = (reader.samples - before[1]) / (reader.t - before[0])

    def known(self) -> bool:
        return bool(self._rates)

    def of(self, rank: int) -> float | None:
        rates = [rate for (r, _), rate in self._rates.items() if r == rank]
        return sum(rates) if rates else None
