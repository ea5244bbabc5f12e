"""Which curves there are, and how each comes from a view: a track an attempt. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from bitwatch.record.series import Series
from bitwatch.record.view import View
from bitwatch.text import duration, number, short
from bitwatch.tui.across import TOKENS, Track, position

SHOWN_ATTEMPTS = 12  # of more, the newest


class Kind(NamedTuple):
    """A curve that can be chosen. `id` is its name in the record. `value` writes one value,
    `tick` one on the axis where its own digits would be too many. Values are shown times
    `factor`; `recent` is for what falls from a great height and is of interest where it is now."""

    id: str
    title: str
    value: Callable[[float], str]
    tick: Callable[[float], str] | None = None
    factor: float = 1.0
    recent: bool = False


def _four(value: float) -> str:
    return number(value, 4)


def _share(value: float) -> str:
    return f"{value:.1f} %" if value < 10 else f"{value:.0f} %"


def _small(value: float) -> str:
    return f"{value:.3g}"


def _seconds(value: float) -> str:
    return duration(value) if 1 <= value < math.inf else f"{value:.3g} s"


KINDS = (
    Kind("loss", "loss", _four, recent=True),
    Kind("bits_per_byte", "bits per byte", lambda value: number(value, 3), recent=True),
    Kind("validation", "validation", _four, recent=True),
    Kind("grad_norm", "gradient norm", _small),
    Kind("learning_rate", "learning rate", _small),
    Kind("tokens_per_s", "throughput", lambda value: f"{short(value)}/s", tick=short),
    Kind("data_share", "data wait", _share, tick=lambda value: f"{value:g} %", factor=100.0),
    Kind("step_s", "step time", _seconds),
)
LOSS = KINDS[0]


def by_id(name: str) -> Kind:
    return next((kind for kind in KINDS if kind.id == name), LOSS)


def tracks(view: View, kind: Kind) -> list[Track]:
    """Oldest attempt first; attempts without a value are left out."""
    tokens, times = dict(view.curves.get("tokens", ())), dict(view.curves.get("t", ()))
    began = _began(view)
    if kind.id == "validation":
        return _scored(view, tokens, times, began)
    series = view.loss if kind is LOSS else view.curves.get(kind.id, [])
    found = [(n, one) for n, one in series if one.starts or one.nonfinite]
    return [
        Track(n, one, _known(tokens.get(n)), _known(times.get(n)), began)
        for n, one in found[-SHOWN_ATTEMPTS:]
    ]


def _known(series: Series | None) -> Series | None:
    return series if series and series.starts and series.high[-1] > 0 else None


def _began(view: View) -> float:
    """When the run began: of a training that was watched later, its first step."""
    firsts = [at.low[0] for _, at in view.curves.get("t", ()) if at.starts and at.low[0] > 0]
    return min([*([view.started] if view.started else []), *firsts], default=0.0)


def _scored(
    view: View, tokens: dict[int, Series], times: dict[int, Series], began: float
) -> list[Track]:
    """The validations as tracks, by the attempt at whose time they were made."""
    begins = sorted((at.low[0], attempt) for attempt, at in times.items() if at.starts)
    made: dict[int, Track] = {}
    for one in view.evaluations:
        if one.loss is None:
            continue
        attempt = max((n for begin, n in begins if begin <= one.t), default=view.attempt)
        track = made.setdefault(attempt, Track(attempt, Series(), Series(), Series(), began))
        track.series.add(one.step, one.loss)
        if one.t and track.time is not None:
            track.time.add(one.step, one.t)
        if attempt in tokens and track.tokens is not None:
            trained = Track(attempt, tokens[attempt], tokens[attempt])
            track.tokens.add(one.step, position(trained, TOKENS, one.step))
    return [
        track._replace(tokens=_known(track.tokens), time=_known(track.time))
        for _, track in sorted(made.items())
    ][-SHOWN_ATTEMPTS:]


def newest(view: View, kind: Kind) -> float | None:
    """The newest value of a curve, times its factor; None when there is none."""
    if kind.id == "validation":
        value = view.evaluations[-1].loss if view.evaluations else None
    else:
        found = view.loss if kind is LOSS else view.curves.get(kind.id, [])
        lasts = [one.last for _, one in found if one.last]
        value = lasts[-1][1] if lasts else None
    return value * kind.factor if value is not None else None


def known(view: View) -> list[Kind]:
    """The curves that have a value; the loss is always there."""
    return [kind for kind in KINDS if kind is LOSS or newest(view, kind) is not None]


def contents(shown: list[Track]) -> list[object]:
    """Differs when the curves do: a step comes, or history is filled in."""
    return [
        (
            *(track.attempt, track.began, track.series.last, track.series.width),
            *(len(track.series.starts), sum(track.series.counts), track.series.nonfinite_count),
            *(len(known.starts) for known in (track.tokens, track.time) if known),
        )
        for track in shown
    ]


def first_not_finite(shown: list[Track]) -> str:
    """`first NaN at step 2`; empty when all is finite."""
    odd = [
        (one.first_nonfinite, one.first_nonfinite_is) for one in (track.series for track in shown)
    ]
    steps = [(step, what) for step, what in odd if step is not None]
    return "first {1} at step {0:,}".format(*min(steps)) if steps else ""
