"""What no machine could run, and what this version does not do: sentences about a configuration
whose types are right."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from bitwatch.config import Config, bytes_per_sequence
from bitwatch.strict import toml_value

MOST_OF_ALL = 10**12  # no count or time that is meant is larger
# Of what is made one by one, or tried one by one, even for a plan.
MOST = {
    ("model", "d_model"): 1 << 20,
    ("model", "heads"): 1 << 20,
    ("model", "layers"): 10_000,
    ("parallel", "ranks"): 4096,
    ("data", "workers"): 1024,
}


LEAST_SAMPLE_S = 0.1  # between two looks at the machine: more often costs more than it shows


def impossible(c: Config) -> Iterator[str]:
    """Sentences about values that no machine could run."""
    if wrong := list(_out_of_range(c)):
        yield from wrong
        return  # what follows divides by them
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", c.run.name):
        yield (
            f"run.name: {c.run.name!r} becomes a folder name; use up to 64 letters, digits, "
            "dots, dashes and underscores, beginning with a letter or digit"
        )
    if bytes_per_sequence(c.model) < 1:
        yield f"model.context: {c.model.context} bits hold no whole byte; use at least 8"
    if c.model.d_model % c.model.heads:
        yield (
            f"model.heads: {c.model.heads} heads do not divide d_model {c.model.d_model}; "
            f"use {_nearest_divisor(c.model.d_model, c.model.heads)}"
        )
    elif (c.model.d_model // c.model.heads) % 2:
        yield (
            f"model.heads: {c.model.heads} heads of width {c.model.d_model // c.model.heads}; "
            "rotary positions need an even width"
        )
    per_pass = c.parallel.ranks * c.train.micro_batch
    if c.train.batch % per_pass:
        yield (
            f"train.batch: {c.train.batch} is not a multiple of ranks x micro_batch = "
            f"{c.parallel.ranks} x {c.train.micro_batch}; use {max(1, c.train.batch // per_pass) * per_pass}"
        )
    if c.train.warmup >= c.train.steps and c.train.warmup:
        yield f"train.warmup: {c.train.warmup} steps of warm-up leave nothing of {c.train.steps} steps"
    if not c.data.source.strip():
        yield "data.source: is empty; give a hub id, a folder or a glob"


def _out_of_range(c: Config) -> Iterator[str]:
    positive = {
        "model": ("d_model", "heads", "layers", "feedforward", "expected_parameters"),
        "parallel": ("ranks", "start_timeout_s", "step_timeout_s"),
        "data": ("cache_limit_gib",),
        "train": ("steps", "batch", "micro_batch", "learning_rate", "log_every", "eval_steps"),
        "checkpoint": ("keep",),
        "watch": ("stall_s", "sample_s"),
    }
    not_negative = {
        "run": ("seed",),
        "data": ("workers", "shuffle"),
        "train": ("warmup", "weight_decay", "clip", "eval_every"),
        "checkpoint": ("every",),
        "watch": ("leftover_grace_s", "grace_s"),
    }
    for table, limit in ((positive, 1), (not_negative, 0)):
        for section, keys in table.items():
            for key in keys:
                value = getattr(getattr(c, section), key)
                if value is None:
                    continue
                if not math.isfinite(value):
                    yield f"{section}.{key}: must be a finite number, not {value}"
                elif value > (most := MOST.get((section, key), MOST_OF_ALL)):
                    yield f"{section}.{key}: must be at most {most:,}, not {value}"
                elif value < 0 or (limit and value == 0):
                    wanted = "greater than 0" if limit else "0 or more"
                    yield f"{section}.{key}: must be {wanted}, not {value}"
    if 0 < c.watch.sample_s < LEAST_SAMPLE_S:
        yield f"watch.sample_s: must be at least {LEAST_SAMPLE_S}, not {c.watch.sample_s}"


def unbuilt(c: Config) -> Iterator[str]:
    """Values whose work does not exist in this version: refused, never ignored."""
    wishes = (("data.streaming", c.data.streaming, True),)
    for key, value, built in wishes:
        if value != built:
            yield f"{key}: {toml_value(value)} is not built yet; {_instead(built)}"


def _instead(built: Any) -> str:
    return "remove the key" if built is None else f"use {toml_value(built)}"


def _nearest_divisor(width: int, wanted: int) -> int:
    even = [h for h in range(1, width + 1) if width % h == 0 and (width // h) % 2 == 0]
    return min(even or [1], key=lambda h: abs(h - wanted))
