"""Bytes to bits and back, most significant bit first, and the unit the loss is told in.

With parity a byte has nine bits: its eight, then the one that makes the number of ones even.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

BITS = 8  # of a byte of text


def per_byte(parity: bool) -> int:
    """Bits that the model sees of each byte."""
    return BITS + parity


def from_bytes(block: Tensor, parity: bool = False) -> Tensor:
    """Bits of bytes, as late as possible: uint8 [..., n] to uint8 [..., 8 n] (9 n)."""
    bits = (block.unsqueeze(-1) >> _shifts(block)) & 1
    if parity:
        even = bits.sum(-1, keepdim=True, dtype=torch.uint8) & 1
        bits = torch.cat((bits, even), dim=-1)
    return bits.flatten(-2)


def to_bytes(bits: Tensor, parity: bool = False) -> Tensor:
    """The inverse: uint8 [..., 8 n] (9 n) of zeros and ones to uint8 [..., n]. What the parity
    bits say is not looked at."""
    grouped = bits.to(torch.uint8).unflatten(-1, (-1, per_byte(parity)))[..., :BITS]
    return (grouped << _shifts(grouped)).sum(-1, dtype=torch.uint8)


def bits_per_byte(nats_per_bit: float, parity: bool = False) -> float:
    """A mean loss of nats per predicted bit as bits per byte of text; 8.0 is guessing.

    Every bit of every scored byte is predicted, its parity too, so it is the sum of nats over
    ln 2 x the number of raw UTF-8 bytes.
    """
    return nats_per_bit * per_byte(parity) / math.log(2)


def _shifts(like: Tensor) -> Tensor:
    return torch.arange(BITS - 1, -1, -1, dtype=torch.uint8, device=like.device)
