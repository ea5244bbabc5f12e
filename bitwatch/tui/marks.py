"""What stands on a chart beside its curves: validations, checkpoints, alerts. Pure.

Each is known by its step or by its time; here it becomes a place on the axis that is shown.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bitwatch.record.view import View
from bitwatch.tui import across
from bitwatch.tui.across import STEP, TIME, Track
from bitwatch.tui.tracks import Kind

SEVERITY_ROLES = {"error": "bad", "warning": "warning"}
MANY = 200  # alerts, the newest


class Marks(NamedTuple):
    """Places on the axis: validations with their value, checkpoints, alerts with their role."""

    validations: list[tuple[float, float]]
    checkpoints: list[float]
    alerts: list[tuple[float, str]]


def marks_of(view: View, kind: Kind, tracks: list[Track], axis: str) -> Marks:
    scored = []
    for one in view.evaluations if kind.id in ("loss", "bits_per_byte") else ():
        value = one.loss if kind.id == "loss" else one.bits_per_byte
        x = _place(tracks, axis, one.step, one.t)
        if value is not None and math.isfinite(value) and x is not None:
            scored.append((x, value))
    saved = [_place(tracks, axis, one.step, one.t) for one in view.checkpoints]
    raised = {
        (one.t, one.attempt, SEVERITY_ROLES[one.severity])
        for one in [*view.past_alerts[-MANY:], *view.alerts]
        if not one.cleared and one.severity in SEVERITY_ROLES
    }
    told = [(_when(tracks, axis, t, attempt), role) for t, attempt, role in sorted(raised)]
    return Marks(
        scored,
        [x for x in saved if x is not None],
        [(x, role) for x, role in told if x is not None],
    )


def _place(tracks: list[Track], axis: str, step: int, t: float) -> float | None:
    """Where something stands that was done at a step and at a time."""
    if axis == STEP:
        return step
    if axis == TIME and t and tracks and tracks[-1].time is not None:
        return t - tracks[-1].began
    for track in reversed(tracks):
        begins = min([*track.series.starts[:1], *track.series.nonfinite[:1]])
        if begins <= step and (x := across.position(track, axis, step)) is not None:
            return x
    return None


def _when(tracks: list[Track], axis: str, t: float, attempt: int) -> float | None:
    """Where something stands of which only the time is known."""
    if axis == TIME:
        return t - tracks[-1].began if tracks else None
    of_it = [track for track in tracks if track.attempt == attempt] or tracks
    for track in reversed(of_it):
        step = across.step_at(track, TIME, t - track.began)
        if step is not None:
            return across.position(track, axis, step)
    return None
