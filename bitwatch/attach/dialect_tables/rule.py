"""What one entry of a table of dialects is, and how its words become values.

The named groups of a pattern are the values that a line has. A group's ending may say what it
is counted in: `step_ms` and `step_s_each` become step_s, `mfu_percent` becomes mfu, `wanted`
with its unit becomes wanted_mib. A group `pairs` is searched for whatever is named in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from bitwatch.attach.dialect_tables.names import pairs
from bitwatch.attach.dialect_tables.numbers import (
    WHOLE,
    clock_s,
    count,
    mib,
    number,
    signal_name,
    whole,
)
from bitwatch.attach.said import Value, What

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


def _conversion(group: str) -> tuple[str, Callable[[str], Value]]:
    if group in CONVERSIONS:
        return CONVERSIONS[group]
    if group in TEXTS:
        return group, _shorter
    return group, whole if group in WHOLE else number


GROUPS = {*CONVERSIONS, *TEXTS, *WHOLE, "epoch", "loss", "learning_rate", "grad_norm", "step_s"}
GROUPS |= {"tokens_per_s", "samples_per_s", "mfu", "perplexity", "seconds", "runtime_s"}
