"""The sequences of an indexed text in a seeded order, as one rank's steps take them.

Sequence i is bytes [i s, (i + 1) s) of the text. An epoch's order is a permutation of all of
them that depends on the seed and the epoch alone. Step j after a position P takes places
[P + j B, P + (j + 1) B) of it, B sequences over all ranks; rank r of W takes its r-th W-th of
those. So a position says all about where the data is, for any number of ranks and workers.
What is left at the end of an epoch, less than B, is dropped.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from trainer.data import feed
from trainer.data.account import Account, Desk, Shard
from trainer.data.index import Index

# 4,096 sequences of 256 bytes. A worker sends about 1,000 messages a second, whatever their
# size; but in a container all shared memory together may be 64 MiB.
BLOCK_BYTES = 1 << 20
SHARED_BYTES = 32 << 20  # that the slots of all workers of all ranks may take
LEAST_BLOCKS = 8  # of an epoch, or one a worker, so that all have work in a small one
AHEAD = 2  # blocks that the rank's own thread reads before they are asked for

# A worker's places for blocks: while the rank takes one, the worker fills those after it.
SLOTS = feed.AHEAD + 1


class Sent(NamedTuple):
    """Where a worker has put a block, in memory that it shares with the rank. Handing over the
    memory itself would make and map new pages for every block, which costs more than reading."""

    worker: int
    slot: int
    sequences: int


class IndexedBlocks(feed.Blocks):
    """A rank's sequences of an epoch in blocks of whole steps, uint8 [many, sequence_bytes].

    index: open. share: sequences of one step of this rank. position: sequences of the epoch
    that all ranks have taken together. Iterated in a DataLoader's worker k of K it is every
    K-th block from k on: the loader takes turns, so the blocks come in order, each as a `Sent`.
    Without workers a thread reads ahead.
    """

    def __init__(
        self,
        index: Index,
        sequence_bytes: int,
        share: int,
        rank: int,
        ranks: int,
        seed: int,
        desk: Desk,
        epoch: int = 0,
        position: int = 0,
        workers: int = 0,
        pin_memory: bool = False,
    ) -> None:
        super().__init__()
        self.index = index
        self.sequence_bytes = sequence_bytes
        self.share = share
        self.rank, self.ranks = rank, ranks
        self.seed, self.epoch, self.position = seed, epoch, position
        self.desk = desk
        count = index.about.bytes // sequence_bytes
        self.steps = max(0, count - position) // (share * ranks)
        room = SHARED_BYTES // (ranks * SLOTS * workers) if workers else BLOCK_BYTES
        largest = min(BLOCK_BYTES, room) // (share * sequence_bytes)
        self.block_steps = max(1, min(largest, self.steps // max(LEAST_BLOCKS, workers)))
        # Made here, before there are workers: under fork they share it.
        self._places: np.ndarray[Any, Any] | None = self._of_this_rank()
        # [worker, slot, sequences, bytes]
        shape = (workers, SLOTS, self.block_steps * share, sequence_bytes)
        self._slots = torch.empty(shape, dtype=torch.uint8)
        if workers:
            self._slots.share_memory_()
        self.pin_memory = pin_memory

    def arrived(self, sent: Sent | Tensor | str) -> Tensor | str:
        if not isinstance(sent, Sent):
            return sent
        block = self._slots[sent.worker, sent.slot, : sent.sequences]
        return torch.empty(block.shape, dtype=torch.uint8, pin_memory=self.pin_memory).copy_(block)

    def __iter__(self) -> Iterator[Sent | Tensor | str]:
        here = get_worker_info()
        worker, workers = (here.id, here.num_workers) if here is not None else (0, 0)
        blocks = range(worker, -(-self.steps // self.block_steps), workers or 1)
        account = self.desk.open(worker, workers, self.epoch, ["index"] if blocks else [])
        read: Iterator[Sent | Tensor] | None = None
        if blocks and workers:
            read = self._send(blocks, worker, account)
        elif blocks:
            read = _ahead(self._read(blocks, account))
        yield from feed.accounted(read, account, _in_the_index)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_places": None}  # smaller to make anew than to send

    def _read(self, blocks: range, account: Account) -> Iterator[Tensor]:
        for number in blocks:
            places = self._places_of(number)
            block = np.empty((len(places), self.sequence_bytes), np.uint8)
            self._copy(places, block, account)
            account.waits()
            yield torch.from_numpy(block)
            account.reads()

    def _send(self, blocks: range, worker: int, account: Account) -> Iterator[Sent]:
        for turn, number in enumerate(blocks):
            places = self._places_of(number)
            slot = turn % SLOTS
            self._copy(places, self._slots[worker, slot, : len(places)].numpy(), account)
            account.waits()
            yield Sent(worker, slot, len(places))
            account.reads()

    def _places_of(self, block: int) -> np.ndarray[Any, Any]:
        if self._places is None:
            self._places = self._of_this_rank()
        size = self.block_steps * self.share
        return self._places[block * size : (block + 1) * size]

    def _copy(
        self, places: np.ndarray[Any, Any], block: np.ndarray[Any, Any], account: Account
    ) -> None:
        text = self.index.sequences(self.sequence_bytes)
        text.take(places, axis=0, out=block, mode="clip")  # "raise" would copy it twice
        account.record.samples += len(block)
        account.record.bytes += block.nbytes

    def _of_this_rank(self) -> np.ndarray[Any, Any]:
        """The numbers of its sequences, in order, from the position to the end."""
        order = permutation(self.index.about.bytes // self.sequence_bytes, self.seed, self.epoch)
        size = self.steps * self.ranks * self.share
        rest = order[self.position : self.position + size]
        mine = rest.reshape(self.steps, self.ranks, self.share)[:, self.rank]
        return mine.reshape(-1).astype(np.uint32 if len(order) < 1 << 32 else np.int64)


def permutation(count: int, seed: int, epoch: int) -> np.ndarray[Any, Any]:
    """The order of an epoch's sequences."""
    return np.random.default_rng([seed, epoch]).permutation(count)


def _in_the_index() -> tuple[Shard, object]:
    return "index", None


def _ahead(read: Iterator[Tensor]) -> Iterator[Tensor]:
    """The same, read by a thread while the rank computes: copying releases Python's lock."""
    blocks: queue.Queue[Tensor | Exception | None] = queue.Queue(AHEAD)
    left = threading.Event()

    def work() -> None:
        try:
            for block in read:
                blocks.put(block)
                if left.is_set():
                    return
            blocks.put(None)
        except Exception as error:
            blocks.put(error)

    thread = threading.Thread(target=work, name="reader", daemon=True)
    thread.start()
    try:
        while (block := blocks.get()) is not None:
            if isinstance(block, Exception):
                raise block
            yield block
    finally:
        left.set()
        while thread.is_alive():  # it may wait for room
            with contextlib.suppress(queue.Empty):
                blocks.get(timeout=0.01)
        thread.join()
