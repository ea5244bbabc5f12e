"""What the ranks must know of each other before a step: one small word, one step ahead.

A rank that has no more data, or was asked to stop, cannot simply leave: the others would
wait for it in the next collective, or worse, pair it with another one. So each step begins
with a word that all ranks have said together. It is sent while the step before is still
computed, on a group of its own, and costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor


class Word(NamedTuple):
    """Of the coming step; each is true for all ranks when it is for one."""

    no_data: bool = False
    stop: bool = False
    evaluate: bool = False
    data_error: bool = False
    save_failed: bool = False


class Pending:
    """A word that was said and not yet heard. `waited_s`: that `heard` took."""

    waited_s = 0.0

    def __init__(self, word: Word, group: dist.ProcessGroup) -> None:
        self._said: Tensor = torch.tensor(word, dtype=torch.int32)
        self._work = dist.all_reduce(self._said, dist.ReduceOp.MAX, group=group, async_op=True)

    def heard(self) -> Word:
        began = time.monotonic()
        self._work.wait()
        self.waited_s = time.monotonic() - began
        return Word(*(bool(value) for value in self._said.tolist()))


def say(word: Word, group: dist.ProcessGroup) -> Pending:
    return Pending(word, group)


def gather(mine: Any, group: dist.ProcessGroup) -> list[Any]:
    """Every rank's small object, in the order of ranks. All ranks must call it."""
    said: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(said, mine, group=group)
    return said


def by_rank(what: str, troubles: Sequence[str]) -> str:
    """One sentence of those that the ranks have said; empty ones have nothing to say."""
    return "; ".join(f"rank {rank}: {what}: {text}" for rank, text in enumerate(troubles) if text)
