"""What is wrong with a plan, in sentences for somebody who reads them at night.

Each says what is so, with its numbers, what it costs, and what it does not do; `next` is the
remedy. Only remedies that work in this version are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch import config as configuration
from bitwatch.plan import modes
from bitwatch.plan.facts import DataFacts, DeviceFacts, FactError, Facts
from bitwatch.plan.result import Correction, DataPlan, ModelPlan, Problem, Severity

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


def about_mode(config: configuration.Config, facts: DataFacts, data: DataPlan) -> Iterator[Problem]:
    """Why the text cannot be read in the mode that the plan has."""
    if data.num_shards is None:
        return
    if data.mode == "reshard" and data.readers_busy is None:
        if facts.format == "parquet":
            yield Problem(
                id="row-groups-unknown",
                severity="warning",
                text="The row groups of the files could not all be looked at in time: who will "
                "read what, and steps per epoch, are not known.",
                next="Nothing need be done: the ranks look at all of them when they start.",
            )
        else:
            yield Problem(
                id="reshard-needs-parquet",
                severity="error",
                text='data.sharding = "reshard" deals out the row groups of parquet files, and '
                f"{config.data.source} has {facts.format or 'another kind of'} files.",
                next="Use --sharding indexed, which reads any kind, or write the text as parquet.",
            )
    elif data.mode == "indexed" and (obstacle := modes.index_obstacle(config, facts)):
        yield Problem(
            id="index-too-large",
            severity="warning",
            text=f'data.sharding = "indexed" may have no room: {obstacle}.',
            next="Name a larger disk (data.cache), or use --sharding reshard.",
        )
    elif data.mode == "as-is":
        for shard in facts.shards:
            if shard.rows == 0:
                # datasets 5.2 ends such a stream with "BatchSize must be greater than 0".
                yield Problem(
                    id="data-unusable",
                    severity="error",
                    text=f"data.source: {shard.name} has no rows, which breaks the stream.",
                    next="Take it out, or use --sharding indexed.",
                )
                return


def about_data(data: DataPlan, corrections: Sequence[Correction] = ()) -> Iterator[Problem]:
    """What is wrong with how the text reaches the ranks. `corrections`: of the same plan, named
    as remedies."""
    if data.num_shards is None:
        return
    modes_offered = [found.id for found in corrections if found.id in ("indexed", "reshard")]
    remedy = f"use --sharding {' or '.join(modes_offered)}" if modes_offered else ""
    yield from _idle_readers(data, remedy)
    yield from _everybody_reads(data, remedy)
    yield from _ranks_without_data(data)
    yield from _uneven(data, remedy)


def _idle_readers(data: DataPlan, remedy: str) -> Iterator[Problem]:
    if not data.readers_idle or data.num_shards is None:
        return
    workers = modes.workers_without_idle(data)
    yield Problem(
        id="workers-exceed-shards",
        severity="warning",
        text=(
            f"{data.readers_idle} of {data.readers} readers will be idle: "
            f"{_shards(data)} for {count(data.ranks, 'rank')} x "
            f"{count(data.workers_per_rank, 'worker')}. Idle workers hold memory and read "
            "nothing; this alone does not hang a run."
        ),
        next=_either(
            remedy,
            f"take as many workers as have something to read (--set data.workers={workers})",
            "" if remedy else f"write the text into at least {data.readers} {_parts(data)}",
        ),
    )


def _everybody_reads(data: DataPlan, remedy: str) -> Iterator[Problem]:
    if data.mode != "as-is" or data.ranks == 1 or data.split not in ("none", "examples"):
        return
    shards = _shards(data)
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
    multiple = -(-(data.num_shards or 0) // data.ranks) * data.ranks
    yield Problem(
        id="every-rank-reads-everything",
        severity="warning",
        text=text,
        next=_either(
            remedy,
            f"write the text into {multiple} files of equal size or another multiple of "
            f"{data.ranks}: then each rank reads only its own",
        ),
    )


def _ranks_without_data(data: DataPlan) -> Iterator[Problem]:
    empty = [rank for rank, rows in enumerate(data.rows_per_rank or ()) if not rows]
    if empty and data.mode != "indexed":  # which deals out sequences, whatever row they are of
        who = f"rank {empty[0]}" if len(empty) == 1 else f"{len(empty)} of {data.ranks} ranks"
        yield Problem(
            id="rank-without-data",
            severity="error",
            text=(
                f"There is no text for {who}: {count(data.rows or 0, 'row')} in "
                f"{_shards(data)} for {data.ranks} ranks."
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


def _uneven(data: DataPlan, remedy: str) -> Iterator[Problem]:
    rows = data.rows_per_rank
    if rows is None or not all(rows) or (data.imbalance_percent or 0) < modes.UNEVEN_PERCENT:
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
        next=_either(remedy or f"write the text into {_parts(data)} of equal size"),
    )


def _shards(data: DataPlan) -> str:
    return count(data.num_shards or 0, "row group" if data.mode == "reshard" else "shard")


def _parts(data: DataPlan) -> str:
    return "row groups" if data.mode == "reshard" else "files"


def _either(*ways: str) -> str:
    """The ways there are, as one sentence."""
    text = ", or ".join(way for way in ways if way)
    return f"{text[0].upper()}{text[1:]}."


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
