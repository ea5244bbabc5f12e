"""Which alerts another way of reading would end. Pure.

Takes a correction's id and its data plan as JSON has it, from any version: what is not known
there is no promise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bitwatch.plan import faults

Data = dict[str, Any]


def cures(alert: str, correction: str, data: Data) -> bool:
    """Whether a run that reads as in `data` would not have the alert of this id."""
    cured = CURED.get(alert)
    return cured is not None and cured(correction, data)


def _nobody_idle(_: str, data: Data) -> bool:
    return data.get("readers_idle") == 0


def _read_once(_: str, data: Data) -> bool:
    return data.get("copies") == data.get("read_amplification") == 1


def _even(correction: str, data: Data) -> bool:
    """Fewer workers leave each rank what it had."""
    percent = data.get("imbalance_percent")
    return correction != "fewer-workers" and percent is not None and percent < faults.UNEVEN_PERCENT


def _text_for_all(_: str, data: Data) -> bool:
    """Where the steps are not known, rows for every rank are enough."""
    if data.get("steps_per_epoch") is not None:
        return bool(data["steps_per_epoch"])
    return data.get("mode") == "indexed" or all(data.get("rows_per_rank") or [0])


def _faster(correction: str, _: Data) -> bool:
    """Idle workers read nothing, and without them nothing is read faster."""
    return correction != "fewer-workers"


CURED: dict[str, Callable[[str, Data], bool]] = {
    "idle-reader": _nobody_idle,
    "workers-exceed-shards": _nobody_idle,
    "every-rank-reads-everything": _read_once,
    "uneven-batches": _even,
    "rank-without-data": _text_for_all,
    "data-starved": _faster,
}
