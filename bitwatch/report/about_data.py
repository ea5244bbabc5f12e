"""Findings about how the text reaches the ranks: what the warning of too many dataloader workers
means, what it does not explain, and which remedies do not help."""

from __future__ import annotations

from collections.abc import Iterator

from bitwatch.attach.said import Said
from bitwatch.plan import refused, sharding
from bitwatch.report.about_model import ranks_of
from bitwatch.report.facts import Story, of_line
from bitwatch.report.model import Evidence, Finding
from bitwatch.text import counted

EVIDENCE_LINES = 4  # of one warning that is printed again and again
MOST = 50_000  # shards, workers or readers that are believed: each reader is gone through
NOT_EXPLAINED = (
    "What it does not explain: a run that makes no progress. With today's `datasets` the warning "
    "alone ends cleanly; that it stopped this run is not shown."
)
NEXT = (
    "bitwatch's corrections: --sharding reshard (row groups become shards) or --sharding indexed "
    "(one flat file, every sequence once, the same steps on every rank). `bitwatch plan` shows "
    "both with their effect."
)


def find(story: Story) -> Iterator[Finding]:
    """One for each plan that was warned of, whatever the number of times."""
    seen: dict[tuple[int, int, int | None], list[Evidence]] = {}
    for attempt in story.attempts:
        ranks, _ = ranks_of(story, attempt)
        for said in attempt.shards:
            workers, shards = _whole(said, "workers"), _whole(said, "shards")
            if workers is not None and shards is not None:
                seen.setdefault((shards, workers, ranks), []).append(of_line(said.line))
    for (shards, workers, ranks), evidence in seen.items():
        kept = evidence[:EVIDENCE_LINES]
        yield _exceed(shards, workers, ranks, kept)
        if ranks is not None:
            yield from _refused(shards, ranks, kept)


def _exceed(shards: int, workers: int, ranks: int | None, evidence: list[Evidence]) -> Finding:
    idle = max(0, workers - shards)
    why = [
        f"It means: on the rank that printed it {shards} of {workers} readers read and "
        f"{idle} idle. One process prints it; the idle readers of other ranks are silent."
    ]
    if ranks is not None and ranks > 1 and ranks * workers <= MOST:
        why.append(_over_all(shards, ranks, workers))
    why.append(NOT_EXPLAINED)
    each = (
        f"{ranks} ranks x {workers} workers"
        if ranks
        else f"the {counted(workers, 'worker')} of a rank"
    )
    return Finding(
        id="workers-exceed-shards",
        severity="warning",
        title=f"{counted(shards, 'shard')} for {each}: {idle} of the {workers} readers of the "
        "rank that warned idle",
        evidence=evidence,
        why=" ".join(why),
        next=NEXT,
    )


def _over_all(shards: int, ranks: int, workers: int) -> str:
    """What so many shards do on all ranks, without a split and with one."""
    without = sharding.assign(shards, ranks, workers, strategy="none")
    split = sharding.assign(shards, ranks, workers)
    text = (
        f"On {ranks} ranks x {workers} workers: without split_dataset_by_node every rank reads "
        f"everything, {without.copies} copies of each row are trained on, and "
        f"{without.idle} of {len(without.readers)} readers idle"
    )
    if split.split == "examples":
        return (
            f"{text}; with it every rank still reads everything and keeps each {_nth(ranks)} row, "
            f"{split.idle} of {len(split.readers)} readers idle, and the ranks may end at "
            "different steps, which a loop without an agreed end does not survive: at the end of "
            "an epoch, not at its start."
        )
    return (
        f"{text}; with it each rank reads its own {counted(shards // ranks, 'shard')}, "
        f"{split.idle} of {len(split.readers)} readers idle, and ranks whose files differ in "
        "size end at different steps, which a loop without an agreed end does not survive."
    )


def _refused(shards: int, ranks: int, evidence: list[Evidence]) -> Iterator[Finding]:
    """The two remedies that are often given. Each only where it does not help."""
    workers = min(4, shards // ranks)
    idle = sharding.assign(shards, ranks, workers).idle if workers else 0
    if workers == 0 or idle:
        gives = f"min(4, {shards} // {ranks}) = {counted(workers, 'worker')}"
        left = (
            "each rank then reads by itself between its steps, with nothing read ahead, and "
            "every rank still reads everything"
            if workers == 0
            else f"{counted(idle, 'reader')} would still idle"
        )
        yield _useless(refused.WORKERS, f"{gives}: {left}.", evidence)
    yield _useless(
        refused.SHARD,
        "shard() needs an index too, so this is a TypeError. With an index it selects a part of "
        f"the {counted(shards, 'shard')} there are; it cannot add any.",
        evidence,
    )


def _useless(remedy: str, why: str, evidence: list[Evidence]) -> Finding:
    return Finding(
        id="remedy-refused",
        severity="info",
        title=f"Does not help here: {remedy}",
        evidence=evidence[:1],
        why=why,
        next=NEXT,
    )


def _whole(said: Said, name: str) -> int | None:
    value = said.values.get(name)
    if not isinstance(value, int | float) or not 0 <= value <= MOST or value != int(value):
        return None
    return int(value)


def _nth(count: int) -> str:
    return {2: "second", 3: "third", 4: "fourth", 8: "eighth"}.get(count, f"{count}th")
