"""What the readers' accounts say together: the grid of their states, their rates and how far
they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bitwatch.record.events import Reader
from bitwatch.record.readers import Judged, Key
from bitwatch.record.view import View
from bitwatch.text import duration
from bitwatch.tui.reader_grid import Cell, Grid, cell

BUSY = ("reading", "waiting")
COMPARED = 8  # shards of a reader that are looked at for who else reads them
APART = 0.10  # of the foremost rank's share that another may lie behind unsaid
FRESH_S = 5.0  # a rate holds for so long after the last account, or for two of its accounts
BEGUN = 0.05  # of a share: before it a few rows make ranks look far apart


def grid(view: View, judged: Mapping[Key, Judged], now: float) -> Grid:
    """The readers by rank, each with the words that stand beside it."""
    several = shared(view)
    rows: Grid = {}
    for (rank, _), one in judged.items():
        rows.setdefault(rank, []).append(_cell(one, several, now))
    return rows


def _cell(one: Judged, several: set[Any], now: float) -> Cell:
    reader = one.reader
    if one.state == "stuck" and one.since is not None:
        still = duration(max(0.0, now - one.since))
        return Cell("stuck", f"since {still}", "bad", still)
    if reader is None or one.state not in (*BUSY, "done", "stopped"):
        return cell(one.state, [], "quiet")._replace(
            role="bad" if one.state in ("failed", "dead") else "quiet"
        )
    role = "text" if one.state in BUSY else "quiet"
    return cell(one.state, reader.shards, "warning" if several & _looked_at(reader) else role)


def shared(view: View) -> set[Any]:
    """Shards that readers of several ranks read now, as only as-is lets happen."""
    if (view.plan.get("data") or {}).get("mode") != "as-is":
        return set()
    ranks: dict[Any, int] = {}
    several = set()
    for reader in view.readers:
        if reader.loader != "train" or reader.state not in BUSY:
            continue
        for shard in _looked_at(reader):
            if ranks.setdefault(shard, reader.rank) != reader.rank:
                several.add(shard)
    return several


def _looked_at(reader: Reader) -> set[Any]:
    return set(reader.shards[:COMPARED])


def shard_progress(view: View) -> dict[str, float]:
    """How much of each shard has been read in this epoch, the mean over those who read it;
    known only where the plan knows the rows and a reader has that shard alone."""
    rows = _expected(view)
    shares: dict[str, list[float]] = {}
    for reader in view.readers:
        expected = rows.get((reader.rank, reader.worker))
        if reader.loader == "train" and len(reader.shards) == 1 and expected and reader.rows:
            share = min(1.0, reader.rows / expected)
            shares.setdefault(str(reader.shards[0]), []).append(share)
    return {shard: sum(known) / len(known) for shard, known in shares.items()}


def uneven(view: View) -> tuple[tuple[int, float], tuple[int, float]] | None:
    """The rank that is foremost in its text and the one that is least far, each with the share
    of its rows that it has read; None when they are close, or nobody knows: after the first
    epoch `datasets` may deal the shards out in another order."""
    if view.epoch and (view.plan.get("data") or {}).get("mode") == "as-is":
        return None
    rows = _expected(view)
    whole: dict[int, int] = {}
    read: dict[int, int] = {}
    for (rank, _), expected in rows.items():
        whole[rank] = whole.get(rank, 0) + expected
    for reader in view.readers:
        if reader.loader == "train":
            read[reader.rank] = read.get(reader.rank, 0) + reader.rows
    shares = [(rank, min(1.0, read.get(rank, 0) / total)) for rank, total in whole.items()]
    if len(shares) < 2:
        return None
    first, last = max(shares, key=lambda one: one[1]), min(shares, key=lambda one: one[1])
    if first[1] < BEGUN or first[1] - last[1] <= APART * first[1]:
        return None
    return first, last


def _expected(view: View) -> dict[Key, int]:
    """Rows that each reader keeps in an epoch, of the plan."""
    data = view.plan.get("data") or {}
    return {
        (part["rank"], part["worker"]): part["rows"]
        for part in data.get("assignment") or ()
        if part.get("rows")
    }


class Rates:
    """Samples and bytes a second of each reader, over the time since it made something before: one
    that reads in blocks makes thousands of samples at once, and then none for minutes."""

    def __init__(self) -> None:
        self._attempt = 0
        self._last: dict[Key, tuple[float, int, int]] = {}
        self._rates: dict[int, dict[int, tuple[float, float]]] = {}  # by rank, by worker
        self._hold: dict[Key, float] = {}  # until when, if nothing more comes
        self._time = 0.0
        self._judged: Mapping[Key, Judged] = {}

    def take(self, view: View, judged: Mapping[Key, Judged], now: float) -> None:
        """An account that no longer changes has no rate of its own: `judged` says whose do."""
        if view.attempt != self._attempt:
            self._attempt = view.attempt
            self._last.clear()
            self._rates.clear()
        self._judged, self._time = judged, now
        for reader in view.readers:
            if reader.loader != "train":
                continue
            key = (reader.rank, reader.worker)
            before = self._last.get(key)
            made = reader.samples, reader.bytes
            if before and before[1:] == made:
                continue
            self._last[key] = reader.t, *made
            of_rank = self._rates.setdefault(reader.rank, {})
            of_rank.pop(reader.worker, None)
            if before and reader.t > before[0] and reader.samples >= before[1]:
                seconds = reader.t - before[0]
                samples, text = reader.samples - before[1], reader.bytes - before[2]
                of_rank[reader.worker] = (samples / seconds, max(0, text) / seconds)
                self._hold[key] = reader.t + max(FRESH_S, 2 * seconds)

    def known(self) -> bool:
        return any(self._rates.values())

    def samples(self, rank: int) -> float | None:
        return _sum([rates[0] for rates in self._now(rank).values()])

    def text_bytes(self, rank: int) -> float | None:
        return _sum([rates[1] for rates in self._now(rank).values()])

    def of_reader(self, key: Key) -> float | None:
        """Bytes of text a second."""
        rates = self._now(key[0]).get(key[1])
        return rates[1] if rates else None

    def _now(self, rank: int) -> dict[int, tuple[float, float]]:
        """By worker; nothing comes of one that is done, stuck or gone, or has long been reading
        in vain. Of one that has waited for long nothing is wanted: the rank eats what there is,
        and how fast it does the next block will say."""
        found = {}
        for worker, rates in self._rates.get(rank, {}).items():
            one = self._judged.get((rank, worker))
            state = one.state if one is not None else ""
            if state in BUSY and self._time <= self._hold[rank, worker]:
                found[worker] = rates
            elif state != "waiting":
                found[worker] = 0.0, 0.0
        return found


def _sum(rates: list[float]) -> float | None:
    return sum(rates) if rates else None
