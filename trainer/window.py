"""A window of text that grows bit by bit, and what the model expects next.

What a place has computed is kept, so the next bit costs one place and not the whole window.
Equal to `BitTransformerLM.forward` over the same bits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bitwatch import config as configuration
from trainer import bits
from trainer import model as modelling


class Window:
    """Whole bytes at the beginning of a context, then single bits."""

    def __init__(self, model: modelling.BitTransformerLM) -> None:
        shape, like = model.shape, model.embedding.weight
        self.bytes = configuration.bytes_per_sequence(shape)
        self._width = bits.per_byte(shape.parity)
        places = self.bytes * self._width
        self._model = model
        self._bits = torch.zeros(1, places, dtype=torch.uint8, device=like.device)
        self._length = 0  # bits of it that are known
        self._octaves = modelling.octaves(places, shape, like)
        self._rotary = modelling.rotary(places, shape, like)
        room = (1, places, shape.heads, shape.d_model // shape.heads)
        self._past = [
            modelling.Past(like.new_zeros(room), like.new_zeros(room)) for _ in model.blocks
        ]

    def begin(self, text: bytes) -> None:
        """Forgets everything and begins with `text`, of less bytes than the window has."""
        block = torch.tensor(list(text), dtype=torch.uint8, device=self._bits.device)
        known = bits.from_bytes(block, self._model.shape.parity)
        self._length = len(known)
        self._bits[0, : self._length] = known
        for past in self._past:
            past.length = 0

    def add(self, bit: int) -> None:
        """The next data bit of a byte. What its eight have settled, the parity bit, follows by
        itself and is never the model's guess."""
        self._bits[0, self._length] = bit
        self._length += 1
        whole = self._length % self._width == bits.BITS
        if self._width > bits.BITS and whole:
            byte = self._bits[0, self._length - bits.BITS : self._length]
            self._bits[0, self._length] = byte.sum() & 1
            self._length += 1

    @torch.inference_mode()
    def next_bit(self) -> Tensor:
        """Logits [2] of the bit after those that are known. There must be room for it."""
        first, end = self._past[0].length, self._length + 1
        # The inputs of a place are the bits before it: the last of this slice is not read.
        begin = max(0, first - modelling.DELAYS)
        x = modelling.delayed(self._bits[:, begin:end], self._model.embedding.weight)
        x = x[:, first - begin :] + self._octaves[first:end]
        cosine, sine = (turns[first:end] for turns in self._rotary)
        for block, past in zip(self._model.blocks, self._past, strict=True):
            x = block(x, cosine, sine, past)
        return self._model.read_out(x[:, -1])[0]
