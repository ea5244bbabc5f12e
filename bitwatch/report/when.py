"""Times as a report says them. A record, a log or a file may bear an impossible one."""

from __future__ import annotations

import time

LATEST_S = 4e9  # the year 2096: a later time is no time


def sane(t: float | None) -> float | None:
    """None for what cannot be the wall-clock time of a training."""
    return t if t is not None and 0.0 < t < LATEST_S else None


def moment(t: float | None) -> str:
    """Local date and time of day: 2025-08-24 07:14:02"""
    known = sane(t)
    if known is None:
        return "an unknown time"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(known))
