"""Real trainings: the same on any number of ranks, epochs that end for all at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bitwatch.plan import parameters
from bitwatch.record import events
from trainer import model as modelling
from trainer import weights

pytestmark = pytest.mark.slow

SEQUENCE_BYTES = 8  # of the small model's context of 64 bits
SPARING = {"shard": "grad", "activation_checkpointing": "selective"}


def write_rows(folder: Path, rows: list[int]) -> str:
    """One jsonl file of rows[i] rows of a sequence each, all different; returns their glob."""
    folder.mkdir()
    for shard, count in enumerate(rows):
        lines = [json.dumps({"text": f"{shard:02} {row:04}"}) for row in range(count)]
        (folder / f"{shard}.jsonl").write_text("\n".join(lines) + "\n")
    return str(folder / "*.jsonl")


# ---------------------------------------------------------------------------------------
# The same training, spread differently


@pytest.fixture(scope="module")
def spread(
    small: Callable[..., Any], launch: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[int, int], Any]:
    """Trainings on the same batches by (ranks, micro_batch). The data is one batch of 8
    sequences in 4 files, so every epoch is one step, whoever reads which file. Two ranks keep
    their gathered weights, and compute activations again."""
    text = write_rows(tmp_path_factory.mktemp("text") / "rows", [2, 2, 2, 2])
    done = {}
    for ranks, micro_batch in ((1, 8), (1, 2), (2, 4), (4, 2)):
        config = small(
            data={"source": text},
            parallel={"ranks": ranks, **(SPARING if ranks == 2 else {})},
            train={"steps": 20, "batch": 8, "micro_batch": micro_batch, "clip": 0.1},
        )
        done[ranks, micro_batch] = launch(config)
        assert done[ranks, micro_batch].wait() == 0, done[ranks, micro_batch].log()
    return done


def losses(launched: Any, rank: int = 0) -> list[float]:
    return [step.loss for step in launched.of(events.Step, rank)]


@pytest.mark.parametrize("ranks", [2, 4])
def test_losses_agree_on_any_number_of_ranks(spread: dict[Any, Any], ranks: int) -> None:
    one = losses(spread[1, 8])
    assert len(one) == 20
    assert one[-1] < one[0]
    assert losses(spread[ranks, 8 // ranks]) == pytest.approx(one, abs=1e-5)


def test_accumulation_equals_one_big_batch(spread: dict[Any, Any]) -> None:
    assert losses(spread[1, 2]) == pytest.approx(losses(spread[1, 8]), abs=1e-5)


def test_gradient_norm_is_the_same_on_every_rank_of_any_number(spread: dict[Any, Any]) -> None:
    norms = {
        key: [[step.grad_norm for step in launched.of(events.Step, rank)] for rank in range(key[0])]
        for key, launched in spread.items()
    }
    for by_rank in norms.values():
        assert all(norm == by_rank[0] for norm in by_rank)
        assert by_rank[0] == pytest.approx(norms[1, 8][0], rel=1e-4)


def test_what_is_built_and_held_is_recorded(spread: dict[Any, Any]) -> None:
    (built,) = spread[4, 2].of(events.ModelBuilt)
    assert len(built.held) == built.ranks == 4
    assert sum(built.held) == built.built
    # Two values of a bit: the last two ranks hold none of the embedding and the head.
    assert built.held[0] - built.held[2] == 16 + 16 + 1
    assert built.held[0] == built.held[1]
    assert built.held[2] == built.held[3]


def test_one_process_reads_the_weights_of_any_number_of_ranks(spread: dict[Any, Any]) -> None:
    window = torch.arange(64, dtype=torch.uint8).view(8, 8) % 2
    logits = {}
    for key, launched in spread.items():
        found = weights.of_checkpoints(launched.run.checkpoints(), None, fail)
        assert found.step == launched.last().step
        logits[key] = found.model(window)
    for found in logits.values():
        assert torch.allclose(found, logits[1, 8], atol=1e-4)
    assert logits[1, 8].abs().max() > 0.01  # the head was trained


def fail(text: str) -> None:
    raise AssertionError(text)


def test_every_rank_tells_its_life(spread: dict[Any, Any]) -> None:
    launched = spread[2, 4]
    for rank in range(2):
        first, *_, last = launched.rank(rank)
        assert isinstance(first, events.ProcessStart)
        assert (first.role, first.rank) == ("rank", rank)
        assert (last.state, last.cause, last.step) == ("done", "", 20)
        phases = [phase.name for phase in launched.of(events.Phase, rank)]
        assert phases == ["start", "train", "checkpoint"]
        for step in launched.of(events.Step, rank):
            assert step.tokens == step.step * 8 * SEQUENCE_BYTES * 8
            assert step.step_s > 0 and step.data_s >= 0 and step.tokens_per_s > 0
            assert step.mfu is None  # no peak is known for a CPU
            assert step.bits_per_byte == pytest.approx(step.loss * 11.5416, rel=1e-4)


def test_the_big_model_scaled_down_steps_on_four_ranks_and_holds_what_was_planned(
    small: Callable[..., Any], launch: Callable[..., Any]
) -> None:
    """24 layers, as configs/1b21.toml has them."""
    shape = {"d_model": 64, "heads": 2, "layers": 24, "feedforward": 256, "context": 64}
    config = small(
        model=shape, parallel={"ranks": 4}, train={"steps": 2, "batch": 4, "micro_batch": 1}
    )
    launched = launch(config)
    assert launched.wait() == 0, launched.log()
    (built,) = launched.of(events.ModelBuilt)
    with torch.device("meta"):
        model = modelling.build_model(config.model)
    shapes = [list(parameter.shape) for parameter in model.parameters()]
    assert built.held == parameters.held(shapes, 4)
    assert sum(built.held) == built.built == modelling.count_parameters(model)
    one, two = losses(launched)
    assert one == pytest.approx(0.6931, abs=1e-3)
    assert two != one


# ---------------------------------------------------------------------------------------
# Data that ends unevenly


def test_data_that_never_fills_a_batch_fails_with_a_sentence(
    small: Callable[..., Any], launch: Callable[..., Any], tmp_path: Path
) -> None:
    launched = launch(
        small(
            data={"source": write_rows(tmp_path / "rows", [8, 1])},
            parallel={"ranks": 2},
            train={"batch": 4, "micro_batch": 2},
        )
    )
    assert launched.wait() == 1
    for rank in range(2):
        assert launched.last(rank).state == "failed"
        assert "less than one batch for some rank" in launched.last(rank).cause
