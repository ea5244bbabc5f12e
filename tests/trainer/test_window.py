"""A growing window says what the whole model says, and text is sampled from it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import pytest
import torch

from bitwatch import config as configuration
from trainer import bits, sampling
from trainer import model as modelling
from trainer.failures import Failed
from trainer.window import Window

# 64 channels: as many delayed groups as there can be, of 2 channels each.
SHAPE = configuration.Model(d_model=64, heads=2, layers=3, feedforward=128, context=100)


def random_model(**changes: Any) -> modelling.BitTransformerLM:
    """Weights with which every bit of the past matters."""
    shape = configuration.Model(**{**msgspec.structs.asdict(SHAPE), **changes})
    model = modelling.build_model(shape).requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        first = modelling.initial_value(name, tuple(parameter.shape), shape.layers, generator)
        parameter.copy_(2 * first)
    model.head.weight.normal_(generator=generator)
    return model


def text_of(window: Window, prompt: bytes, temperature: float, seed: int, count: int) -> bytes:
    made = sampling.continued(window, prompt, temperature, random.Random(seed))
    return bytes(itertools.islice(made, count))


# ---------------------------------------------------------------------------------------
# The window


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("prompt", [b"", b"seven b"])
def test_a_window_that_grows_equals_the_whole_at_once(parity: bool, prompt: bytes) -> None:
    model = random_model(parity=parity)
    window = Window(model)
    assert window.bytes == (11 if parity else 12)
    text = prompt + bytes(range(200, 200 + window.bytes - len(prompt)))
    known = bits.from_bytes(torch.tensor(list(text), dtype=torch.uint8), parity)
    whole = model(known.unsqueeze(0))[0]
    for _ in range(2):  # a window that begins again has forgotten
        window.begin(prompt)
        width = bits.per_byte(parity)
        for place in range(len(prompt) * width, window.bytes * width):
            if place % width == bits.BITS:
                continue  # the parity bit comes by itself
            assert torch.allclose(window.next_bit(), whole[place], atol=1e-4), place
            window.add(int(known[place]))


def test_every_place_of_the_past_is_seen() -> None:
    """Else the test above would hold for a model that sees nothing."""
    model = random_model()
    window, said = Window(model), set()
    for first in range(4):
        window.begin(bytes([first, 0, 0, 0, 0, 0, 0, 0]))
        said.add(tuple(window.next_bit().tolist()))
    assert len(said) == 4


# ---------------------------------------------------------------------------------------
# Bits of a byte


def test_parity_is_even_and_comes_last() -> None:
    block = torch.tensor([[0b1000_0000, 0b0000_0011, 0b1111_1111]], dtype=torch.uint8)
    found = bits.from_bytes(block, parity=True)
    assert found.tolist() == [
        [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0]
    ]
    assert found.dtype == torch.uint8
    assert torch.equal(bits.to_bytes(found, parity=True), block)
    every = torch.arange(256, dtype=torch.uint8).view(2, 128)
    for parity in (False, True):
        back = bits.to_bytes(bits.from_bytes(every, parity), parity)
        assert torch.equal(back, every)
    assert not bits.from_bytes(every, True).view(2, 128, 9).sum(-1).remainder(2).any()


# ---------------------------------------------------------------------------------------
# Sampling


@pytest.mark.parametrize("parity", [False, True])
def test_a_seed_gives_the_same_text_and_another_seed_another(parity: bool) -> None:
    window = Window(random_model(parity=parity))
    first = text_of(window, b"abc", 1.0, seed=1, count=40)
    assert text_of(window, b"abc", 1.0, seed=1, count=40) == first
    assert text_of(window, b"abc", 1.0, seed=2, count=40) != first
    assert text_of(window, b"abd", 1.0, seed=1, count=40) != first


@pytest.mark.parametrize("parity", [False, True])
def test_temperature_0_takes_the_likelier_bit(parity: bool) -> None:
    """Compared with the whole model, without a window, for as long as one lasts."""
    model = random_model(parity=parity)
    window = Window(model)
    text = b"abc"
    while len(text) < window.bytes:
        byte = 0
        for place in range(bits.BITS):
            known = bits.from_bytes(torch.tensor(list(text + bytes([byte]))).byte(), parity)
            logits = model(known.unsqueeze(0))[0, len(text) * bits.per_byte(parity) + place]
            byte |= int(logits.argmax()) << (bits.BITS - 1 - place)
        text += bytes([byte])
    count = window.bytes - 3
    assert b"abc" + text_of(window, b"abc", 0, seed=1, count=count) == text
    assert text_of(window, b"abc", 0, seed=9, count=40) == text_of(window, b"abc", 0, 1, 40)
    assert text_of(window, b"abc", 1e-300, seed=9, count=40) == text_of(window, b"abc", 0, 1, 40)


def test_chance_follows_what_the_model_expects() -> None:
    model = random_model()
    model.head.weight.zero_()
    model.head.bias.copy_(torch.tensor([0.0, 1.1]))  # a one with 0.75
    text = text_of(Window(model), b"", 1.0, seed=1, count=150)
    ones = sum(byte.bit_count() for byte in text) / (8 * len(text))
    assert ones == pytest.approx(0.75, abs=0.04)
    text = text_of(Window(model), b"", 0.5, seed=1, count=150)
    ones = sum(byte.bit_count() for byte in text) / (8 * len(text))
    assert ones == pytest.approx(0.90, abs=0.04)


def test_of_a_long_prompt_its_end_is_used_even_within_a_character() -> None:
    window = Window(random_model())
    prompt = b"x" + "é".encode() * 30
    end = sampling.usable(prompt, window)
    assert end == prompt[-11:] and end[0] == 0xA9  # the second byte of an é
    assert text_of(window, prompt, 1.0, 1, 40) == text_of(window, end, 1.0, 1, 40)
    assert text_of(window, prompt[:-1], 1.0, 1, 40) != text_of(window, end, 1.0, 1, 40)


def test_text_goes_on_where_a_window_is_full() -> None:
    """The second window begins with the last half of the first."""
    window = Window(random_model())
    text = b"abc" + text_of(window, b"abc", 0, 1, count=21)
    assert text_of(window, text[6:12], 0, 1, count=6) == text[12:18]
    assert text_of(window, text[12:18], 0, 1, count=6) == text[18:24]


def test_a_window_of_one_byte() -> None:
    window = Window(random_model(context=8))
    assert window.bytes == 1
    assert len(text_of(window, b"long", 1.0, 1, 5)) == 5


def test_a_model_that_expects_nothing_finite_is_refused() -> None:
    model = random_model()
    model.head.bias[0] = float("nan")
    with pytest.raises(Failed, match="not finite"):
        text_of(Window(model), b"abc", 0.8, 1, 1)
