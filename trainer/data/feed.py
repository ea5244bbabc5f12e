"""One epoch's sequences as a rank's steps take them, from its dataloader workers."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from bitwatch import config as configuration
from trainer import lifeline
from trainer.data.stream import PackedRows
from trainer.failures import sentence


class Feed:
    """`take` gives a step's sequences. `trouble` says why there are no more, when that is an
    error and not the end of the data."""

    def __init__(
        self, stream: PackedRows, data: configuration.Data, sequences: int, pin_memory: bool
    ) -> None:
        self.sequences = sequences  # of one optimiser step of this rank
        self.trouble = ""
        self._held: list[Tensor] = []
        loader: DataLoader[Tensor | str] = DataLoader(
            stream,
            batch_size=None,  # the stream makes the blocks
            num_workers=data.workers,
            multiprocessing_context=data.start_method if data.workers else None,
            worker_init_fn=lifeline.hold_worker if data.workers else None,
            pin_memory=pin_memory,
        )
        self._blocks: Iterator[Tensor | str] | None = iter(loader)

    def take(self) -> Tensor | None:
        """uint8 [sequences, sequence_bytes], or None when there are not that many left.

        What is left then is dropped: a step's sequences all weigh the same.
        """
        while sum(map(len, self._held)) < self.sequences:
            block = self._next()
            if block is None:
                return None
            self._held.append(block)
        held = torch.cat(self._held) if len(self._held) > 1 else self._held[0]
        rest = held[self.sequences :]
        self._held = [rest] if len(rest) else []
        return held[: self.sequences]

    def skip(self, steps: int) -> None:
        """Leaves out what so many steps would take."""
        for _ in range(steps):
            if self.take() is None:
                return

    def close(self) -> None:
        """Ends the workers now: the iterator's last reference is what holds them."""
        self._blocks = None
        self._held = []

    def _next(self) -> Tensor | None:
        if self._blocks is None or self.trouble:
            return None
        try:
            block = next(self._blocks, None)
        except Exception as error:  # a worker that died, or could not be started
            block = sentence(error)
        if isinstance(block, str):
            self.trouble = block
            return None
        return block
