"""What is said as a name with a number: "loss: 2.5e-4, lr=.001 | 'epoch': '2'"."""

from __future__ import annotations

import re

from bitwatch.attach.dialect_tables.numbers import NUMBER, WHOLE, number
from bitwatch.attach.said import Value

# What people call the values of a step, and what makes them ours.
NAMES: dict[str, tuple[str, float]] = {
    **dict.fromkeys(
        (
            "loss",
            "train_loss",
            "train loss",
            "training loss",
            "training_loss",
            "train/loss",
            "loss/train",
            "lm loss",
            "lm_loss",
            "loss_step",
            "train_loss_step",
            "total_loss",
            "total loss",
            "avg_loss",
            "ce_loss",
        ),
        ("loss", 1.0),
    ),
    **dict.fromkeys(
        (
            "val loss",
            "val_loss",
            "eval_loss",
            "eval loss",
            "valid loss",
            "valid_loss",
            "validation loss",
            "validation_loss",
            "test loss",
            "test_loss",
            "val/loss",
            "eval/loss",
            "eval_val_loss",
            "loss/val",
        ),
        ("evaluation_loss", 1.0),
    ),
    **dict.fromkeys(
        (
            "lr",
            "learning_rate",
            "learning rate",
            "train/lr",
            "train/learning_rate",
            "lr-adam",
            "lr-adamw",
            "lr-sgd",
            "last_lr",
        ),
        ("learning_rate", 1.0),
    ),
    **dict.fromkeys(
        (
            "grad_norm",
            "grad norm",
            "gradnorm",
            "gnorm",
            "gradient norm",
            "grad-norm",
            "gradient_norm",
            "train/grad_norm",
            "norm",
        ),
        ("grad_norm", 1.0),
    ),
    **dict.fromkeys(
        (
            "step_s",
            "step_time",
            "step time",
            "step time (s)",
            "iter time (s)",
            "iter_time",
            "time per step",
            "time/step",
            "s/it",
            "s/step",
            "elapsed time per iteration (s)",
        ),
        ("step_s", 1.0),
    ),
    **dict.fromkeys(
        (
            "dt_ms",
            "step_ms",
            "step time (ms)",
            "iter time (ms)",
            "ms/step",
            "time (ms)",
            "elapsed time per iteration (ms)",
            "step_time_ms",
        ),
        ("step_s", 1e-3),
    ),
    **dict.fromkeys(
        (
            "tok/s",
            "tok/sec",
            "tokens/s",
            "tokens/sec",
            "tokens_per_sec",
            "tokens_per_second",
            "tokens per second",
            "tps",
            "tokens_per_s",
            "tgs",
            "throughput (tokens/s)",
            "train_tokens_per_second",
        ),
        ("tokens_per_s", 1.0),
    ),
    **dict.fromkeys(
        (
            "samples/s",
            "samples/sec",
            "samples_per_sec",
            "samples_per_second",
            "samplespersec",
            "examples/s",
            "train_samples_per_second",
            "samples per second",
            "currsamplespersec",
            "img/s",
        ),
        ("samples_per_s", 1.0),
    ),
    **dict.fromkeys(
        (
            "step",
            "global_step",
            "global step",
            "iter",
            "iteration",
            "iters",
            "steps",
            "train_step",
            "update",
            "num_updates",
            "train step",
            "training step",
        ),
        ("step", 1.0),
    ),
    **dict.fromkeys(("max_steps", "total_steps", "num_steps", "steps_total"), ("steps", 1.0)),
    **dict.fromkeys(("epoch", "epochs"), ("epoch", 1.0)),
    **dict.fromkeys(("mfu",), ("mfu", 1.0)),
    **dict.fromkeys(
        ("perplexity", "ppl", "val ppl", "eval_ppl", "eval_perplexity"), ("perplexity", 1.0)
    ),
    **dict.fromkeys(
        (
            "tokens",
            "num_tokens",
            "num_input_tokens_seen",
            "tokens_seen",
            "consumed tokens",
            "ntokens",
        ),
        ("tokens", 1.0),
    ),
    **dict.fromkeys(("train_runtime",), ("runtime_s", 1.0)),
}
PAIR = re.compile(
    rf"""(?<![\w/@.-])([A-Za-z][\w/@.-]*(?:\ [a-z][\w/]*){{0,3}}(?:\ ?\([a-z/]+\))?)["']?\s*[:=]\s*["'\[(]{{0,2}}"""
    rf"""({NUMBER})(?![\w.]*\w)(\s*%)?""",
    re.VERBOSE,
)


def pairs(text: str) -> dict[str, Value]:
    """What is named in the text and known by name; the first of several of a kind."""
    values: dict[str, Value] = {}
    for name, digits, percent in PAIR.findall(text):
        known = _known(name.lower())
        if known is None or known[0] in values:
            continue
        try:
            value = number(digits) * known[1]
            if known[0] in WHOLE:
                values[known[0]] = int(value)
            else:
                values[known[0]] = value / 100 if percent else value
        except (ValueError, OverflowError):
            continue
    return values


def _known(name: str) -> tuple[str, float] | None:
    """By the whole name, else by its end: in "average lm loss" the last words count."""
    while True:
        if name in NAMES:
            return NAMES[name]
        _, space, name = name.partition(" ")
        if not space:
            return None
