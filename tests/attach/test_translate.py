"""What a log says becomes records: steps and their numbers, attempts, parameters, ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from bitwatch.attach.dialects import Listener
from bitwatch.attach.log_text import Splitter
from bitwatch.attach.said import Line, Said, Value, What
from bitwatch.attach.steps import Restart
from bitwatch.attach.translate import Told, Translator
from bitwatch.record import events

NOW = 1_800_000_000.0


def said(what: What, text: str = "", t: float | None = None, **values: Value) -> Said:
    return Said(what, Line(text or what, 7, t, "train.log"), "a test", values)


def step(
    number: int | None, loss: float | None = 1.0, t: float | None = None, **more: Value
) -> Said:
    values = {"step": number, "loss": loss, **more}
    return said("step", t=t, **{name: value for name, value in values.items() if value is not None})


def heard(translator: Translator, *words: Said, at: float = NOW) -> list[Told]:
    return list(translator.hear(words, at))


def numbers(told: Sequence[Told]) -> list[int]:
    return [one.step for one in told if isinstance(one, events.Step)]


def test_a_step_is_a_record_and_the_first_begins_the_training() -> None:
    first, record = heard(Translator(), step(3, 2.5, learning_rate=1e-3, mfu=0.4, tokens_per_s=900))
    assert isinstance(first, events.Phase) and first.name == "train"
    assert isinstance(record, events.Step)
    assert (record.step, record.loss, record.learning_rate) == (3, 2.5, 1e-3)
    assert (record.mfu, record.tokens_per_s, record.t) == (0.4, 900, NOW)
    (odd,) = heard(translator := Translator(), step(1), step(2, math.nan))[2:]
    assert isinstance(odd, events.Step) and math.isnan(odd.loss or 0.0)
    assert translator.steps.newest is odd


def test_what_each_rank_says_of_the_same_step_is_told_once() -> None:
    words = [step(number) for number in (1, 1, 2, 1, 2, 3, 2, 3, 4)]
    assert numbers(heard(Translator(), *words)) == [1, 2, 3, 4]


def test_the_time_of_a_step_is_that_between_lines_where_the_log_does_not_say_it() -> None:
    translator = Translator()
    told = heard(translator, *(step(n, t=NOW - 100 + 2 * n) for n in (10, 20, 30)))
    assert isinstance(told[-1], events.Step)
    assert told[-1].step_s == 2.0 and told[-1].t == NOW - 40
    assert translator.steps.every == 10
    (said_itself,) = heard(translator, step(40, t=NOW, step_s=0.5))
    assert isinstance(said_itself, events.Step) and said_itself.step_s == 0.5
    (ahead,) = heard(translator, step(50, t=NOW + 7200))  # a clock of another zone
    assert isinstance(ahead, events.Step) and ahead.t == NOW


@pytest.mark.parametrize("zone_s", [-7200.0, 5 * 3600.0, -90.0])
def test_a_log_of_another_zone_is_as_new_as_its_lines_are(zone_s: float) -> None:
    translator = Translator()
    heard(translator, *(step(n, t=NOW - 20 + zone_s + 2 * n) for n in (1, 2, 3)), at=NOW - 14)

    def live(*numbers: int) -> list[events.Step]:
        words = [step(n, t=NOW - 20 + zone_s + 2 * n) for n in numbers]
        told = translator.hear(words, NOW - 20 + 2 * numbers[-1], live=True)
        return [one for one in told if isinstance(one, events.Step)]

    first, second = live(9, 10)
    assert (first.t, second.t) == (NOW - 2, NOW)
    (third,) = live(11)
    assert third.t == NOW + 2 and third.step_s == 2.0  # nothing of the zone is in it


def test_a_log_whose_clock_is_ours_keeps_the_times_of_its_lines() -> None:
    translator = Translator()
    words = [step(1, t=NOW - 120), step(2, t=NOW - 20)]  # written together, from a buffer
    told = [one for one in translator.hear(words, NOW, live=True) if isinstance(one, events.Step)]
    assert [one.t for one in told] == [NOW - 120, NOW - 20]


def test_lines_with_a_loss_and_no_number_take_that_of_the_bar() -> None:
    words = [step(10, None, steps=500), step(None, 3.0), step(20, None, steps=500), step(None, 2.0)]
    translator = Translator()
    told = [one for one in heard(translator, *words) if isinstance(one, events.Step)]
    assert [(one.step, one.loss) for one in told] == [(10, None), (10, 3.0), (20, 2.0)]
    assert translator.steps.total == 500
    assert numbers(heard(Translator(), *(step(None, 1.0) for _ in range(3)))) == [1, 2, 3]


def test_steps_that_fall_back_to_the_beginning_are_a_new_attempt() -> None:
    told = heard(Translator(), *(step(n) for n in (0, 10, 20, 30, 40)), step(0), step(10))
    at = next(i for i, one in enumerate(told) if isinstance(one, Restart))
    restart = told[at]
    assert isinstance(restart, Restart) and "fall back from 40 to 0" in restart.why
    assert numbers(told[:at]) == [0, 10, 20, 30, 40]
    assert numbers(told[at:]) == [0, 10]


def test_while_the_ranks_are_the_same_it_is_an_epoch_that_counts_for_itself() -> None:
    translator = Translator()
    translator.steps.may_restart = False
    told = heard(translator, *(step(n) for n in (0, 10, 20, 30, 40)), step(0), step(10))
    assert not any(isinstance(one, Restart) for one in told)
    assert numbers(told)[-1] == 50
    epochs = [step(n, epoch=e) for e in (1, 2) for n in (25, 50, 75, 100)]
    assert numbers(heard(Translator(), *epochs)) == [25, 50, 75, 100, 125, 150, 175, 200]


def test_a_restart_that_the_launcher_tells_of_ends_the_attempt_with_its_cause() -> None:
    words = [step(1), step(2), said("exception", type="ValueError", message="bad", rank=1)]
    told = heard(Translator(), *words, said("restart", "will restart worker group"), step(1))
    (restart,) = [one for one in told if isinstance(one, Restart)]
    assert restart.ended == ("failed", "rank 1: ValueError: bad")
    before_a_step = heard(Translator(), said("restart", "will restart worker group"))
    assert not any(isinstance(one, Restart) for one in before_a_step)


def test_a_training_that_resumes_in_the_middle_has_begun_again_when_its_log_says_so() -> None:
    words = [*(step(n) for n in range(6)), said("begins"), step(3)]
    assert sum(isinstance(one, Restart) for one in heard(Translator(), *words)) == 1


def test_who_watches_next_does_not_tell_of_the_same_steps_again() -> None:
    translator = Translator()
    translator.steps.go_on_from(20)
    assert numbers(heard(translator, *(step(n) for n in (18, 19, 20, 21, 22)))) == [21, 22]


def test_parameters_are_the_models_and_never_one_ranks_part() -> None:
    translator = Translator()
    told = heard(translator, said("target", parameters=1000), said("built", parameters=990))
    (model,) = [one for one in told if isinstance(one, events.ModelBuilt)]
    assert (model.asked, model.built) == (1000, 990)
    told = heard(translator, said("built", parameters=500), said("built", parameters=9999, shard=1))
    assert not any(isinstance(one, events.ModelBuilt) for one in told)


@pytest.mark.parametrize(
    ("text", "parameters", "within"),
    [
        ("number of parameters: 0.11M", 110_000, 10_000),
        ("Model size: 124M params", 124_000_000, 1_000_000),
        ("0.17 billion parameters", 170_000_000, 10_000_000),
        ("Model created with 169,990,657 parameters (0.17B)", 169_990_657, 0),
        ("110000 parameters", 110_000, 0),
    ],
)
def test_a_number_that_a_log_rounds_is_not_taken_as_exact(
    text: str, parameters: int, within: int
) -> None:
    (model,) = heard(Translator(), said("built", text, parameters=parameters))
    assert isinstance(model, events.ModelBuilt)
    assert (model.built, model.within) == (parameters, within)


def test_the_incidents_log() -> None:
    text = b"""\
2025-08-24 07:14:00,709 [INFO] Target: 1,208,606,722 parameters
2025-08-24 07:14:00,710 [INFO] Hardware: 4x NVIDIA L4 GPUs
2025-08-24 07:15:48,804 [INFO] Target: 679,962,626 parameters
2025-08-24 07:15:48,804 [INFO] Hardware: 4x NVIDIA L4 GPUs
2025-08-24 07:15:57,037 [INFO] \xe2\x9c\x85 Model created with 169,990,657 parameters (0.17B)
2025-08-24 07:16:02,502 [WARNING] Too many dataloader workers: 4 (max is dataset.num_shards=2). \
Stopping 2 dataloader workers.
"""
    said_ = Listener().hear(Splitter("train.log").feed(text))
    told = heard(translator := Translator(), *said_)
    notes = " | ".join(one.text for one in told if isinstance(one, events.Note))
    assert "another target: 679,962,626 parameters, 1,208,606,722 before (line 3)" in notes
    assert "169,990,657 parameters are one rank's part of 679,962,626" in notes
    assert not any(isinstance(one, events.ModelBuilt) for one in told)
    (alert,) = [one for one in told if isinstance(one, events.Alert)]
    assert alert.id == "workers-exceed-shards" and "4 workers for 2 shards" in alert.text
    assert "train.log, line 6" in alert.evidence[0]
    assert translator.ranks == 4
    assert translator.words.verdict() is None


def test_the_first_failure_is_the_cause_and_what_follows_from_it_is_not() -> None:
    translator = Translator()
    heard(
        translator,
        step(1),
        said("exception", type="RuntimeError", message="Connection closed by peer", rank=0),
        said("out-of-memory", gpu=1, wanted_mib=2048.0, where="cuda", rank=1),
        said("failure", rank=1, exit_code=1),
        said("signal", pid=77, signal="SIGTERM"),
    )
    assert translator.words.verdict() == (
        "failed",
        "rank 1: out of memory on GPU 1 (it wanted 2,048 MiB)",
    )


def test_what_steps_follow_upon_was_not_the_end() -> None:
    translator = Translator()
    heard(translator, step(1), said("exception", type="OSError", message="tried again"))
    assert translator.words.verdict() is not None
    heard(translator, step(2), step(3))
    assert translator.words.verdict() is None
    heard(translator, said("done", "training is done"))
    assert translator.words.verdict() == ("done", "")
    heard(translator, step(4))
    assert translator.words.verdict() is None
    heard(translator, said("exception", type="KeyboardInterrupt", message=""))
    assert translator.words.verdict() == ("stopped", "KeyboardInterrupt")


def test_a_warning_at_every_step_is_told_once() -> None:
    warnings = [said("warning", f"[WARNING] gradient {n}.5 is large") for n in range(100)]
    assert len(heard(Translator(), *warnings)) == 1
