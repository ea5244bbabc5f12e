"""Bytes to bits and back, most significant bit first, and the unit the loss is told in."""

from __future__ import annotations

import math

import torch
from torch import Tensor

BITS = 8  # of a byte


def width(parity: bool = False) -> int:
    """Bits that a byte takes: its eight, and with parity an even parity bit after them."""
    return BITS + parity


def from_bytes(block: Tensor, parity: bool = False) -> Tensor:
    """Bits of bytes, as late as possible: uint8 [..., n] to uint8 [..., n x width]."""
    data = (block.unsqueeze(-1) >> _shifts(block)) & 1
    if parity:
        data = torch.cat((data, data.sum(-1, keepdim=True, dtype=torch.uint8) & 1), dim=-1)
    return data.flatten(-2)


def to_bytes(bits: Tensor, parity: bool = False) -> Tensor:
    """The inverse: uint8 [..., n x width] of zeros and ones to uint8 [..., n]. Parity bits
    are passed over, right or wrong."""
    data = bits.to(torch.uint8).unflatten(-1, (-1, width(parity)))[..., :BITS]
    return (data << _shifts(data)).sum(-1, dtype=torch.uint8)


def bits_per_byte(nats_per_bit: float) -> float:
    """A mean loss of nats per predicted bit as bits per byte of text; 8.0 is guessing.

    Every bit of every scored byte is predicted, so it is the sum of nats over
    ln 2 x the number of raw UTF-8 bytes.
    """
    return nats_per_bit * BITS / math.log(2)


def _shifts(like: Tensor) -> Tensor:
    return torch.arange(BITS - 1, -1, -1, dtype=torch.uint8, device=like.device)
