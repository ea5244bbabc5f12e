"""Which times a report believes. A record, a log or a file may bear an impossible one."""

from __future__ import annotations

LATEST_S = 4e9  # the year 2096: a later time is no time


def sane(t: float | None) -> float | None:
    """None for what cannot be the wall-clock time of a training."""
    return t if t is not None and 0.0 < t < LATEST_S else None
