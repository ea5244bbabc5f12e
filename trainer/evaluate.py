"""Validation: bits per byte of text that is never trained on.

Every rank scores its share of byte-aligned windows without overlap, the same windows every
time. They are read once, before the training: what is wrong with them is known at the start,
and no evaluation waits for a file.
"""

from __future__ import annotations

import dataclasses
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn

from bitwatch.record import events
from trainer import agreement, bits
from trainer import model as modelling
from trainer.data.stream import PackedRows
from trainer.failures import Failed
from trainer.parallel import Place


@dataclasses.dataclass(frozen=True)
class Validation:
    """This rank's windows, blocks of uint8 [up to a micro-batch, sequence_bytes]; every rank
    has as many blocks. of_bytes: of the validation text, None unless all of it was read."""

    blocks: list[Tensor]
    of_bytes: int | None


def read(stream: PackedRows, steps: int, place: Place) -> Validation:
    """Reads at most `steps` blocks of a rank's share. All ranks must call it.

    Raises Failed when the text cannot be read, or is too short for every rank.
    """
    blocks: list[Tensor] = []
    trouble = ""
    iterator = iter(stream)
    while len(blocks) < steps:
        block = next(iterator, None)
        if isinstance(block, str):
            trouble = block
        if not isinstance(block, Tensor):
            break
        blocks.append(block)
    ended = next(iterator, None) is None
    del iterator  # the reader then closes its account
    said = agreement.gather((len(blocks), ended, stream.bytes_read, trouble), place.control)
    counts, all_ended, bytes_read, troubles = zip(*said, strict=True)
    if any(troubles):
        raise Failed(agreement.by_rank("data.validation", troubles))
    count = min(counts)
    if not count:
        raise Failed("data.validation: holds less than one sequence for some rank; use more text")
    return Validation(blocks[:count], sum(bytes_read) if all(all_ended) else None)


def evaluate(
    model: nn.Module, validation: Validation, place: Place, step: int, parity: bool = False
) -> events.Evaluation:
    """Scores every bit of the windows that were read. All ranks must call it."""
    began = time.monotonic()
    scored = torch.zeros(2, dtype=torch.float64, device=place.device)  # nats, bytes
    model.eval()
    with torch.no_grad():
        for block in validation.blocks:
            window = bits.from_bytes(block.to(place.device), parity)
            scored[0] += modelling.nats_per_bit(model, window) * window.numel()
            scored[1] += block.numel()
    model.train()
    dist.all_reduce(scored)
    nats, scored_bytes = scored.tolist()
    loss = nats / (scored_bytes * bits.per_byte(parity))
    return events.Evaluation(
        step=step,
        loss=loss,
        bits_per_byte=bits.bits_per_byte(loss, parity),
        scored_bytes=int(scored_bytes),
        of_bytes=validation.of_bytes,
        seconds=time.monotonic() - began,
    )
