"""A plan as lines for a person: what `bitwatch plan` prints."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bitwatch.config import Config, bytes_per_sequence
from bitwatch.lines import data_words, model_words, wrapped
from bitwatch.plan.result import MemoryPlan, Plan
from bitwatch.text import counted, literal, number


def lines(config: Config, plan: Plan, width: int | None = None) -> Iterator[str]:
    model, data = plan.model, plan.data
    yield f"plan      {config.run.name}: {plan.verdict}"
    yield f"model     {model_words(model.asked, model.built, model.held)}"
    if model.flat_shard is not None:
        yield f"          ({model.flat_shard:,} is what FSDP1 would print after wrapping: a flat shard)"
    yield f"step      {_step(config)}"
    yield from _memory(plan.memory)
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


def _memory(memory: MemoryPlan) -> Iterator[str]:
    """By part, in a column."""
    small = (memory.per_gpu_gib.activations or 0) < 0.1
    yield f"memory    GiB of each GPU, fullest at the {memory.fullest_at}"
    for name, gib in msgspec.structs.asdict(memory.per_gpu_gib).items():
        line = f"          {name:<12} {number(gib, 3 if small else 2):>7}"
        if name == "total" and memory.capacity_gib is not None:
            verdict = "fits" if memory.fits else "does not fit"
            line += f"  of {memory.capacity_gib:.2f} ({literal(memory.gpu or '')}): {verdict}"
        elif name == "total":
            line += "  (no GPU to compare with: --gpu NAME)"
        yield line


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
