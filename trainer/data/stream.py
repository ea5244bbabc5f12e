"""Rows of text, packed into sequences of bytes, as one reader produces them.

Each row's text is UTF-8, ends with a newline (one is added where there is none), and is laid
end to end with the next: a sequence may hold the end of one row and the beginning of
another, and only what is left at the very end, less than a sequence, is dropped. Bytes
travel in blocks; whoever computes makes bits of them last.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from trainer.data import retry
from trainer.data.account import Account, Desk, Shard
from trainer.data.feed import Blocks, accounted
from trainer.data.rowtext import text_bytes


class Rows(Protocol):
    """A rank's share of the rows, in one of the ways of dealing them out. `workers` of the
    rank's DataLoader read; with 0 the rank itself does, as worker 0."""

    def set_epoch(self, epoch: int) -> None: ...

    def shards(self, worker: int, workers: int) -> list[int | str]:
        """What this reader is given, as its account calls it; empty for nothing."""

    def read(self, worker: int, workers: int, given: int) -> Iterator[dict[str, Any]]:
        """This reader's rows behind the first `given`, each time the same ones. More than 0
        are given when a pass before broke off there."""

    def where(self) -> tuple[Shard, object]:
        """See `account.Where`. Asked from another thread while `read` goes on."""


class PackedRows(Blocks):
    """A rank's share of rows as blocks of sequences, uint8 [up to `block`, sequence_bytes].

    Iterated in a DataLoader's worker it is that worker's share. An error ends the stream
    with one sentence, a str in place of a block: an exception would reach the rank as a
    page of text, and a rank must tell the others why it has no more data.
    """

    def __init__(
        self,
        rows: Rows,
        column: str,
        sequence_bytes: int,
        block: int,
        desk: Desk,
        epoch: int = 0,
    ) -> None:
        super().__init__()
        self.rows = rows
        self.column = column
        self.sequence_bytes = sequence_bytes
        self.block = block
        self.desk = desk
        self.epoch = epoch
        self.bytes_read = 0  # of text, when this process itself is the reader
        self.rows.set_epoch(epoch)

    def __iter__(self) -> Iterator[Tensor | str]:
        here = get_worker_info()
        worker, workers = (here.id, here.num_workers) if here is not None else (0, 0)
        shards = self.rows.shards(worker, workers)
        account = self.desk.open(worker, workers, self.epoch, shards)
        blocks = self._blocks(worker, workers, account) if shards else None
        yield from accounted(blocks, account, self.rows.where)

    def _blocks(self, worker: int, workers: int, account: Account) -> Iterator[Tensor]:
        carry = bytearray()
        wanted = self.block * self.sequence_bytes
        record, now = account.record, time.time

        def behind(given: int) -> Iterator[dict[str, Any]]:
            return self.rows.read(worker, workers, given)

        for row in retry.exactly_once(behind, account.say_again):
            text = text_bytes(row, self.column)
            carry += text
            record.rows += 1
            record.bytes += len(text)
            record.moved = now()
            self.bytes_read += len(text)
            while len(carry) >= wanted:
                block = self._block(carry, account)
                account.waits()
                yield block
                account.reads()
            if record.error:
                account.say("reading")
        if len(carry) >= self.sequence_bytes:
            block = self._block(carry, account)
            account.waits()
            yield block
            account.reads()

    def _block(self, carry: bytearray, account: Account) -> Tensor:
        """Takes the whole sequences at the front of `carry`, at most a block of them."""
        count = min(self.block, len(carry) // self.sequence_bytes)
        size = count * self.sequence_bytes
        block = np.frombuffer(bytes(carry[:size]), np.uint8).copy()
        del carry[:size]
        account.record.samples += count
        return torch.from_numpy(block).view(count, self.sequence_bytes)
