"""A run with a history of alerts, made in code."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.view import View
from tests.tui import views
from tests.tui.views import NOW

LOST = events.Alert(
    id="loss-not-finite",
    severity="error",
    text="the loss is not finite (nan): step 12,404, at least 10 steps in all",
    evidence=[
        "first at step 12,404: loss nan, gradient norm inf",
        "14 in all, the newest at step 12,417",
        'train.on_not_finite = "skip": such a step is left out, the weights stay as they are',
    ],
    next="S stops it with a checkpoint: nothing is learned; go on with a lower train.learning_rate",
    attempt=2,
    t=NOW - 95,
)
IDLE = events.Alert(
    id="workers-exceed-shards",
    severity="warning",
    text="8 of 16 readers idle, and every rank reads everything: 2 shards for 4 ranks x 4 workers",
    evidence=[
        "planned before the launch of attempt 2",
        *(f"rank {n % 4} worker {n // 4}: given no shard" for n in range(14)),
    ],
    next="Take as many workers as have something to read (--set data.workers=2).",
    attempt=2,
    t=NOW - 7440,
)
HOT = events.Alert(
    id="gpu-throttled",
    severity="warning",
    text="GPU 3 slows down: 81 °C",
    evidence=["clock 1,290 of 2,040 MHz"],
    attempt=2,
    t=NOW - 4000,
)
SPIKE = events.Alert(
    id="loss-spike",
    severity="warning",
    text="the loss has jumped from 0.0912 to 0.231 at step 3,120; the gradient norm rose too",
    evidence=["gradient norm 4.1, usually 0.38"],
    attempt=1,
    t=NOW - 60_000,
)
STUCK = events.Alert(
    id="stalled",
    severity="warning",
    text="no step since 21:14:02: rank 2 waits for text",
    attempt=1,
    t=NOW - 40_000,
)
FULL = events.Alert(
    id="disk-low",
    severity="error",
    text="less than 16 GiB left on the disk of the checkpoints; the next checkpoint needs 14.5 GiB",
    attempt=1,
    t=NOW - 38_000,
)
NOTED = events.Alert(
    id="newer-version",
    severity="info",
    text="made by a newer version of bitwatch: what this version understands is shown",
    attempt=2,
    t=NOW - 7000,
)


def cleared(alert: events.Alert, after_s: float) -> events.Alert:
    return events.Alert(
        id=alert.id, attempt=alert.attempt, text=alert.text, cleared=True, t=alert.t + after_s
    )


def told(alert: events.Alert, later_s: float) -> events.Alert:
    """The same once more, later."""
    fields = {name: getattr(alert, name) for name in alert.__struct_fields__}
    return events.Alert(**{**fields, "t": alert.t + later_s})


HISTORY = [
    SPIKE,
    cleared(SPIKE, 340.0),
    STUCK,
    FULL,
    cleared(FULL, 900.0),
    IDLE,
    NOTED,
    cleared(NOTED, 5.0),
    HOT,
    cleared(HOT, 61.0),
    told(HOT, 3100.0),
    LOST,
]


def view(**fields: object) -> View:
    """Three alerts now; five episodes before, one of which its attempt did not outlive."""
    given = {
        "alerts": [IDLE, told(HOT, 3100.0), LOST],
        "past_alerts": HISTORY,
        "attempt_ends": {1: NOW - 7500},
    }
    return views.on_l4s(**{**given, **fields})
