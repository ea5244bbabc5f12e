"""Counts of the incident's models, and FSDP2's rule against torch itself."""

from __future__ import annotations

from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st

from bitwatch import config
from bitwatch.plan import parameters
from trainer import inspect


def shapes_of(name: str) -> list[list[int]]:
    facts = inspect.inspect(config.bundled(f"configs/{name}.toml"), ("model",))
    assert facts.model is not None and facts.model.error is None
    return [parameter.shape for parameter in facts.model.parameters]


def test_the_model_of_1_21_billion() -> None:
    shapes = shapes_of("1b21")
    assert parameters.built(shapes) == 1_208_606_722
    assert parameters.held(shapes, 4) == [302_153_729, 302_153_729, 302_149_632, 302_149_632]
    assert parameters.flat_shard(1_208_606_722, 4) == 302_151_681


def test_the_incidents_third_model_is_a_shard_of_its_second() -> None:
    shapes = shapes_of("680m")
    assert parameters.built(shapes) == 679_962_626
    assert parameters.flat_shard(679_962_626, 4) == 169_990_657


@given(
    shapes=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), max_size=5),
    ranks=st.integers(1, 6),
)
def test_what_a_rank_holds_is_what_torch_chunk_gives_it(
    shapes: list[list[int]], ranks: int
) -> None:
    held = [0] * ranks
    for shape in shapes:
        for rank, piece in enumerate(torch.chunk(torch.empty(shape), ranks)):
            held[rank] += piece.numel()
    assert parameters.held(shapes, ranks) == held
    assert sum(held) == parameters.built(shapes)


def test_one_rank_holds_everything() -> None:
    assert parameters.held([[2, 3], [4]], 1) == [10]


def test_bundled_configurations_ask_for_what_is_built() -> None:
    wanted = {
        path.stem: config.load(path).model.expected_parameters
        for path in Path(config.bundled("configs")).glob("*.toml")
    }
    asked = {name: many for name, many in wanted.items() if many is not None}
    assert asked and asked == {name: parameters.built(shapes_of(name)) for name in asked}
