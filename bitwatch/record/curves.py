"""What a step record says beside its loss that makes a curve, by step.

`tokens` and `t` (wall-clock seconds) rise with the step: they turn an axis of steps into one
of tokens or of time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter, ge, truediv
from typing import Any, Protocol

from bitwatch.record.series import Series

NAMES = (
    "bits_per_byte",
    "grad_norm",
    "learning_rate",
    "tokens_per_s",
    "step_s",
    "data_share",
    "tokens",
    "t",
)
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # as records write them
_ask = {
    name: attrgetter(name)
    for name in ("loss", *NAMES, "data_s", "nonfinite")
    if name != "data_share"
}


class Stepped(Protocol):
    """A step record, or what was decoded of one."""

    step: int
    nonfinite: dict[str, str] | None


def value(record: Stepped, name: str) -> float | None:
    """What a record says of one curve, NaN and infinities included; None when it says nothing.
    `data_share`: of its time, how much it waited for data."""
    if name == "data_share":
        waited, took = value(record, "data_s"), value(record, "step_s")
        return waited / took if waited is not None and took else None
    found: float | None = getattr(record, name, None)
    if found is None and record.nonfinite and name in record.nonfinite:
        return NOT_FINITE.get(record.nonfinite[name])
    return None if name == "tokens" and not found else found


def extend(loss: Series, curves: dict[str, Series] | None, records: Sequence[Stepped]) -> None:
    """Adds step records to the loss, and to all other curves where those are kept: a bucket at a
    time while their step rises, and a whole column at once where every record says everything.
    No step is below zero."""
    every = [record.step for record in records]
    if every and min(every) < 0:
        records = [record for record in records if record.step >= 0]
        every = [record.step for record in records]
    rising = all(map(ge, every[1:], every))
    whole = not any(map(_ask["nonfinite"], records))
    for name in ("loss", *NAMES) if curves is not None else ("loss",):
        xs, values = every, _column(records, name) if whole else None
        if values is None:
            told = [(record.step, value(record, name)) for record in records]
            xs = [x for x, y in told if y is not None]
            values = [y for _, y in told if y is not None]
        if not values:
            continue
        series = loss if curves is None or name == "loss" else curves.setdefault(name, Series())
        if rising:
            series.extend(xs, values)
        else:
            for x, y in zip(xs, values, strict=True):
                series.add(x, y)


def _column(records: Sequence[Stepped], name: str) -> list[Any] | None:
    """What all records say of one curve; None when one of them says nothing."""
    if name == "data_share":
        waited, took = _column(records, "data_s"), _column(records, "step_s")
        if waited is None or took is None or 0 in took:
            return None
        return list(map(truediv, waited, took))
    values = list(map(_ask[name], records))
    return None if None in values or (name == "tokens" and 0 in values) else values
