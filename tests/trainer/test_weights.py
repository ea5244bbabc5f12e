"""What touches the weights on one rank, in this process: steps, skips, checkpoints."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor

from bitwatch import config as configuration
from trainer import bits, checkpoint, evaluate, optim, parallel, saving
from trainer import model as modelling
from trainer.failures import Failed
from trainer.health import Health, NotFinite, Outliers
from trainer.saving import Saver


class Training:
    """A small model in training, on text that never changes."""

    def __init__(self, place: parallel.Place, config: configuration.Config, policy: str) -> None:
        self.config = config
        with torch.device("meta"):
            self.model = modelling.build_model(config.model)
        if config.parallel.compile:
            parallel.compile_blocks(self.model, "aot_eager")
        parallel.shard(self.model, place, config.parallel, seed=1)
        self.optimizer = optim.build(self.model, config.train)
        self.health = Health(place, policy)
        self.window = bits.from_bytes(torch.arange(32, dtype=torch.uint8).view(4, 8))

    def step(self, number: int, spoil: float = 1.0) -> float:
        loss = modelling.nats_per_bit(self.model, self.window) * spoil
        loss.backward()
        parts = optim.gradients(self.model)
        norm, bad = self.health.judge(number, loss.detach(), optim.square_sum(parts))
        optim.clip(parts, norm, 1.0)
        self.optimizer.found_inf = bad  # type: ignore[attr-defined]
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def values(self) -> list[Tensor]:
        """Copies of all weights and optimiser states."""
        states = [
            value
            for state in self.optimizer.state.values()
            for value in state.values()
            if isinstance(value, Tensor)
        ]
        return [
            parallel.local_part(v.detach()).clone() for v in (*self.model.parameters(), *states)
        ]


@pytest.fixture
def training(place: parallel.Place, small: Callable[..., Any]) -> Callable[..., Training]:
    return lambda policy="stop": Training(place, small(), policy)


def equal(one: list[Tensor], other: list[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def test_compiled_blocks_learn_the_same(place: parallel.Place, small: Callable[..., Any]) -> None:
    """Traced whole, and differentiated ahead of time; only the code at the end is not made, which
    takes half a minute."""
    losses = {}
    for compiled in (False, True):
        it = Training(place, small(parallel={"compile": compiled}), "stop")
        losses[compiled] = [it.step(number) for number in range(1, 4)]
    assert losses[True] == pytest.approx(losses[False], abs=1e-5)
    assert losses[True][2] < losses[True][0]


@pytest.mark.parametrize("compiled", [False, True])
def test_activations_computed_again_are_the_same(
    place: parallel.Place, small: Callable[..., Any], compiled: bool
) -> None:
    """To the last bit, under names that fit every checkpoint."""
    seen = {}
    for mode in ("none", "selective", "full"):
        wanted = {"activation_checkpointing": mode, "compile": compiled, "precision": "bf16"}
        it = Training(place, small(parallel=wanted), "stop")
        losses = [it.step(number) for number in range(1, 4)]
        seen[mode] = losses, it.values(), list(it.model.state_dict())
    for mode in ("selective", "full"):
        assert seen[mode][0] == seen["none"][0]
        assert equal(seen[mode][1], seen["none"][1])
        assert seen[mode][2] == seen["none"][2]


# ---------------------------------------------------------------------------------------
# Steps that are not finite


def test_a_skipped_step_leaves_weights_and_optimiser_untouched(
    training: Callable[..., Training],
) -> None:
    it = training("skip")
    it.step(1)
    before = it.values()
    it.step(2, spoil=float("nan"))
    assert equal(it.values(), before)
    it.step(3)
    assert not equal(it.values(), before)
    outcomes = it.health.outcomes(newest=True)
    assert [outcome.taken for outcome in outcomes] == [True, False, True]
    assert it.health.skipped == 1


def test_a_step_far_out_of_line_is_left_out(
    training: Callable[..., Training], place: parallel.Place
) -> None:
    it = training("stop")
    it.health.outliers = Outliers(place.device)
    for number in range(1, 71):
        it.step(number)
    before = it.values()
    it.step(71, spoil=100.0)
    assert equal(it.values(), before)
    it.step(72)
    assert not equal(it.values(), before)
    outcomes = it.health.outcomes(newest=True)  # and "stop" is for what is not finite only
    assert [outcome.step for outcome in outcomes if not outcome.taken] == [71]


def test_a_lasting_shift_becomes_the_line() -> None:
    """Nothing would ever be learned again otherwise."""
    outliers = Outliers(torch.device("cpu"), [[1.0, 1.0 + n % 2] for n in range(Outliers.WINDOW)])
    out = 0
    shifted = torch.tensor([9.0, 50.0])
    while outliers.judge(shifted):
        outliers.remember(shifted, torch.zeros(()))
        out += 1
        assert out < Outliers.WINDOW
    assert out > 0


def test_what_is_in_line_is_judged_alike_after_a_resume() -> None:
    device, good = torch.device("cpu"), torch.zeros(())
    one = Outliers(device)
    for number in range(300):
        one.remember(torch.tensor([1.0 + number % 3, 5.0]), good)
    one.remember(torch.tensor([1e9, float("nan")]), torch.ones(()))  # is not finite
    again = Outliers(device, msgspec.json.decode(msgspec.json.encode(one.kept())))
    assert again.kept() == one.kept()
    assert len(one.kept()) == Outliers.WINDOW
    for loss, out in ((4.0, False), (6.0, False), (8.0, True), (float("nan"), False)):
        values = torch.tensor([loss, 5.0])
        assert bool(one.judge(values)) is bool(again.judge(values)) is out, loss


def test_nothing_is_out_of_line_before_there_is_a_line() -> None:
    young = Outliers(torch.device("cpu"), [[1.0, 1.0]] * (Outliers.LEAST - 1))
    assert not young.judge(torch.tensor([1e6, 1e6]))


def test_nothing_changes_after_a_step_that_stops_the_run(
    training: Callable[..., Training],
) -> None:
    """Its verdict is read a step later, and that step must not train on."""
    it = training("stop")
    it.step(1)
    before = it.values()
    it.step(2, spoil=float("inf"))
    it.step(3)
    assert equal(it.values(), before)
    with pytest.raises(NotFinite, match=r"step 2: the loss of rank 0 is not finite"):
        it.health.outcomes(newest=False)


def test_training_lowers_the_loss(training: Callable[..., Training]) -> None:
    it = training()
    losses = [it.step(number) for number in range(1, 20)]
    assert losses[-1] < losses[0] - 0.1


def test_peaks_are_known_for_what_is_known_only() -> None:
    assert parallel.peak_flops("NVIDIA L4") == 121e12
    assert parallel.peak_flops("NVIDIA A100-SXM4-80GB") == 312e12
    assert parallel.peak_flops("NVIDIA H100 80GB HBM3") == 989e12
    for other in ("NVIDIA L40S", "NVIDIA H100 PCIe", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", None):
        assert parallel.peak_flops(other) is None


def test_more_ranks_than_gpus_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(Failed, match="this node shows"):
        parallel.start(configuration.Parallel(ranks=4, device="cuda"))


# ---------------------------------------------------------------------------------------
# Checkpoints


def counters(step: int) -> checkpoint.Counters:
    return checkpoint.Counters(step=step, tokens=100 * step)


def save(it: Training, place: parallel.Place, folder: Path, step: int) -> Any:
    saver = Saver(folder, place, it.config)
    saver.begin(it.model, it.optimizer, counters(step))
    saver.wait()
    return saver.outcome()


def test_a_checkpoint_brings_everything_back_bitwise(
    training: Callable[..., Training], place: parallel.Place, tmp_path: Path
) -> None:
    it = training()
    it.step(1)
    save(it, place, tmp_path, 1)
    saved = it.values()
    it.step(2)
    after = it.values()
    other = training()
    found, passed_over = checkpoint.load(tmp_path, place, other.model, other.optimizer)
    assert (found, passed_over) == (counters(1), [])
    assert equal(other.values(), saved)
    other.step(2)
    assert equal(other.values(), after)


def test_the_newest_whole_and_unchanged_one_is_loaded(
    training: Callable[..., Training], place: parallel.Place, tmp_path: Path
) -> None:
    it = training()
    it.step(1)
    it.config.checkpoint.keep = 9
    for step in (1, 2, 3):
        save(it, place, tmp_path, step)
    (tmp_path / "step-3" / checkpoint.MANIFEST).unlink()  # killed before its end
    (victim,) = (tmp_path / "step-2").glob("*.distcp")
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    found, passed_over = checkpoint.load(tmp_path, place, it.model, it.optimizer)
    assert found == counters(1)
    (text,) = passed_over
    assert "step-2 is damaged" in text and victim.name in text
    # What was half written gives way to a whole one.
    save(it, place, tmp_path, 3)
    assert [path.name for path in checkpoint.whole(tmp_path)] == ["step-1", "step-3"]
    # And so does what was damaged: it no longer counts as whole.
    save(it, place, tmp_path, 2)
    assert [path.name for path in checkpoint.whole(tmp_path)] == ["step-1", "step-2", "step-3"]
    found, passed_over = checkpoint.load(tmp_path, place, it.model, it.optimizer)
    assert (found, passed_over) == (counters(3), [])


def test_old_ones_go_only_when_the_new_one_is_whole(
    training: Callable[..., Training],
    place: parallel.Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = training()
    it.step(1)
    it.config.checkpoint.keep = 1
    save(it, place, tmp_path, 8)

    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(saving, "write_whole", full)
        with pytest.raises(Failed, match=r"step-10: rank 0: .*No space left on device.*MiB free"):
            save(it, place, tmp_path, 10)
    assert os.listdir(tmp_path) == ["step-8"]
    save(it, place, tmp_path, 10)
    assert os.listdir(tmp_path) == ["step-10"]


# ---------------------------------------------------------------------------------------
# Validation


def test_every_bit_of_the_scored_bytes_counts(
    training: Callable[..., Training], place: parallel.Place
) -> None:
    it = training()
    blocks = [torch.randint(0, 256, (n, 8), dtype=torch.uint8) for n in (4, 1)]
    scored = evaluate.evaluate(it.model, evaluate.Validation(blocks, 99), place, 7)
    assert scored.bits_per_byte == pytest.approx(8.0)  # a head of zeros guesses
    assert (scored.step, scored.scored_bytes, scored.of_bytes) == (7, 40, 99)
    for number in range(1, 20):
        it.step(number)
    whole = evaluate.Validation([bits.to_bytes(it.window)], None)
    scored = evaluate.evaluate(it.model, whole, place, 20)
    with torch.no_grad():
        logits = it.model(it.window).log_softmax(-1)
    right = logits.gather(-1, it.window.long().unsqueeze(-1))
    assert scored.bits_per_byte == pytest.approx(-right.sum().item() / 0.6931472 / 32, rel=1e-5)
