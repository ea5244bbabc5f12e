"""Text that continues text: one bit after the other, by chance, as the model expects it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from trainer import bits
from trainer.failures import Failed
from trainer.window import Window

KEPT = 0.5  # of a full window, when it begins anew; from the fifth byte on, a small model gains nothing


def continued(
    window: Window, prompt: bytes, temperature: float, chance: random.Random
) -> Iterator[int]:
    """The bytes that follow `prompt`, without an end.

    Of a prompt that does not fit, the end is used. Temperature 0 takes the likelier bit, 1
    what the model expects, more is wilder. Raises Failed when it expects nothing finite.
    """
    text = usable(prompt, window)
    window.begin(text)
    while True:
        byte = 0
        for _ in range(bits.BITS):
            bit = sample(window, temperature, chance)
            window.add(bit)
            byte = byte << 1 | bit
        yield byte
        text += bytes([byte])
        if len(text) == window.bytes:
            # Places are of the window, so it cannot slide: its end is read again as a
            # beginning, at the cost of one pass.
            text = text[len(text) - int(KEPT * len(text)) :]
            window.begin(text)


def usable(prompt: bytes, window: Window) -> bytes:
    """The end of a prompt that leaves room for a byte."""
    return prompt[max(0, len(prompt) - (window.bytes - 1)) :]


def sample(window: Window, temperature: float, chance: random.Random) -> int:
    zero, one = window.next_bit().tolist()
    if not math.isfinite(one - zero):
        raise Failed("the model's expectation is not finite: its weights are of no use")
    if temperature == 0:
        return int(one > zero)
    return int(chance.random() < logistic((one - zero) / temperature))


def logistic(x: float) -> float:
    """1 / (1 + e^-x), also where e^-x is beyond a float."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else 1 - logistic(-x)
