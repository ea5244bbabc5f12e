"""Whether the loss has jumped: far above what it was in the records before, in several records in
a row. Pure, and rather silent than wrong: the limit is taken from the median and the spread of the
losses themselves, so a noisy small batch widens it, and so does a loss that still falls steeply.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from bitwatch.record.events import Step

WINDOW = 128  # step records that say what is usual
LEAST = (
    48  # of them, before anything is out of line: the first ones of an attempt are judged by nobody
)
IN_A_ROW = 4  # records above the limit, before it is a spike
DEVIATIONS = 9.0  # above the median
SHARE = 0.2  # and above the median by so much of it
SIGMA = 1.4826  # standard deviations in one median deviation, of a normal distribution
ROSE = 1.5  # times the usual gradient norm, before it is said to have risen


class Spike(NamedTuple):
    """It began at `step`. `losses` are those of its first records; `usual` and `spread` are the
    median and the deviation of the `of` records before, `enough` is what ends it. `norm` is the
    median gradient norm of its first records; both norms are None where they are not known."""

    step: int
    losses: tuple[float, ...]
    usual: float
    spread: float
    of: int
    enough: float
    norm: float | None
    usual_norm: float | None

    @property
    def norm_rose(self) -> bool | None:
        if self.norm is None or self.usual_norm is None:
            return None
        return not math.isfinite(self.norm) or self.norm > ROSE * self.usual_norm


class Spikes:
    """Takes the step records of one attempt in order; `found` is the spike that lasts. `top` is its
    highest loss, and where that was."""

    def __init__(self) -> None:
        self.found: Spike | None = None
        self.top = (0.0, 0)
        self._usual: deque[Step] = deque(maxlen=WINDOW)
        self._late: deque[Step] = deque()
        self._learning_rate: float | None = None

    def take(self, step: Step) -> None:
        """One that is not finite says nothing here. While the learning rate rises (warm-up)
        nothing is called a spike."""
        before, self._learning_rate = self._learning_rate, step.learning_rate
        rises = before is not None and step.learning_rate is not None
        rises = rises and (step.learning_rate or 0.0) > (before or 0.0) * (1 + 1e-9)
        if step.loss is None or not math.isfinite(step.loss):
            return
        self._late.append(step)
        if self.found is not None:
            self._go_on(step)
        elif len(self._late) >= IN_A_ROW:
            if not rises and len(self._usual) >= LEAST:
                self._judge()
            if self.found is None:
                self._usual.append(self._late.popleft())

    def _judge(self) -> None:
        losses = _losses(self._late)
        usual, spread = _level(_losses(self._usual))
        jump = max(DEVIATIONS * spread, SHARE * abs(usual))
        if min(losses) <= usual + jump:
            return
        self.found = Spike(
            step=self._late[0].step,
            losses=tuple(losses),
            usual=usual,
            spread=spread,
            of=len(self._usual),
            enough=usual + jump / 2,
            norm=_norm(self._late),
            usual_norm=_norm(self._usual),
        )
        self.top = max((loss, step.step) for loss, step in zip(losses, self._late, strict=True))

    def _go_on(self, step: Step) -> None:
        """Down again is where most of the last records are below half of the jump."""
        assert self.found is not None and step.loss is not None
        self._late.popleft()
        self.top = max(self.top, (step.loss, step.step))
        if median(_losses(self._late)) <= self.found.enough:
            self.found = None
            self._late.popleft()  # of the spike, or the first one after it


def _losses(steps: Sequence[Step]) -> list[float]:
    return [step.loss for step in steps if step.loss is not None]


def _level(values: Sequence[float]) -> tuple[float, float]:
    """Median and deviation, neither of which a few wild values move."""
    middle = median(values)
    return middle, SIGMA * median(abs(value - middle) for value in values)


def _norm(steps: Sequence[Step]) -> float | None:
    norms = [step.grad_norm for step in steps if step.grad_norm is not None]
    norms = [math.inf if math.isnan(norm) else norm for norm in norms]
    return median(norms) if norms else None
