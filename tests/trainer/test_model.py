"""The model's size, what it may see, and where it starts from."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch

from bitwatch import config as configuration
from trainer import bits, optim
from trainer import model as modelling

TINY = configuration.Model(d_model=16, heads=2, layers=2, feedforward=64, context=64)


def started(shape: configuration.Model) -> modelling.BitTransformerLM:
    """A model with its initial values, but a head that says something."""
    model = modelling.build_model(shape)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(
                modelling.initial_value(name, tuple(parameter.shape), shape.layers, generator)
            )
        model.head.weight.normal_(generator=generator)
    return model


@pytest.mark.parametrize(("d_model", "parameters"), [(2048, 1_208_606_722), (1536, 679_962_626)])
def test_parameters_of_the_known_shapes(d_model: int, parameters: int) -> None:
    shape = configuration.Model(
        d_model=d_model, heads=16, layers=24, feedforward=4 * d_model, context=2048
    )
    with torch.device("meta"):
        model = modelling.build_model(shape)
    assert modelling.count_parameters(model) == parameters
    assert parameters == 24 * (12 * d_model**2 + 13 * d_model) + 4 * d_model + 2


def test_flops_of_the_reference_model() -> None:
    shape = configuration.Model(d_model=2048, heads=32, layers=24, feedforward=8192, context=2048)
    assert modelling.flops_per_token(shape, 1_208_606_722, 2048) == pytest.approx(8.46e9, rel=1e-3)


def test_a_bit_is_predicted_from_the_bits_before_it_only() -> None:
    model = started(TINY)
    window = torch.randint(0, 2, (1, 64), dtype=torch.uint8)
    before = model(window)
    for place in (0, 1, 7, 40, 63):
        changed = window.clone()
        changed[0, place] ^= 1
        same = (model(changed) == before).all(-1)[0]
        assert same[: place + 1].all(), place
        assert not same[place + 1 :].any(), place


def test_the_first_bit_is_predicted_too() -> None:
    assert started(TINY)(torch.zeros(2, 64, dtype=torch.uint8)).shape == (2, 64, 2)


def test_training_starts_from_guessing() -> None:
    model = started(TINY)
    torch.nn.init.zeros_(model.head.weight)
    window = torch.randint(0, 2, (4, 64), dtype=torch.uint8)
    loss = modelling.nats_per_bit(model, window).item()
    assert loss == pytest.approx(math.log(2))
    assert bits.bits_per_byte(loss) == pytest.approx(8.0)


def test_layers_add_to_the_stream_from_the_start() -> None:
    generator = torch.Generator().manual_seed(1)
    values = modelling.initial_value("blocks.0.attention_out.weight", (256, 256), 8, generator)
    assert values.std().item() == pytest.approx(0.8 / 16 / 4, rel=0.02)


def test_the_input_holds_the_bits_before_a_place() -> None:
    embedding = torch.stack((-torch.ones(64), torch.ones(64)))
    window = torch.randint(0, 2, (2, 40), dtype=torch.uint8)
    past = modelling.delayed(window, embedding)
    assert past.shape == (2, 40, 64)
    for place in range(40):
        for delay in range(32):
            told = past[:, place, 2 * delay : 2 * delay + 2]
            at = place - 1 - delay
            expected = window[:, at].float() * 2 - 1 if at >= 0 else torch.zeros(2)
            assert torch.equal(told, expected.unsqueeze(1).expand(2, 2)), (place, delay)


@pytest.mark.parametrize("parity", [False, True])
def test_octaves_tell_bits_of_a_byte_apart_and_repeat_every_byte(parity: bool) -> None:
    shape, byte = msgspec.structs.replace(TINY, parity=parity), bits.per_byte(parity)
    waves = modelling.octaves(64, shape, torch.zeros(1))
    periods = math.ceil(math.log2(TINY.context)) + 1
    by_octave = torch.cat((waves[:, :3], waves[:, periods : periods + 3]), dim=1)
    assert torch.allclose(by_octave[:byte], by_octave[byte : 2 * byte], atol=1e-5)
    assert len({tuple(row) for row in by_octave[:byte].round(decimals=3).tolist()}) == byte


def test_rotation_depends_on_distance_only() -> None:
    cosine, sine = modelling.rotary(64, TINY, torch.zeros(1))
    one = modelling.rotate(torch.ones(1, 64, 1, 8), cosine, sine)[0, :, 0]
    products = one @ one.T
    assert torch.allclose(products.diagonal(5)[:-1], products.diagonal(5)[1:], atol=1e-4)


def test_bits_come_most_significant_first_and_go_back() -> None:
    block = torch.tensor([[0b1000_0001, 0b0000_0010]], dtype=torch.uint8)
    expanded = bits.from_bytes(block)
    assert expanded.tolist() == [[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0]]
    every = torch.arange(256, dtype=torch.uint8).view(4, 64)
    assert torch.equal(bits.to_bytes(bits.from_bytes(every)), every)


def test_a_parity_bit_makes_the_number_of_ones_even() -> None:
    every = torch.arange(256, dtype=torch.uint8).view(4, 64)
    expanded = bits.from_bytes(every, parity=True)
    assert expanded.shape == (4, 9 * 64)
    grouped = expanded.view(4, 64, 9)
    assert torch.equal(grouped[..., :8].flatten(1), bits.from_bytes(every))
    assert not (grouped.sum(-1) % 2).any()
    assert torch.equal(bits.to_bytes(expanded, parity=True), every)


def test_bits_per_byte_is_of_raw_bytes_with_and_without_parity() -> None:
    assert bits.bits_per_byte(math.log(2)) == pytest.approx(8.0)
    assert bits.bits_per_byte(math.log(2), parity=True) == pytest.approx(9.0)


def test_learning_rate_rises_and_falls() -> None:
    wanted = configuration.Train(
        steps=100, batch=1, micro_batch=1, learning_rate=1.0, schedule="cosine", warmup=10
    )
    rates = [optim.learning_rate(step, wanted) for step in range(1, 101)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == rates[10] == 1.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < 0.01
    wanted.schedule = "constant"
    assert optim.learning_rate(100, wanted) == 1.0


def test_wsd_is_stable_and_decays_over_the_last_fifth() -> None:
    wanted = configuration.Train(
        steps=100, batch=1, micro_batch=1, learning_rate=1.0, schedule="wsd", warmup=10
    )
    rates = [optim.learning_rate(step, wanted) for step in range(1, 101)]
    assert rates[:10] == sorted(rates[:10])
    assert set(rates[9:81]) == {1.0}
    assert rates[80:] == sorted(rates[80:], reverse=True)
    assert rates[85] == pytest.approx(1 - 0.5)  # a quarter of the decay: 1 - sqrt(1/4)
    assert 0 < rates[-1] < 0.03
    wanted.warmup, wanted.steps = 95, 100  # the warm-up may leave less than a fifth
    assert optim.learning_rate(95, wanted) == optim.learning_rate(96, wanted) == 1.0
    assert optim.learning_rate(97, wanted) < 1.0


def test_only_matrices_decay() -> None:
    model = modelling.build_model(TINY)
    wanted = configuration.Train(
        steps=1, batch=1, micro_batch=1, learning_rate=1.0, weight_decay=0.5
    )
    matrices, rest = optim.build(model, wanted).param_groups
    assert matrices["weight_decay"] == 0.5
    assert rest["weight_decay"] == 0.0
    assert {p.ndim for p in matrices["params"]} == {2}
    assert {p.ndim for p in rest["params"]} == {1}
