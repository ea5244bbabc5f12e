"""A plan as lines for a person: what `bitwatch plan` prints."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bitwatch.config import Config, bytes_per_sequence
from bitwatch.lines import data_words, model_words, wrapped
from bitwatch.plan.result import Plan
from bitwatch.text import counted, literal


def lines(config: Config, plan: Plan, width: int | None = None) -> Iterator[str]:
    model, data = plan.model, plan.data
    yield f"plan      {config.run.name}: {plan.verdict}"
    yield f"model     {model_words(model.asked, model.built, model.held)}"
    if model.flat_shard is not None:
        yield f"          ({model.flat_shard:,} is what FSDP1 would print after wrapping: a flat shard)"
    yield f"step      {_step(config)}"
    yield f"data      {literal(config.data.source)}: {data_words(msgspec.to_builtins(data))}"
    if data.mode_reason:
        took = f'sharding = "{config.data.sharding}" takes {data.mode}'
        yield from wrapped("          ", f"{took}: {data.mode_reason}", width)
    if data.rows_per_rank:
        rows = " / ".join(f"{rows:,}" for rows in data.rows_per_rank)
        yield f"          rows per rank {rows}"
    if data.steps_per_epoch is not None:
        about = "about " if data.estimated else ""
        yield f"          an epoch is {about}{counted(data.steps_per_epoch, 'step')}"
    for problem in plan.problems:
        yield ""
        yield from wrapped(f"! {problem.severity:<7} ", problem.text, width)
        yield from wrapped("  next    ", problem.next, width)
    for correction in plan.corrections:
        mark = "recommended" if correction.recommended else "possible"
        yield ""
        text = f"{correction.id}: {correction.why} (resume: {correction.resume})"
        yield from wrapped(f"  {mark}: ", text, width)


def _step(config: Config) -> str:
    batch, micro = config.train.batch, config.train.micro_batch
    passes = batch // (micro * config.parallel.ranks)
    text_bytes = batch * bytes_per_sequence(config.model)
    return (
        f"{counted(batch, 'sequence')} of {config.model.context:,} bits, {text_bytes:,} bytes of text: "
        f"{config.parallel.ranks} ranks x {micro} x {counted(passes, 'pass')}".replace(
            "passs", "passes"
        )
    )
