"""Alerts about the loss: not finite, or far above what it was. Rather none than a false one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from bitwatch.attach.loss_alerts import LossAlerts
from bitwatch.record import events
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.state import JOURNAL, RunState, Source, fold
from bitwatch.record.view import View
from bitwatch.supervise.spikes import Spikes
from bitwatch.supervise.watch import Watch
from bitwatch.supervise.watch_loss import QUIET, Losses, Rule
from tests.supervise.standins import of
from tests.trainer.conftest import make_small

RUN_STEPS = 10_000
SKIP, STOP = Rule("skip"), Rule("stop")


def step(number: int, loss: float | None = 0.25, **more: object) -> events.Step:
    return events.Step(
        **{"step": number, "loss": loss, "grad_norm": 0.4, "learning_rate": 1e-3} | more
    )


def said(losses: Losses, *steps: events.Step, **view: object) -> dict[str, events.Alert]:
    found = losses.look(View(**{"attempt": 1, "recent": list(steps)} | view))
    return {alert.id: alert for alert in found}


def spiked(values: Iterable[float], *, warms_up: bool = False) -> list[int]:
    """At which steps a spike was called."""
    spikes, calls = Spikes(), []
    for number, loss in enumerate(values):
        rate = 1e-3 * (min(1.0, (number + 1) / 500) if warms_up else 1.0)
        before = spikes.found
        spikes.take(step(number, loss, learning_rate=rate))
        if spikes.found is not None and before is None:
            calls.append(spikes.found.step)
    return calls


def quiet(count: int, seed: int = 1, first: int = 1, level: float = 0.25) -> list[events.Step]:
    noise = random.Random(seed)
    return [step(first + n, level * (1 + noise.gauss(0, 0.03))) for n in range(count)]


# -- not finite -------------------------------------------------------------------------


def test_a_loss_that_is_not_finite_is_said_with_what_the_trainer_does() -> None:
    losses = Losses(STOP)
    assert said(losses, step(1), step(2)) == {}
    alert = said(losses, step(3, math.nan))["loss-not-finite"]
    assert alert.severity == "error"
    assert alert.text == "the loss is not finite (nan): step 3"
    assert "first at step 3: loss nan, gradient norm 0.4" in alert.evidence
    assert any("the run ends" in line for line in alert.evidence)
    assert "--resume" in alert.next


def test_a_gradient_norm_that_is_not_finite_is_said_too() -> None:
    alert = said(Losses(STOP), step(1, grad_norm=math.inf))["loss-not-finite"]
    assert alert.text == "the gradient norm is not finite (inf): step 1"


def test_steps_that_are_left_out_are_counted_though_the_mean_is_finite() -> None:
    losses = Losses(SKIP)
    assert said(losses, step(10, skipped=7)) == {}  # of an earlier attempt
    alert = said(losses, step(20, skipped=10))["loss-not-finite"]
    assert alert.severity == "warning" and "left out" in alert.text
    assert "3 in all, the newest at step 20" in alert.evidence
    alert = said(losses, step(30, skipped=19))["loss-not-finite"]
    assert alert.text.endswith("step 20, at least 10 steps in all")


def test_steps_that_are_left_out_as_outliers_are_not_said_to_be_not_finite() -> None:
    losses = Losses(Rule("skip", skips_outliers=True))
    assert said(losses, step(10), step(20, skipped=3)) == {}


def test_it_is_over_after_many_finite_records_and_not_before() -> None:
    losses = Losses(SKIP)
    assert said(losses, step(1, math.nan))
    assert said(losses, *quiet(QUIET - 1, first=2))
    assert said(losses, step(2 + QUIET)) == {}


def test_what_lasts_is_an_error_though_steps_are_left_out() -> None:
    losses = Losses(SKIP)
    alert = said(losses, *(step(n, math.nan, skipped=n) for n in range(1, 12)))["loss-not-finite"]
    assert alert.severity == "error" and "nothing is learned" in alert.next


def test_of_a_training_that_is_not_ours_only_the_loss_counts() -> None:
    """With loss scaling its gradient norm overflows now and then, and nothing is wrong."""
    losses = Losses()
    assert said(losses, step(1, grad_norm=math.inf), foreign=True) == {}
    alert = said(losses, step(2, math.nan), foreign=True)["loss-not-finite"]
    assert alert.severity == "error" and "where it was started" in alert.next


def test_another_attempt_begins_anew() -> None:
    losses = Losses(STOP)
    assert said(losses, step(5, math.nan))
    assert said(losses, step(4), attempt=2) == {}


def test_the_record_has_it_once_raised_and_once_cleared_when_the_attempt_ends(
    tmp_path: Path,
) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"), make_small())
    for steps in ([step(1)], [step(1), step(2, math.nan)], [step(2, math.nan), step(3, math.nan)]):
        watch.look(View(attempt=1, state="running", recent=steps), 1000.0)
    watch.look(View(attempt=1), 1000.0)
    alerts = of(read_all(tmp_path / "journal.jsonl")[0], events.Alert)
    assert [(a.id, a.severity, a.cleared) for a in alerts] == [
        ("loss-not-finite", "error", False),
        ("loss-not-finite", "warning", True),
    ]


def test_of_a_training_that_is_watched_it_is_raised_and_cleared_too(tmp_path: Path) -> None:
    """Also what somebody has raised who watched before."""
    path = tmp_path / "journal.jsonl"
    state = RunState()
    fold(state, Source("rank", 1, 0), [step(1), step(2, math.nan)])
    LossAlerts(JournalWriter(path), 1, RunState()).look(state)
    (raised,) = of(read_all(path)[0], events.Alert)
    assert (raised.id, raised.severity, raised.attempt) == ("loss-not-finite", "error", 1)
    later = RunState()
    fold(later, JOURNAL, [raised])
    fold(later, Source("rank", 1, 0), [step(100 + n) for n in range(5)])
    LossAlerts(JournalWriter(path), 1, later).look(later)
    assert [a.cleared for a in of(read_all(path)[0], events.Alert)] == [False, True]


# -- spikes -----------------------------------------------------------------------------


def test_a_spike_is_said_by_how_much_and_clears_when_it_has_come_down() -> None:
    losses = Losses(STOP)
    assert said(losses, *quiet(100)) == {}
    up = [step(101 + n, 0.5 + 0.1 * n, grad_norm=3.0) for n in range(4)]
    alert = said(losses, *up, checkpoints=[events.Checkpoint(step=90)])["loss-spike"]
    assert alert.severity == "warning"
    assert alert.text.startswith("the loss has jumped from 0.2") and "to 0.5" in alert.text
    assert "at step 101; the gradient norm rose too" in alert.text
    assert "gradient norm 3, usually 0.4" in alert.evidence
    assert "the checkpoint of step 90" in alert.next
    higher = said(losses, step(105, 0.9))["loss-spike"]
    assert higher.text == alert.text and "0.9 at step 105" in higher.evidence[1]
    assert said(losses, step(106, 0.26), step(107, 0.26))
    assert said(losses, step(108, 0.26)) == {}


def test_a_norm_that_did_not_rise_is_said() -> None:
    losses = Losses(STOP)
    alert = said(losses, *quiet(100), *(step(101 + n, 0.6) for n in range(4)))["loss-spike"]
    assert "norm rose" not in alert.text
    assert any("did not rise" in line for line in alert.evidence)


def test_one_wild_record_or_one_that_is_not_finite_is_no_spike() -> None:
    spikes = Spikes()
    for number in range(400):
        wild = 5.0 if number % 9 == 0 else math.nan if number % 7 == 0 else 0.25
        spikes.take(step(number, wild))
        assert spikes.found is None


def test_the_first_steps_of_a_resumed_attempt_are_no_spike() -> None:
    losses = Losses(STOP)
    assert said(losses, *quiet(100)) == {}
    resumed = quiet(40, level=0.5, first=90)
    assert said(losses, *resumed, attempt=2) == {}


def falling(number: int) -> float:
    return 0.085 + 0.6 * math.exp(-number / 900)


def small_batch(noise: random.Random, number: int) -> float:
    return falling(number) * abs(1 + noise.gauss(0, 0.4))


def heavy_tails(noise: random.Random, number: int) -> float:
    return falling(number) * math.exp(noise.gauss(0, 0.5))


def single_wild_ones(noise: random.Random, number: int) -> float:
    wild = 4.0 if noise.random() < 0.02 else 1.0
    return falling(number) * (1 + noise.gauss(0, 0.02)) * wild


def text_in_blocks(noise: random.Random, number: int) -> float:
    return falling(number) * (1 + 0.1 * (number // 50 % 2) + noise.gauss(0, 0.02))


@pytest.mark.parametrize("kind", [small_batch, heavy_tails, single_wild_ones, text_in_blocks])
def test_no_spike_is_called_in_long_and_noisy_runs(
    kind: Callable[[random.Random, int], float],
) -> None:
    noise = random.Random(7)
    assert spiked(kind(noise, number) for number in range(RUN_STEPS)) == []


def test_a_bump_of_the_warm_up_is_no_spike() -> None:
    """0.69 rises to 1.03 while the learning rate rises, and falls from there."""
    noise = random.Random(3)
    bump = [
        0.69 * (1 + 0.5 * math.exp(-(((n - 250) / 60) ** 2))) + noise.gauss(0, 0.01)
        for n in range(500)
    ]
    assert spiked([*bump, *(falling(n) for n in range(500))], warms_up=True) == []


def test_spikes_that_come_down_within_some_steps_are_found() -> None:
    found = 0
    for seed in range(10):
        noise = random.Random(seed)
        calm = [0.25 * (1 + noise.gauss(0, 0.03)) for _ in range(600)]
        high = [value + 0.2 * math.exp(-n / 30) for n, value in enumerate(calm[:300])]
        calls = spiked([*calm, *high])
        found += calls == [600]
    assert found == 10
