"""What is wrong with a plan, in sentences for somebody who reads them at night.

Each says what is so, with its numbers, what it costs, and what it does not do; `next` is the
remedy. Only remedies that work in this version are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch import config as configuration
from bitwatch.plan import sharding
from bitwatch.plan.facts import DeviceFacts, FactError, Facts
from bitwatch.plan.result import DataPlan, ModelPlan, Problem, Severity

# Packed sequences are never quite equal between ranks, and ranks end an epoch together: below
# this much, what stays unread is not worth a warning.
UNEVEN_PERCENT = 1.0
NAMED_RANKS = 8  # a sentence with the rows of more ranks than this cannot be read


def about_facts(facts: Facts) -> Iterator[Problem]:
    """Parts that could not be looked at, and sources that cannot be used."""
    if facts.error:
        yield _gap("inspection-failed", "error", facts.error)
    if facts.model and facts.model.error:
        yield _gap("model-unusable", "error", facts.model.error)
    if facts.data and facts.data.error:
        if facts.data.error.kind == "unusable":
            yield _gap("data-unusable", "error", facts.data.error)
        else:
            unknown = "So shards, rows and steps per epoch are not known."
            yield _gap("data-unknown", "warning", facts.data.error, unknown)
    elif facts.data is None or facts.data.num_shards is None:
        yield Problem(
            id="data-unknown",
            severity="warning",
            text="Nobody has looked at the data: shards, rows and steps per epoch are not known.",
            next="Run bitwatch plan with this configuration where the data is.",
        )


def about_model(model: ModelPlan, ranks: int) -> Iterator[Problem]:
    if model.asked is None or model.built is None or model.asked == model.built:
        return
    if model.asked == model.flat_shard:
        detail = f"the number is one rank's share of it ({model.built:,} / {ranks})"
    else:
        percent = 100 * abs(model.built - model.asked) / model.asked
        detail = f"{percent:.3g} % {'fewer' if model.built < model.asked else 'more'}"
    yield Problem(
        id="parameters-differ",
        severity="error",
        text=(
            f"The model has {model.built:,} parameters, not the {model.asked:,} that "
            f"model.expected_parameters asks for: {detail}."
        ),
        next=(
            "Correct the shape under [model]; or, if this is the model you want, "
            f"--set model.expected_parameters={model.built}."
        ),
    )


def about_devices(
    config: configuration.Config, devices: DeviceFacts | None, *, launching: bool
) -> Iterator[Problem]:
    """More ranks than GPUs. With device "auto" the ranks then run on the CPU, so only
    "cuda" can lack any."""
    if devices is None or config.parallel.device != "cuda":
        return
    if devices.error:
        yield _gap("devices-unknown", "error" if launching else "warning", devices.error)
        return
    ranks, gpus = config.parallel.ranks, len(devices.gpus)
    if ranks <= gpus:
        return
    away = not gpus and not launching
    yield Problem(
        id="more-ranks-than-gpus",
        severity="warning" if away else "error",
        text=(
            f"{count(ranks, 'rank')} need{'s' if ranks == 1 else ''} {count(ranks, 'GPU')}, and "
            f"this machine has {gpus or 'none'}"
            + (": it could plan this training, not run it." if away else ".")
        ),
        next=(
            (f"--set parallel.ranks={gpus}, or " if gpus else "")
            + "--set parallel.device=cpu, or launch it on a machine with "
            + f"{count(ranks, 'GPU')}."
        ),
    )


def about_data(data: DataPlan) -> Iterator[Problem]:
    if data.num_shards is None:
        return
    yield from _idle_readers(data)
    yield from _everybody_reads(data)
    yield from _ranks_without_data(data)
    yield from _uneven(data)


def _idle_readers(data: DataPlan) -> Iterator[Problem]:
    if not data.readers_idle or data.num_shards is None:
        return
    workers = sharding.workers_without_idle(data.num_shards, data.ranks, data.workers_per_rank)
    yield Problem(
        id="workers-exceed-shards",
        severity="warning",
        text=(
            f"{data.readers_idle} of {data.readers} readers will be idle: "
            f"{count(data.num_shards, 'shard')} for {count(data.ranks, 'rank')} x "
            f"{count(data.workers_per_rank, 'worker')}. Idle workers hold memory and read "
            "nothing; this alone does not hang a run."
        ),
        next=(
            f"Take as many workers as have something to read (--set data.workers={workers}), "
            f"or write the text into at least {data.ranks * data.workers_per_rank} files."
        ),
    )


def _everybody_reads(data: DataPlan) -> Iterator[Problem]:
    if data.ranks == 1 or data.split not in ("none", "examples") or data.num_shards is None:
        return
    shards = count(data.num_shards, "shard")
    if data.split == "none":
        text = (
            f"Every rank trains on the same text: nothing splits {shards} over "
            f"{data.ranks} ranks, so each row is trained on {data.copies} times an epoch."
        )
    else:
        text = (
            f"Every rank reads everything: {shards} cannot be dealt out evenly to "
            f"{data.ranks} ranks, so each reads and decodes all rows and keeps one in "
            f"{data.ranks}. That is {data.read_amplification} times the reading; no text is "
            "trained on twice."
        )
    multiple = -(-data.num_shards // data.ranks) * data.ranks
    yield Problem(
        id="every-rank-reads-everything",
        severity="warning",
        text=text,
        next=(
            f"Write the text into {multiple} files of equal size, or another multiple of "
            f"{data.ranks}: then each rank reads only its own."
        ),
    )


def _ranks_without_data(data: DataPlan) -> Iterator[Problem]:
    empty = [rank for rank, rows in enumerate(data.rows_per_rank or ()) if not rows]
    if empty:
        who = f"rank {empty[0]}" if len(empty) == 1 else f"{len(empty)} of {data.ranks} ranks"
        yield Problem(
            id="rank-without-data",
            severity="error",
            text=(
                f"There is no text for {who}: {count(data.rows or 0, 'row')} in "
                f"{count(data.num_shards or 0, 'shard')} for {data.ranks} ranks."
            ),
            next=f"Give it more text, or fewer ranks (--set parallel.ranks={data.ranks - len(empty)}).",
        )
    elif data.steps_per_epoch == 0:
        yield Problem(
            id="rank-without-data",
            severity="warning",
            text=(
                "The text seems too small for one step: some rank gets fewer packed sequences "
                "in a whole epoch than one step takes from it."
            ),
            next="Give it more text, or lower train.batch or model.context.",
        )


def _uneven(data: DataPlan) -> Iterator[Problem]:
    rows = data.rows_per_rank
    if rows is None or not all(rows) or (data.imbalance_percent or 0) < UNEVEN_PERCENT:
        return
    detail = f" (rows: {_few(rows)})" if len(rows) <= NAMED_RANKS else ""
    yield Problem(
        id="uneven-batches",
        severity="warning",
        text=(
            "Ranks get unequal amounts of text: the smallest share is "
            f"{data.imbalance_percent:.0f} % below the largest{detail}. The epoch ends on all "
            "ranks when the first has no more, and what the others have left stays unread."
        ),
        next="Write the text into files of equal size.",
    )


def _gap(id_: str, severity: Severity, error: FactError, consequence: str = "") -> Problem:
    text = error.text if error.text.endswith(".") else f"{error.text}."
    return Problem(
        id=id_, severity=severity, text=f"{text} {consequence}".rstrip(), next=error.next
    )


def _few(numbers: Sequence[int]) -> str:
    return " / ".join(f"{number:,}" for number in numbers)


def count(number: int, noun: str) -> str:
    """1 shard, 2 shards"""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
