"""What can be wrong with a way of reading, as numbers that can be compared.

Everything that a correction promises to better is counted here, and nothing else: "auto" and
the corrections take a way of reading for these reasons alone. A plan without faults is left
as it is, also where an index would still have advantages (a resume under other ranks and
workers, another order of the text every epoch): they are not worth the disk and the wait to
somebody whose own plan already works. The exception is a shuffle buffer, which as-is never
finds again at a resume: that is a fault.
"""

from __future__ import annotations

from bitwatch import config as configuration
from bitwatch.plan import obstacles
from bitwatch.plan.facts import DataFacts
from bitwatch.plan.result import DataPlan
from bitwatch.text import counted

# Packed sequences are never quite equal between ranks, and ranks end an epoch together: below
# this much, what stays unread is not worth a warning.
UNEVEN_PERCENT = 1.0

Faults = tuple[float, ...]

NONE: Faults = (0, 0, 0, 1, 1, 0, 0)


def of(config: configuration.Config, facts: DataFacts, data: DataPlan) -> Faults:
    """The gravest first; at best NONE: copies and read amplification are 1 then."""
    uneven = data.imbalance_percent or 0.0
    return (
        int(cannot_work(config, facts, data)),
        len(ranks_without_data(data)) or int(data.steps_per_epoch == 0),
        data.readers_idle or 0,
        data.copies or 1,
        data.read_amplification or 1,
        uneven if uneven >= UNEVEN_PERCENT else 0.0,
        int(data.mode == "as-is" and config.data.shuffle > 0),  # its resume is never exact
    )


def trains(found: Faults) -> bool:
    """Whether the way of reading can be opened and has text for every rank."""
    return not (found[0] or found[1])


def fewer(better: Faults, than: Faults) -> bool:
    """Better in something and worse in nothing."""
    return better != than and all(a <= b for a, b in zip(better, than, strict=True))


def cannot_work(config: configuration.Config, facts: DataFacts, data: DataPlan) -> bool:
    """Whether the mode will fail, or may well, with this source on this disk."""
    if data.mode == "as-is":
        # datasets 5.2 ends such a stream with "BatchSize must be greater than 0".
        return any(shard.rows == 0 for shard in facts.shards)
    if data.mode == "reshard":
        return data.readers_busy is None and facts.format != "parquet"
    return obstacles.index(config, facts) is not None


def ranks_without_data(data: DataPlan) -> list[int]:
    """Ranks that no row is dealt out to. In mode indexed sequences are, whatever row they are
    of."""
    if data.mode == "indexed":
        return []
    return [rank for rank, rows in enumerate(data.rows_per_rank or ()) if not rows]


def trouble(config: configuration.Config, facts: DataFacts, as_is: DataPlan) -> str:
    """What as-is would do badly, as half a sentence; "" when nothing."""
    shards = counted(as_is.num_shards or 0, "shard")
    if cannot_work(config, facts, as_is):
        return "a file without rows would break the stream"
    if as_is.readers_idle:
        return f"{shards} would leave {as_is.readers_idle} of {as_is.readers} readers idle"
    if as_is.split == "examples" and as_is.ranks > 1:
        return f"{shards} over {as_is.ranks} ranks would have every rank read everything"
    if empty := ranks_without_data(as_is):
        return f"{shards} would leave {counted(len(empty), 'rank')} without data"
    if as_is.steps_per_epoch == 0:
        return f"{shards} would leave some rank without enough text for a step"
    if (as_is.imbalance_percent or 0.0) >= UNEVEN_PERCENT:
        return f"the ranks' shares of {shards} would be {as_is.imbalance_percent:.0f} % apart"
    if config.data.shuffle:
        return "what a shuffle buffer holds is lost at a resume"
    return ""


def left(config: configuration.Config, facts: DataFacts, data: DataPlan) -> list[str]:
    """What is still wrong with a correction, a few words each."""
    _, empty, idle, copies, amplification, uneven, inexact = of(config, facts, data)
    words = {
        "some rank still has not enough text for a step": empty,
        f"{idle:.0f} readers stay idle": idle,
        "every rank still trains on everything": copies > 1,
        "every rank still reads everything": amplification > 1 and copies == 1,
        f"the ranks' shares are still {uneven:.0f} % apart": uneven,
        "a resume is still never exact": inexact,
    }
    return [text for text, holds in words.items() if holds]
