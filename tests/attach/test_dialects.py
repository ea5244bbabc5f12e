"""What the logs of all kinds of trainings say, and that prose says nothing."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitwatch.attach.dialect_tables.names import pairs
from bitwatch.attach.dialect_tables.numbers import count
from bitwatch.attach.dialect_tables.rule import Rule
from bitwatch.attach.dialects import RULES, Listener
from bitwatch.attach.translate import Translator
from bitwatch.record import codec, events
from tests.attach.hearing import heard, one
from tests.report.incident import LOG as INCIDENT


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.dialect}-{rule.what}")
def test_each_entry_of_the_tables_hears_its_sample_and_the_sieve_passes_it(rule: Rule) -> None:
    (said,) = heard(rule.sample)
    assert (said.dialect, said.what) == (rule.dialect, rule.what)
    assert rule.word.lower() in rule.sample.lower()
    assert Listener().sieve().spans(rule.sample.encode() + b"\n")
    coloured = heard(f"\x1b[32m{rule.sample}\x1b[0m\r\n")
    assert [(s.what, s.values) for s in coloured] == [(said.what, said.values)]


def test_the_log_of_the_incident() -> None:
    found = heard(INCIDENT)
    begin = time.mktime((2025, 8, 24, 7, 14, 0, 0, 0, -1))
    assert [(s.what, s.line.number, dict(s.values)) for s in found] == [
        ("target", 1, {"parameters": 1_208_606_722}),
        ("hardware", 2, {"gpus": 4, "name": "NVIDIA L4"}),
        (
            "configuration",
            3,
            {
                "d_model": 2048,
                "nhead": 32,
                "num_layers": 24,
                "dim_feedforward": 8192,
                "max_seq_len": 2048,
            },
        ),
        ("target", 4, {"parameters": 679_962_626}),
        ("hardware", 5, {"gpus": 4, "name": "NVIDIA L4"}),
        ("built", 6, {"parameters": 169_990_657}),
        ("begins", 7, {}),
        ("workers-exceed-shards", 8, {"workers": 4, "shards": 2, "stopped": 2}),
    ]
    assert found[0].line.t == pytest.approx(begin + 0.709)
    assert found[-1].line.t == pytest.approx(begin + 122.502)
    assert {s.line.source for s in found} == {"training.log"}


STEPS = [
    (
        "{'loss': 2.3, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.1}",
        {"loss": 2.3, "grad_norm": 1.5, "learning_rate": 5e-05, "epoch": 0.1},
    ),
    ("{'loss': 'nan', 'grad_norm': 'inf', 'epoch': '1'}", {"grad_norm": float("inf"), "epoch": 1}),
    (
        "[titan] 2026-02-24 19:46:17,508 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.1"
        "  \x1b[38;2;180;60;0mgrad_norm: 26.6  \x1b[33mmemory: 66.91GiB(37.51%)  \x1b[34mtps:"
        " 10,050  \x1b[36mtflops: 314.71  \x1b[35mmfu: 14.0%\x1b[39m",
        {"step": 10, "loss": 7.1, "grad_norm": 26.6, "tokens_per_s": 10_050, "mfu": 0.14},
    ),
    (
        "iter 100: loss 3.12, time 130.11ms, mfu -100.00%",
        {"step": 100, "mfu": -1, "step_s": 0.13011},
    ),
    (
        "step 00010/21400 (0.05%) | loss: 3.1 | grad norm: 0.41 | lrm: 1.00 | dt: 100.00ms |"
        " tok/sec: 1,200 | mfu: 40.1 | total time: 0.02m | eta: 12.1m",
        {"step": 10, "steps": 21400, "loss": 3.1, "grad_norm": 0.41, "mfu": 0.401},
    ),
    (
        "Epoch 2:  50%|#####     | 50/100 [00:10<00:10,  4.9it/s, v_num=0, train_loss=2.1]",
        {"step": 250, "epoch": 2.5, "loss": 2.1, "eta_s": 10},
    ),
    (
        "Epoch 2/3: 100%|##########| 50/50 [1:00:10<00:00,  2.00s/it, loss=1.5, lr=0.001]",
        {"step": 100, "steps": 150, "step_s": 2, "learning_rate": 0.001},
    ),
    ("steps: 10 loss: 2.3 iter time (s): 0.5 samples/sec: 16.0", {"samples_per_s": 16, "step": 10}),
    ("step 12 loss 3.2", {"step": 12, "loss": 3.2}),
    ("[rank0]: Step [12/500], Loss: 3.2000", {"step": 12, "steps": 500, "loss": 3.2, "rank": 0}),
    ("Epoch [1/5], Step [100/600], Loss: 2.1", {"epoch": 1, "step": 100, "steps": 600}),
    ('{"step": 1200, "loss": 2.31, "lr": 2.5e-4}', {"step": 1200, "loss": 2.31}),
    ("epoch=3 train_loss=0.71 lr=1e-3", {"epoch": 3, "loss": 0.71, "learning_rate": 1e-3}),
    ("Iteration 1,200: train loss = 3.10", {"step": 1200, "loss": 3.1}),
    ("step=5 loss=nan", {"step": 5}),
    (
        "[INFO] Step 100 | Loss 3.21 | LR 1.00e-04 | 1,234 tok/s",
        {"step": 100, "loss": 3.21, "learning_rate": 1e-4, "tokens_per_s": 1234},
    ),
    ("step 10/20 loss 2.31 (310.0 ms/step)", {"step": 10, "steps": 20, "step_s": 0.31}),
    ("Train Epoch: 1 [15000/60000 (25%)]\tLoss: 2.303", {"epoch": 1.25, "loss": 2.303}),
    ("| epoch   1 |   200/ 2000 batches | lr 20.00 | loss  7.64", {"epoch": 1.1, "loss": 7.64}),
]


@pytest.mark.parametrize(("text", "values"), STEPS, ids=[text[:40] for text, _ in STEPS])
def test_steps_with_their_values(text: str, values: dict[str, Any]) -> None:
    what, found = one(text)
    assert what == "step"
    assert {name: found.get(name) for name in values} == pytest.approx(values)
    assert set(found) >= {"step"} or set(found) >= {"epoch"}
    if "nan" in text:
        assert found["loss"] != found["loss"]


OTHERS = [
    ("{'eval_loss': '2.1', 'eval_runtime': '3.2', 'epoch': '1'}", "evaluation", {"loss": 2.1}),
    ("{'train_runtime': '12.5', 'train_loss': '2.2', 'epoch': '1'}", "done", {"runtime_s": 12.5}),
    ("step 0: train loss 4.2, val loss 4.3", "evaluation", {"step": 0, "loss": 4.3}),
    ("step 500 val_loss=3.05", "evaluation", {"step": 500, "loss": 3.05}),
    ("number of parameters: 123.59M", "built", {"parameters": 123_590_000}),
    ("Model size: 124M params", "built", {"parameters": 124_000_000}),
    ("rank 2 holds 302,149,632 parameters of its shard", "built", {"shard": 1}),
    ("Target model size: 1.21B parameters", "target", {"parameters": 1_210_000_000}),
    ("Saved checkpoint to /data/step-100", "checkpoint", {"path": "/data/step-100", "step": 100}),
    ("Killed", "signal", {"signal": "SIGKILL"}),
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 3; 22.20 GiB total"
        " capacity; 20.11 GiB already allocated; 100.00 MiB free; 21.00 GiB reserved)",
        "out-of-memory",
        {"gpu": 3, "wanted_mib": 512, "free_mib": 100, "where": "cuda"},
    ),
    (
        " 1%|   | 24/1752 [01:08<1:22:51,  2.88s/it][rank5]:[E602 11:17:52.185053341"
        " ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=7, OpType=_REDUCE_SCATTER_BASE, NumelIn=5, NumelOut=6,"
        " Timeout(ms)=600000) ran for 600061 milliseconds before timing out.",
        "timeout",
        {"rank": 5, "operation": "reduce_scatter_base", "seconds": 600.061, "sequence": 7},
    ),
    (
        "[default] Worker group FAILED. 1/3 attempts left; will restart worker group",
        "restart",
        {"attempt": 3, "restarts_left": 1},
    ),
]


@pytest.mark.parametrize(("text", "what", "values"), OTHERS, ids=[t[:40] for t, _, _ in OTHERS])
def test_what_else_is_said(text: str, what: str, values: dict[str, Any]) -> None:
    said, found = one(text)
    assert said == what
    assert {name: found.get(name) for name in values} == pytest.approx(values)


@pytest.mark.parametrize(
    "text",
    [
        "loss of connection to the store",
        "step 3: install the requirements",
        "In step 3 the loss of 4 people was reported",
        "see step 2 of the guide, then expect a loss",
        "the loss is computed in float32",
        "epoch 5 begins",
        "num decayed parameter tensors: 50, with 124,354,560 parameters",
        "0         Non-trainable params",
        "the function takes 3 parameters",
        "Loading checkpoint shards: 100%|##########| 2/2 [00:01<00:00,  1.72it/s]",
        "Map:  40%|####      | 400/1000 [00:01<00:01, 300.00 examples/s]",
        "Tokenizing:  40%|####      | 400/1000 [00:01<00:01, 300.00it/s]",
        "  0%|          | 0/3 [00:00<?, ?it/s]",
        "a checkpoint will be saved every 500 steps",
        "Failed to save checkpoint to /data",
        "no errors, no warnings, nothing killed",
        "the target of this project is to train well",
        "Hardware: unknown",
        "training data: 3 files",
        "{'loss': 'broken",
        "set stop_loss 12.5 at step_size 3",
    ],
)
def test_prose_says_nothing(text: str) -> None:
    assert heard(text) == []


def test_a_real_bar_of_tqdm_gives_its_steps() -> None:
    from tqdm import tqdm

    out = io.StringIO()
    with tqdm(total=20, desc="Training", file=out, mininterval=0, ascii=True) as bar:
        for step in range(20):
            bar.set_postfix(loss=2.5 - step / 10)
            bar.update()
    what, values = one(out.getvalue() + "\n")
    assert what == "step"
    assert (values["step"], values["steps"]) == (20, 20)
    assert values["loss"] == pytest.approx(0.6)
    assert values["step_s"] > 0


def test_a_shorter_bar_within_a_training_is_not_its_progress() -> None:
    bars = [
        " 10%|#  | 10/100 [00:10<00:90,  1.0it/s]",
        " 50%|## | 4/8 [00:01<00:01,  4.0it/s]",
        " 11%|#  | 11/100 [00:13<00:90,  1.0it/s]",
        "100%|###| 100/100 [01:40<00:00,  1.0it/s]",
        " 50%|## | 4/8 [00:01<00:01,  4.0it/s]",
    ]
    assert [s.values["step"] for s in heard("\n".join(bars))] == [10, 11, 100, 4]


def test_a_known_trainer_does_not_hide_what_another_line_says() -> None:
    step = "iter 1: loss 3.1, time 9.0ms, mfu 1.0%"
    glued = f"{step}[rank0]:[E602 11:17:52.1 ProcessGroupNCCL.cpp:632] [Rank 0] Exception: gone"
    assert [s.what for s in heard("\n".join([step, step, glued]))] == ["step", "step", "error"]


def test_numbers_as_people_write_them() -> None:
    assert count("1,208,606,722") == 1_208_606_722
    assert count("0.17B") == 170_000_000
    assert count("1.5 million") == 1_500_000
    found = pairs("loss: 2.5e-4, lr=.001 | mfu: 40.1% | 'epoch': '2' dt=3 tok/sec: 1,200")
    assert found == pytest.approx(
        {"loss": 2.5e-4, "learning_rate": 0.001, "mfu": 0.401, "epoch": 2, "tokens_per_s": 1200}
    )


PIECES = [rule.sample for rule in RULES] + ["Traceback (most recent call last):", "Failures:", "\n"]


@settings(max_examples=40)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=30)), max_size=8))
def test_no_text_breaks_the_listener(parts: list[str]) -> None:
    for said in heard(" ".join(parts)) + heard("\n".join(parts)):
        assert said.line.text.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "step: @ loss: 1.0", "{'loss': 1.0, 'step': @}", "iter @: loss 1.2, time 3ms",
        "Epoch @ Step @ Loss 1.0", "100%|####| @/@ [00:01<00:00, 3it/s, loss=1.0]",
        "number of parameters: @", "step 5 loss 1.0 tokens @", "{'loss': 1.0, 'epoch': @}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("digits", [20, 400])
def test_a_number_that_nobody_counts_to_harms_nothing(text: str, digits: int) -> None:
    said = heard("iter 1: loss 3.0, time 3ms\n" + text.replace("@", "9" * digits))
    for told in Translator().hear(said, 1000.0):
        assert isinstance(told, events.Record) and codec.decode(codec.encode(told))
        assert not isinstance(told, events.Step) or told.step < 100


def test_a_hostile_line_takes_no_time_worth_mentioning() -> None:
    """No pattern goes over a line again and again: that would take minutes here."""
    begin = time.process_time()
    listener = Listener()
    for rule in (*RULES, "loss ", "a=1 ", "[", "File ", "'epoch' {", "x", "1,", "step 1 loss "):
        text = rule if isinstance(rule, str) else rule.sample
        heard((text * 4096)[:4096] + "\n" + (text[:9] * 1000)[:4096], listener)
    assert time.process_time() - begin < 60
