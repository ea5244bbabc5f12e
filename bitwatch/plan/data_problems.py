"""What is wrong with how the text reaches the ranks, in sentences, as `problems` does it for the
rest of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bitwatch.plan import faults
from bitwatch.plan.result import Correction, DataPlan, Problem
from bitwatch.text import counted

NAMED_RANKS = 8  # a sentence with the steps of more ranks than this cannot be read


def about_data(data: DataPlan, corrections: Sequence[Correction] = ()) -> Iterator[Problem]:
    """What is wrong with how the text reaches the ranks. `corrections`: of the same plan, named
    as remedies."""
    if data.num_shards is None:
        return
    yield from _idle_readers(data, corrections)
    yield from _everybody_reads(data, corrections)
    yield from _ranks_without_data(data, corrections)
    yield from _uneven(data, corrections)


def _idle_readers(data: DataPlan, corrections: Sequence[Correction]) -> Iterator[Problem]:
    if not data.readers_idle or data.steps_per_epoch == 0:
        return
    idle = f"{data.readers_idle} of {data.readers} readers idle"
    readers = f"{counted(data.ranks, 'rank')} x {counted(data.workers_per_rank, 'worker')}"
    if data.mode == "indexed":
        text = (
            f"{idle}: an epoch of {counted(data.steps_per_epoch or 0, 'step')} for {readers}. "
            "Workers read whole steps; those without one are started for nothing."
        )
    elif _reads_everything(data):
        text = (
            f"{idle} and every rank reads everything: {_shards(data)} for {readers}. "
            f"Idle workers are started for nothing, and {_drops(data)}."
        )
    else:
        text = (
            f"{idle}: {_shards(data)} for {readers}. Idle workers are started for nothing: "
            f"{data.readers_busy} do the work of {data.readers}."
        )
    parts = "row groups" if data.mode == "reshard" else "files of equal size"
    yield Problem(
        id="workers-exceed-shards",
        severity="warning",
        text=f"{text} This alone does not hang a run.",
        next=either(
            launchable(corrections, lambda then: not then.readers_idle)
            or f"write the text into {data.readers} {parts}, or a multiple of it"
        ),
    )


def _everybody_reads(data: DataPlan, corrections: Sequence[Correction]) -> Iterator[Problem]:
    if not _reads_everything(data):
        return
    shards = _shards(data)
    if data.split == "none":
        text = (
            f"Every rank trains on the same text: nothing splits {shards} over "
            f"{data.ranks} ranks. Each row is trained on {data.copies} times an epoch."
        )
    else:
        text = (
            f"Every rank reads everything: {shards} cannot be dealt out evenly to "
            f"{data.ranks} ranks. {_drops(data)[0].upper()}{_drops(data)[1:]}: "
            f"{data.read_amplification} times the reading. No text is trained on twice, and "
            "this alone does not hang a run."
        )
    yield Problem(
        id="every-rank-reads-everything",
        severity="warning",
        text=text,
        next=either(
            launchable(corrections, lambda then: then.read_amplification == then.copies == 1)
            or f"write the text into {data.readers} files of equal size, or a multiple of it: "
            "then each rank reads only its own"
        ),
    )


def _ranks_without_data(data: DataPlan, corrections: Sequence[Correction]) -> Iterator[Problem]:
    if empty := faults.ranks_without_data(data):
        who = f"rank {empty[0]}" if len(empty) == 1 else f"{len(empty)} of {data.ranks} ranks"
        fewer = data.ranks - len(empty)
        yield Problem(
            id="rank-without-data",
            severity="error",
            text=(
                f"There is no text for {who}: {counted(data.rows or 0, 'row')} in "
                f"{_shards(data)} for {data.ranks} ranks. All ranks step together, so none "
                "could take a step."
            ),
            next=either(
                launchable(corrections, lambda then: not faults.ranks_without_data(then))
                or "give it more text"
                + (f", or fewer ranks (--set parallel.ranks={fewer})" if fewer else "")
            ),
        )
    elif data.steps_per_epoch == 0:
        yield Problem(
            id="rank-without-data",
            severity="warning",
            text=(
                "The text seems too small for one step: some rank gets fewer sequences in an epoch "
                "than a step takes."
            ),
            next=either(
                launchable(corrections, lambda then: bool(then.steps_per_epoch)),
                "give it more text, or lower train.batch or model.context",
            ),
        )


def _uneven(data: DataPlan, corrections: Sequence[Correction]) -> Iterator[Problem]:
    percent = data.imbalance_percent or 0.0
    if percent < faults.UNEVEN_PERCENT or faults.ranks_without_data(data):
        return
    text = (
        f"Ranks get unequal amounts of text: the smallest share is {percent:.0f} % below the "
        "largest."
    )
    if data.steps_per_rank and len(data.steps_per_rank) <= NAMED_RANKS:
        text += f" Alone they would take {_few(data.steps_per_rank)} steps an epoch."
    elif data.rows_per_rank and len(data.rows_per_rank) <= NAMED_RANKS:
        text += f" Their rows: {_few(data.rows_per_rank)}."
    ends = (
        "end the epoch together, when the first has no more, and what the others have left "
        "stays unread."
    )
    if data.hang_risk is False:
        text += f" The ranks {ends}"
    else:
        hangs = "would" if data.hang_risk else "may"
        text += f" A loop without an agreed end {hangs} hang here; bitwatch's ranks {ends}"
    yield Problem(
        id="uneven-batches",
        severity="warning",
        text=text,
        next=either(
            launchable(
                corrections,
                lambda then: (then.imbalance_percent or 0.0) < faults.UNEVEN_PERCENT,
            )
            or f"write the text into {_parts(data)} of equal size"
        ),
    )


def _reads_everything(data: DataPlan) -> bool:
    return data.mode == "as-is" and data.ranks > 1 and data.split in ("none", "examples")


def _drops(data: DataPlan) -> str:
    if data.split == "none":
        return f"every row is trained on {data.copies} times"
    return f"each rank decodes all data and drops {data.ranks - 1} of {data.ranks} rows"


def _shards(data: DataPlan) -> str:
    return counted(data.num_shards or 0, "row group" if data.mode == "reshard" else "shard")


def _parts(data: DataPlan) -> str:
    return "row groups" if data.mode == "reshard" else "files"


def _few(numbers: Sequence[int]) -> str:
    return " / ".join(f"{number:,}" for number in numbers)


def launchable(
    corrections: Sequence[Correction], helps: Callable[[DataPlan], bool] = lambda _: True
) -> str:
    """The corrections that can be launched and help, as words; "" where there are none."""
    modes, words = [], []
    for correction in corrections:
        if not correction.changes or not helps(correction.data):
            continue
        if correction.id == "fewer-workers":
            workers = correction.workers_per_rank
            words.append(f"start only the workers that read (--set data.workers={workers})")
        else:
            modes.append(correction.id)
    if modes:
        words.insert(0, f"use --sharding {' or '.join(modes)}")
    return ", or ".join(words)


def either(*ways: str) -> str:
    """The ways there are, as one sentence."""
    text = ", or ".join(way for way in ways if way)
    return f"{text[0].upper()}{text[1:]}."
