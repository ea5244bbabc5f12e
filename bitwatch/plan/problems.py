"""What is wrong with a plan, in sentences for somebody who reads them at night.

Each begins with one sentence that says what is so, with its numbers, and stands alone in an
alert's line; what it costs and what it does not do follow. `next` is the remedy: a correction
that can be launched wherever there is one, which is one that works.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bitwatch import config as configuration
from bitwatch.plan import faults, obstacles
from bitwatch.plan.data_problems import either, launchable
from bitwatch.plan.facts import DataFacts, DeviceFacts, FactError, Facts
from bitwatch.plan.result import Correction, DataPlan, ModelPlan, Problem, Severity
from bitwatch.text import counted


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
            f"{counted(ranks, 'rank')} need{'s' if ranks == 1 else ''} {counted(ranks, 'GPU')}, and "
            f"this machine has {gpus or 'none'}"
            + (": it could plan this training, not run it." if away else ".")
        ),
        next=(
            (f"--set parallel.ranks={gpus}, or " if gpus else "")
            + "--set parallel.device=cpu, or launch it on a machine with "
            + f"{counted(ranks, 'GPU')}."
        ),
    )


def about_mode(
    config: configuration.Config,
    facts: DataFacts,
    data: DataPlan,
    corrections: Sequence[Correction] = (),
) -> Iterator[Problem]:
    """Why the text cannot be read in the mode that the plan has."""
    if data.num_shards is None:
        return
    if data.mode == "reshard" and data.readers_busy is None and facts.format == "parquet":
        yield Problem(
            id="row-groups-unknown",
            severity="warning",
            text="The row groups of the files could not all be looked at in time: who will "
            "read what, and steps per epoch, are not known.",
            next="Nothing need be done: the ranks look at all of them when they start.",
        )
    if not faults.cannot_work(config, facts, data):
        return
    remedy = launchable(corrections)
    if data.mode == "reshard":
        yield Problem(
            id="reshard-needs-parquet",
            severity="error",
            text='data.sharding = "reshard" deals out the row groups of parquet files, and '
            f"{config.data.source} has {facts.format or 'another kind of'} files.",
            next=either(remedy or "write the text as parquet, or use --sharding as-is"),
        )
    elif data.mode == "indexed":
        yield Problem(
            id="index-too-large",
            severity="warning",
            text=f'data.sharding = "indexed" may have no room: {obstacles.index(config, facts)}.',
            next=either("name a larger disk (data.cache)", remedy),
        )
    else:
        empty = next(shard.name for shard in facts.shards if shard.rows == 0)
        yield Problem(
            id="data-unusable",
            severity="error",
            text=f"data.source: {empty} has no rows, which breaks the stream.",
            next=either(remedy, "take it out"),
        )


def _gap(id_: str, severity: Severity, error: FactError, consequence: str = "") -> Problem:
    text = error.text if error.text.endswith(".") else f"{error.text}."
    return Problem(
        id=id_, severity=severity, text=f"{text} {consequence}".rstrip(), next=error.next
    )
