"""Alerts about who reads what, from the readers' own accounts and the ranks' step records.

What the plan foresaw is raised by `watch`; an alert of the same id here adds what came of it.
No text changes while nothing happens: each change is a line in the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bitwatch.plan.cures import cures
from bitwatch.record import events, readers
from bitwatch.record.readers import Judged
from bitwatch.record.view import View
from bitwatch.text import clock

SHOWN = 4  # readers or shards in a sentence
LISTED = 16  # in the evidence
UNREAD_SHARE = 0.05  # of a rank's text: less is within what a plan can estimate


def about_readers(view: View, now: float, waiting: Mapping[int, float]) -> Iterator[events.Alert]:
    """`waiting`: the level of waiting for data of each rank that is at one."""
    found = readers.judged(view, now)
    yield from idle(view, found)
    yield from everybody_reads(view, found)
    yield from uneven(view)
    yield from starved(view, found, waiting)


def remedy(view: View, alert: str, otherwise: str) -> str:
    """The plan's recommended correction as words that also hold without a screen; `otherwise`
    where it has none that can be launched and ends the alert of this id."""
    for correction in view.plan.get("corrections", ()):
        changes = correction.get("changes")
        if (
            not changes
            or not correction.get("recommended")
            or correction.get("resume") == "refused"
        ):
            continue
        if cures(alert, correction.get("id", ""), correction.get("data") or {}):
            how = " ".join(_option(key, value) for key, value in changes.items())
            leave = "--new-epoch " if correction.get("resume") == "new-epoch" else ""
            run = view.run or "RUN"
            return (
                f"key R on the screen relaunches it with {_named(changes)}; or, once it is stopped: "
                f"bitwatch run --resume {run} {leave}{how}"
            )
    return otherwise


def idle(view: View, found: dict[readers.Key, Judged]) -> Iterator[events.Alert]:
    """Readers that say themselves that they were given nothing, whatever a library prints. Workers
    of an index take whole steps: what is left of an epoch after a resume may be too few for all,
    and the next epoch is not. Only its plan says who never has any."""
    data = view.plan.get("data") or {}
    indexed = data.get("mode") == "indexed"
    if indexed and not data.get("readers_idle"):
        return
    nothing, otherwise = "no shard", "use fewer workers per rank, or write the text into more files"
    if indexed:
        nothing, otherwise = "no step", "use fewer workers per rank (data.workers)"
    none = [(key, judged.reader) for key, judged in found.items() if judged.state == "idle"]
    if not none:
        return
    names = [_who(view, key) for key, _ in none]
    evidence = _listed(
        f"{name}: given {nothing} (pid {reader.pid})"
        for name, (_, reader) in zip(names, none, strict=True)
        if reader is not None
    )
    if any(problem.get("id") == "workers-exceed-shards" for problem in _problems(view)):
        # The plan has said what it costs and what to do: one alert, with what came of it.
        said = f"as they say themselves: {len(none)} of {len(found)} were given {nothing}"
        yield events.Alert(id="workers-exceed-shards", evidence=[said, *evidence])
        return
    yield events.Alert(
        id="idle-reader",
        severity="warning",
        text=f"{len(none)} of {len(found)} readers have nothing to read: {_few(names)}; the "
        "others do their work too, and this alone does not hang a run",
        evidence=evidence,
        next=remedy(view, "idle-reader", otherwise),
    )


def everybody_reads(view: View, found: dict[readers.Key, Judged]) -> Iterator[events.Alert]:
    """Ranks that were all given the same shards: each decodes everything."""
    given: dict[int, set[int | str]] = {}
    for (rank, _), judged in found.items():
        given.setdefault(rank, set()).update(judged.reader.shards if judged.reader else ())
    shards = given.get(0, set())
    same = len(given) > 1 and bool(shards) and all(each == shards for each in given.values())
    if not same or shards == {"index"}:
        return
    # From one epoch to the next the shards are dealt out anew, and for a moment one rank's new
    # ones may be another's old ones. All there are can only be everybody's.
    total = (view.plan.get("data") or {}).get("num_shards")
    if len(shards) != (total or 1 + max((s for s in shards if isinstance(s, int)), default=-1)):
        return
    ranks = len(given)
    yield events.Alert(
        id="every-rank-reads-everything",
        severity="warning",
        text=f"Every rank reads everything: {_count(len(shards), 'shard')} cannot be dealt out "
        f"evenly to {ranks} ranks, so each reads and decodes all rows and keeps one in {ranks}. "
        f"That is {ranks} times the reading; no text is trained on twice, and nothing hangs",
        evidence=_listed(
            f"shard {shard}: given to each of ranks 0 to {ranks - 1}"
            for shard in sorted(shards, key=str)
        ),
        next=remedy(
            view,
            "every-rank-reads-everything",
            f"write the text into files of equal size, {ranks} of them or a multiple of that",
        ),
    )


def uneven(view: View) -> Iterator[events.Alert]:
    """What the last epoch has left, by the word of the ranks."""
    newest = max((told.epoch for told in view.rank_epochs.values()), default=-1)
    left = [
        (told.unread / told.share, rank, told)
        for rank, told in view.rank_epochs.items()
        if told.epoch == newest and told.unread is not None and told.share
    ]
    if not left or max(left, key=lambda one: one[0])[0] < UNREAD_SHARE:
        return
    share, rank, told = max(left, key=lambda one: one[0])
    yield events.Alert(
        id="uneven-batches",
        severity="warning",
        text=f"epoch {newest} left {100 * share:.0f} % of rank {rank}'s text unread (about "
        f"{told.unread:,} of {told.share:,} sequences): it ends for all ranks when the first has "
        "no more; all took the same steps, and nothing hangs",
        evidence=_listed(
            f"rank {rank}: {told.unread:,} of {told.share:,} sequences unread in epoch {newest}"
            for _, rank, told in sorted(left, key=lambda one: one[1])
        ),
        next=remedy(view, "uneven-batches", "write the text into files of equal size"),
    )


def starved(
    view: View, found: dict[readers.Key, Judged], waiting: Mapping[int, float]
) -> Iterator[events.Alert]:
    """The worst of: a reader that is stuck, one that tries again, ranks that wait for data."""
    stuck = [(key, one) for key, one in found.items() if one.state == "stuck" and one.reader]
    again = [reader for reader in view.readers if reader.state == "reading" and reader.error]
    if stuck:
        yield _stuck(view, stuck)
    elif again:
        names = [f"rank {r.rank} {r.loader} reader {r.worker}" for r in again]
        yield events.Alert(
            id="data-starved",
            severity="warning",
            text=f"{names[0]}{_and_more(names)} cannot reach the text and will try again",
            evidence=[f"{name}: {r.error}" for name, r in zip(names, again, strict=True)],
            next="nothing need be done while it tries; look at the network or the disk",
        )
    else:
        yield from _waiting_ranks(view, waiting)


def _stuck(view: View, stuck: list[tuple[readers.Key, Judged]]) -> events.Alert:
    letters = {row.key: row.state for row in view.processes}
    told = []
    for key, judged in stuck:
        assert judged.reader is not None and judged.since is not None
        reader, since = judged.reader, clock(judged.since)
        halted = letters.get((reader.pid, reader.starttime), "") in readers.HALTED
        what = readers.shard_of(reader) or "its text"
        doing = (
            f"is stopped by a signal, at {what}; it last moved at {since}"
            if halted
            else f"has been in one read of {what} since {since}"
        )
        told.append((f"{_who(view, key)} {doing}", reader.pid, halted))
    sentence, pid, halted = told[0]
    return events.Alert(
        id="data-starved",
        severity="warning",
        text=f"{sentence}{', and ' + _count(len(told) - 1, 'more reader') if told[1:] else ''}; when "
        "what was read ahead is used up, its rank waits for it, and all ranks for that rank",
        evidence=_listed(f"{sentence} (pid {pid})" for sentence, pid, _ in told),
        next=f"kill -CONT {pid} lets it go on"
        if halted
        else "look at the disk or the network that the shard is on: the run goes on by itself when "
        "the read returns",
    )


def _waiting_ranks(view: View, waiting: Mapping[int, float]) -> Iterator[events.Alert]:
    if view.state != "running" or not waiting:
        return
    worst = max(waiting, key=lambda rank: waiting[rank])
    who = f"rank {worst} waits"
    if len(waiting) > 1:
        who = f"{len(waiting)} of {view.ranks} ranks wait for their text, rank {worst}"
    data = view.plan.get("data") or {}
    if data.get("mode") == "indexed" and view.workers:
        otherwise = "put data.cache on a faster disk, or use more workers (data.workers)"
    elif data.get("mode") == "indexed":
        otherwise = "read in processes of its own: --set data.workers=2"
    else:
        otherwise = "use --sharding indexed, more workers (data.workers), or a faster disk"
    yield events.Alert(
        id="data-starved",
        severity="warning",
        text=f"{who} for about {100 * waiting[worst]:.0f} % of each step or more"
        f"{'' if len(waiting) > 1 else ' for its text'}; nothing is computed meanwhile",
        evidence=_listed(
            f"rank {rank}: about {100 * level:.0f} % of a step or more, in the median of its "
            "recent step records"
            for rank, level in waiting.items()
        ),
        next=remedy(view, "data-starved", otherwise),
    )


# ---------------------------------------------------------------------------------------


def _problems(view: View) -> list[dict[str, Any]]:
    return view.plan.get("problems") or []


def _option(key: str, value: object) -> str:
    return f"--sharding {value}" if key == "data.sharding" else f"--set {key}={value}"


def _named(changes: dict[str, Any]) -> str:
    return ", ".join(f"{key.removeprefix('data.')} {value}" for key, value in changes.items())


def _who(view: View, key: readers.Key) -> str:
    rank, worker = key
    return f"rank {rank} worker {worker}" if view.workers else f"rank {rank}"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _and_more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if names[1:] else ""


def _listed(lines: Iterator[str] | list[str]) -> list[str]:
    every = list(lines)
    more = [f"and {len(every) - LISTED} more"] if len(every) > LISTED else []
    return [*every[:LISTED], *more]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
