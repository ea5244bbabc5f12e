"""Other ways of reading that are better than the one planned, the best first.

Each is better in something that `faults` counts and worse in nothing, and what would not train
is none. Ranked by what is still wrong with them, then by how much they keep: indexed, reshard,
fewer workers, and last what a person must do first. The first that can be launched is recommended, and is what "auto" takes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from bitwatch import config as configuration
from bitwatch.config import changed
from bitwatch.plan import faults, more_files, obstacles, reading, resume, sharding
from bitwatch.plan.facts import DataFacts
from bitwatch.plan.result import Correction, DataPlan
from bitwatch.text import counted, size

Changes = dict[str, str | int]

NAMED_SHARDS = 2000  # that the assignment of a correction may name: there are several of them


class Found(NamedTuple):
    """`why_not`: half a sentence, where it is not the recommended one. `cost`: bytes that are
    written first, and seconds."""

    id: str
    changes: Changes
    data: DataPlan
    does: str
    why_not: str = ""
    cost: tuple[int, float] = (0, 0.0)


def corrections(config: configuration.Config, facts: DataFacts, data: DataPlan) -> list[Correction]:
    """Of the plan `data`, that was made of `config`."""
    if data.num_shards is None:
        return []
    now = settled(config, data)
    faults_now = faults.of(now, facts, data)
    if faults_now == faults.NONE or (data.readers_busy is None and not faults_now[0]):
        return []  # nothing to better, or nobody knows what to compare with
    found = []
    for one in (_indexed, _reshard, _fewer_workers, _more_files):
        if (offered := one(now, facts, data)) is None:
            continue
        then = changed(now, offered.changes)
        # New files are none of those that the facts are about.
        faults_then = faults.of(then, facts if offered.changes else DataFacts(), offered.data)
        if offered.changes and not faults.trains(faults_then):
            continue
        if faults.fewer(faults_then, faults_now):
            found.append((not offered.changes, faults_then, offered, then))
    found.sort(key=lambda one: one[:2])
    made: list[Correction] = []
    for by_hand, _, offered, then in found:
        made.append(_correction(offered, not made and not by_hand, facts, now, then))
        if config.data.sharding in ("ask", "auto") and not by_hand:
            # Else the mode would be left open again with the changes.
            made[-1].changes = {"data.sharding": data.mode, **offered.changes}
    return made


def settled(config: configuration.Config, data: DataPlan) -> configuration.Config:
    """The configuration with what the plan has decided where "ask" or "auto" left it open."""
    return changed(config, {"data.sharding": data.mode, "data.workers": data.workers_per_rank})


def workers_without_idle(data: DataPlan) -> int:
    """The most workers of each rank that leave no reader idle in the plan's mode."""
    number = data.num_shards or 0
    if data.mode == "as-is":
        return sharding.workers_without_idle(number, data.ranks, data.workers_per_rank)
    most = number // data.ranks if data.mode == "reshard" else data.steps_per_epoch
    return max(1, min(data.workers_per_rank, data.workers_per_rank if most is None else most))


# ---------------------------------------------------------------------------------------
# Kinds


def _indexed(config: configuration.Config, facts: DataFacts, data: DataPlan) -> Found | None:
    if data.mode == "indexed" or obstacles.index(config, facts) is not None:
        return None
    bytes_ = obstacles.index_bytes(facts)
    wait_s = obstacles.index_s(facts)
    cost = f"{size(bytes_)} are written first, in about {wait_s:.0f} s"
    measured = facts.cache is not None and facts.cache.bytes_per_s
    if not measured and any("://" in shard.name for shard in facts.shards[:1]):
        cost += " and the time of the download"
    return Found(
        "indexed",
        {"data.sharding": "indexed"},
        reading.plan(config, facts, "indexed", NAMED_SHARDS),
        "The text is read from one flat file in a seeded order: every sequence once an epoch, "
        "the same number of steps on every rank, an exact resume under any ranks and workers; "
        + (cost if bytes_ else "the file is already there"),
        cost=(bytes_, wait_s),
    )


def _reshard(config: configuration.Config, facts: DataFacts, data: DataPlan) -> Found | None:
    if data.mode == "reshard" or obstacles.reshard(facts, data.readers) is not None:
        return None
    better = reading.plan(config, facts, "reshard", NAMED_SHARDS)
    return Found(
        "reshard",
        {"data.sharding": "reshard"},
        better,
        f"The {counted(better.num_shards or 0, 'row group')} of the files are dealt out by size: "
        "each reader reads its own, nothing twice, and nothing is written first",
        "a resume needs the same ranks and workers, and ranks may be some steps apart",
    )


def _fewer_workers(config: configuration.Config, facts: DataFacts, data: DataPlan) -> Found | None:
    workers = workers_without_idle(data)
    if not data.readers_idle or workers >= data.workers_per_rank:
        return None
    changes: Changes = {"data.workers": workers}
    better = reading.plan(changed(config, changes), facts, data.mode, NAMED_SHARDS)
    if better.readers_idle:
        return None
    return Found(
        "fewer-workers",
        changes,
        better,
        f"{counted(workers, 'worker')} for each rank instead of {data.workers_per_rank}: the "
        f"{counted(better.readers_busy or 0, 'reader')} with something to read stay, the idle "
        "ones are not started",
        "it adds no reader",
    )


def _more_files(config: configuration.Config, facts: DataFacts, data: DataPlan) -> Found | None:
    if data.mode == "indexed":
        return None
    better = more_files.plan(config, facts, data, NAMED_SHARDS)
    if better is None:
        return None
    return Found(
        "more-files",
        {},
        better,
        f"The text in {better.readers} equal files, one for each reader. "
        + more_files.how(config, facts, better.readers).removesuffix("."),
        cost=more_files.cost(facts),
    )


# ---------------------------------------------------------------------------------------
# One of them, whole


def _correction(
    found: Found,
    recommended: bool,
    facts: DataFacts,
    now: configuration.Config,
    then: configuration.Config,
) -> Correction:
    data, by_hand = found.data, not found.changes
    left = [] if by_hand else faults.left(then, facts, data)
    if by_hand:
        reason = "Not recommended: somebody must write them first."
    elif recommended and left:
        reason = f"The best that can be launched, though {left[0]}."
    elif recommended:
        reason = "Recommended: nothing is wrong with it."
    else:
        reason = f"Not recommended: {left[0] if left else found.why_not}."
    return Correction(
        id=found.id,
        recommended=recommended,
        workers_per_rank=data.workers_per_rank,
        num_shards=data.num_shards or 0,
        readers_busy=data.readers_busy or 0,
        readers_idle=data.readers_idle or 0,
        copies=data.copies or 1,
        read_amplification=data.read_amplification or 1,
        resume="new-epoch" if by_hand else _resume(now, then),
        prepare_bytes=found.cost[0],
        prepare_s=found.cost[1],
        changes=found.changes,
        why=f"{found.does}. {reason}",
        data=data,
    )


def _resume(now: configuration.Config, then: configuration.Config) -> Literal["exact", "new-epoch"]:
    """Whether a run that is under way finds its place in the text again."""
    lost = resume.differences(resume.order(now), resume.order(then))
    return "new-epoch" if lost or not resume.is_exact(then) else "exact"
