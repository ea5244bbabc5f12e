"""A plan as lines for a person: what `bitwatch plan` prints."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bitwatch.config import Config, bytes_per_sequence
from bitwatch.lines import data_words, model_words, wrapped
from bitwatch.plan.result import Correction, DataPlan, MemoryPlan, Plan
from bitwatch.text import counted, duration, literal, number, size

NAMED_RANKS = 16  # a line with the rows of more ranks than this cannot be read


def lines(config: Config, plan: Plan, width: int | None = None) -> Iterator[str]:
    model, data = plan.model, plan.data
    yield f"plan      {config.run.name}: {plan.verdict}"
    yield f"model     {model_words(model.asked, model.built, model.held)}"
    if model.flat_shard is not None:
        yield f"          ({model.flat_shard:,} is what FSDP1 would print after wrapping: a flat shard)"
    yield f"step      {_step(config)}"
    yield from _memory(plan.memory)
    words = f"{config.data.source}: {data_words(msgspec.to_builtins(data))}"
    yield from wrapped("data      ", words, width)
    if data.mode_reason:
        took = f'sharding = "{config.data.sharding}" takes {data.mode}'
        yield from wrapped("          ", f"{took}: {data.mode_reason}", width)
    yield from _shares(data)
    for problem in plan.problems:
        yield ""
        yield from wrapped(f"! {problem.severity:<7} ", problem.text, width)
        yield from wrapped("  next    ", problem.next, width)
    if plan.corrections:
        yield ""
        yield from _table(data, plan.corrections)
    for correction in plan.corrections:
        yield ""
        yield from _correction(correction, width)
    for remedy in plan.refused:
        yield ""
        yield from wrapped("  does not help here  ", remedy.remedy, width)
        yield from wrapped("          ", remedy.why, width)


def _shares(data: DataPlan) -> Iterator[str]:
    """What each rank gets, and how long an epoch is."""
    few = data.ranks <= NAMED_RANKS
    if data.rows_per_rank and few:
        yield f"          rows per rank {_numbers(data.rows_per_rank)}"
    if data.steps_per_epoch is None:
        return
    about = "about " if data.estimated else ""
    line = f"          an epoch is {about}{counted(data.steps_per_epoch, 'step')}"
    if data.hang_risk and data.steps_per_rank and few:
        line += f" (each rank alone {_numbers(data.steps_per_rank)})"
    yield line


def _table(data: DataPlan, corrections: list[Correction]) -> Iterator[str]:
    """The plan as it is, and with each correction."""
    head = ("corrections", "readers busy", "idle", "read", "steps", "to write", "resume")
    rows = [("  as it is", *_effect(data), "", "")]
    for one in corrections:
        first = "nothing"
        if one.prepare_bytes:
            first = f"{size(one.prepare_bytes)}, {duration(one.prepare_s)}"
        if not one.changes:
            first = f"{size(one.prepare_bytes)} by hand" if one.prepare_bytes else "by hand"
        mark = "* " if one.recommended else "  "
        rows.append((mark + one.id, *_effect(one.data), first, one.resume))
    for name, *cells, resume in (head, *rows):
        columns = (f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
        yield f"{name:<15}{'  '.join(columns)}  {resume}".rstrip()


WIDTHS = (12, 4, 4, 7, 17)  # of the columns after the name: 80 with the name and the last


def _effect(data: DataPlan) -> tuple[str, str, str, str]:
    steps = "n/a" if data.steps_per_epoch is None else f"{data.steps_per_epoch:,}"
    if data.readers_busy is None:
        return "n/a", "n/a", "n/a", steps
    busy = f"{data.readers_busy:,} of {data.readers:,}"
    return busy, f"{data.readers_idle:,}", f"{data.read_amplification}x", steps


def _correction(correction: Correction, width: int | None) -> Iterator[str]:
    """How to take it, and why one would. A line of Python stays whole, to be copied."""
    shown = {"data.sharding": "--sharding {}", "data.workers": "--set data.workers={}"}
    words = [shown[key].format(value) for key, value in correction.changes.items()]
    mark = "* " if correction.recommended else "  "
    yield f"{mark}{correction.id}{': ' if words else ''}{' '.join(words)}"
    before, _, rest = correction.why.partition("`")
    code, _, after = rest.partition("`")
    yield from wrapped("          ", before.strip(), width)
    if code:
        yield f"          {literal(code)}"
        yield from wrapped("          ", after.strip(), width)


def _numbers(numbers: list[int]) -> str:
    return " / ".join(f"{one:,}" for one in numbers)


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
        f"{config.parallel.ranks} ranks x {micro} x {counted(passes, 'pass')}"
    )
