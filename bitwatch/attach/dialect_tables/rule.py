"""What one entry of a table of dialects is, and how its words become values.

The named groups of a pattern are the values that a line has. A group's ending may say what it
is counted in: `step_ms` and `step_s_each` become step_s, `mfu_percent` becomes mfu, `wanted`
with its unit becomes wanted_mib. A group `pairs` is searched for whatever is named in it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from typing import NamedTuple

from bitwatch.attach.said import Value, What

NUMBER = r"[-+]?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|NaN|inf(?:inity)?|Infinity)"
COUNT = r"\d+(?:,\d{3})+|\d+(?:\.\d+)?"

Values = dict[str, Value]


class Rule(NamedTuple):
    """One shape of a line. `word` is in each such line, in any case: lines without it are not
    looked at closer; an empty one makes all lines be. `constants` are values that every such
    line has. `then` may change the values, and says what the line is, or "" for nothing."""

    dialect: str
    what: What
    word: str
    pattern: str
    sample: str
    constants: Values = {}
    then: Callable[[What, Values, str], What | str] | None = None


class Compiled:
    """A rule, ready to be tried on a line."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.word = rule.word.lower()
        self.search = re.compile(rule.pattern).search
        groups = re.compile(rule.pattern).groupindex
        self._plan = [(at, *_conversion(name)) for name, at in groups.items()]

    def values(self, found: re.Match[str]) -> Values:
        values: Values = dict(self.rule.constants)
        for at, name, convert in self._plan:
            text = found[at]
            if text is None:
                continue
            if name == "pairs":
                values.update(pairs(text))
                continue
            try:
                value = convert(text)
            except (ValueError, OverflowError, ZeroDivisionError):
                continue
            values[name] = value
        return values


def number(text: str) -> float:
    return float(text.replace(",", ""))


def whole(text: str) -> int:
    """12, 1,200 or 3.2e+4"""
    return int(float(text.replace(",", "")))


SIZES = {"": 1, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


def count(text: str) -> int:
    """1,208,606,722 or 123.59M or 0.17 billion"""
    match = re.fullmatch(rf"({COUNT})\s*([a-zA-Z]*)", text.strip())
    if not match:
        raise ValueError(text)
    unit = match[2]
    size = WORDS.get(unit.lower()) or SIZES.get(unit.upper())
    if size is None:
        raise ValueError(text)
    return round(number(match[1]) * size)


def mib(text: str) -> float:
    """2.00 GiB, 512 MB"""
    match = re.fullmatch(r"([\d.]+)\s*([KMGT]?)i?B?", text.strip())
    if not match:
        raise ValueError(text)
    return float(match[1]) * {"": 2**-20, "K": 2**-10, "M": 1, "G": 2**10, "T": 2**20}[match[2]]


def clock_s(text: str) -> float:
    """00:10, 1:02:03, 2 days, 1:02:03"""
    days = re.match(r"(\d+) days?, ", text)
    if days:
        return 86400.0 * int(days[1]) + clock_s(text[days.end() :])
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def signal_name(text: str) -> str:
    """SIGTERM, TERM and 15 are the same."""
    if text.isdigit():
        return signal.Signals(int(text)).name
    name = text.upper()
    return name if name.startswith("SIG") else "SIG" + name


def _shorter(text: str) -> str:
    return text.strip()[:1000]


def _each(text: str) -> float:
    return 1 / number(text)


CONVERSIONS: dict[str, tuple[str, Callable[[str], Value]]] = {
    "step_ms": ("step_s", lambda text: number(text) / 1000),
    "steps_per_s": ("step_s", _each),
    "seconds_ms": ("seconds", lambda text: number(text) / 1000),
    "mfu_percent": ("mfu", lambda text: number(text) / 100),
    "eta": ("eta_s", clock_s),
    "wanted": ("wanted_mib", mib),
    "free": ("free_mib", mib),
    "parameters": ("parameters", count),
    "signal": ("signal", signal_name),
}
TEXTS = {"path", "name", "type", "message", "where", "operation", "host", "time", "pairs"}
TEXTS |= {"description", "backend", "text"}
WHOLE = {"step", "steps", "tokens", "rank", "local_rank", "pid", "exit_code", "gpu", "gpus"}
WHOLE |= {
    "attempt",
    "attempts",
    "restarts_left",
    "worker",
    "workers",
    "shards",
    "stopped",
    "sequence",
}


def _conversion(group: str) -> tuple[str, Callable[[str], Value]]:
    if group in CONVERSIONS:
        return CONVERSIONS[group]
    if group in TEXTS:
        return group, _shorter
    return group, whole if group in WHOLE else number


GROUPS = {*CONVERSIONS, *TEXTS, *WHOLE, "epoch", "loss", "learning_rate", "grad_norm", "step_s"}
GROUPS |= {"tokens_per_s", "samples_per_s", "mfu", "perplexity", "seconds", "runtime_s"}

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


def pairs(text: str) -> Values:
    """What is named in the text and known by name; the first of several of a kind."""
    values: Values = {}
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
