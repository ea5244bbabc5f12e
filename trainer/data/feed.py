"""One epoch's sequences as a rank's steps take them, from its dataloader workers."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from bitwatch import config as configuration
from bitwatch.record.rundir import RunDir
from trainer import lifeline
from trainer.data import lost
from trainer.data.account import Account, Desk, Where
from trainer.failures import sentence

AHEAD = 2  # blocks that each worker reads before they are asked for


class Blocks(IterableDataset[Any]):
    """A stream of blocks of sequences, uint8 [any number, sequence_bytes], in which an error's
    sentence stands for all that would have come. `desk` keeps its readers' accounts."""

    desk: Desk

    def arrived(self, sent: Any) -> Tensor | str:
        """What a worker sent, as the rank has it."""
        return sent


def accounted(blocks: Iterator[Any] | None, account: Account, where: Where) -> Iterator[Any]:
    """The blocks of a reader, or none when it was given nothing, with its account from their
    beginning to its last word. An error is the last of them, as its sentence."""
    try:
        if blocks is not None:
            account.begin(where)
            yield from blocks
            account.say("done")
        else:
            account.say("idle")
    except GeneratorExit:  # enough was read: an evaluation takes only so much
        account.say("done")
        raise
    except Exception as error:
        traceback.print_exc()
        account.say("failed", sentence(error))
        yield sentence(error)
    finally:
        account.close()


class Feed:
    """`take` gives a step's sequences. `trouble` says why there are no more, when that is an
    error and not the end of the data; `left`, at that end, how many sequences were too few for a
    step: None before."""

    def __init__(
        self,
        stream: Blocks,
        data: configuration.Data,
        sequences: int,
        pin_memory: bool,
    ) -> None:
        self.sequences = sequences  # of one optimiser step of this rank
        self.trouble = ""
        self.left: int | None = None
        self._ready: deque[Tensor] = deque()  # steps
        self._rest: Tensor | None = None  # sequences of the next step, too few for it
        self._stream: Blocks | None = stream
        loader: DataLoader[Any] = DataLoader(
            stream,
            batch_size=None,  # the stream makes the blocks
            num_workers=data.workers,
            prefetch_factor=AHEAD if data.workers else None,
            multiprocessing_context=data.start_method if data.workers else None,
            worker_init_fn=lifeline.hold_worker if data.workers else None,
            pin_memory=pin_memory,
        )
        self._blocks: Iterator[Any] | None = iter(loader)

    def take(self) -> Tensor | None:
        """uint8 [sequences, sequence_bytes], or None when there are not that many left.

        What is left then is dropped: a step's sequences all weigh the same.
        """
        while not self._ready:
            block = self._next()
            if block is None:
                if not self.trouble:
                    self.left = 0 if self._rest is None else len(self._rest)
                return None
            self._cut(block)
        return self._ready.popleft()

    def _cut(self, block: Tensor) -> None:
        """Makes whole steps of a block, all at once: it may hold many."""
        if self._rest is not None:
            block = torch.cat((self._rest, block))
        whole = len(block) - len(block) % self.sequences
        self._ready.extend(block[:whole].unflatten(0, (-1, self.sequences)).unbind())
        self._rest = block[whole:] if whole < len(block) else None

    def skip(self, steps: int) -> None:
        """Leaves out what so many steps would take."""
        for _ in range(steps):
            if self.take() is None:
                return

    def close(self) -> None:
        """Ends the workers now: the iterator's last reference is what holds them."""
        self._blocks = self._stream = None  # with the memory that it shares with its workers
        self._ready.clear()
        self._rest = None

    def _next(self) -> Tensor | None:
        if self._blocks is None or self._stream is None or self.trouble:
            return None
        try:
            block = next(self._blocks, None)
            block = None if block is None else self._stream.arrived(block)
        except Exception as error:  # a worker that died, or could not be started
            desk = self._stream.desk
            run = RunDir(desk.folder)
            block = lost.worker(error, run, desk.attempt, desk.rank) or sentence(error)
        if isinstance(block, str):
            self.trouble = block
            return None
        return block
