"""The steps that a log tells of, numbered on from the beginning of an attempt.

A number that falls back means a training that began again, an epoch that counts for itself, or
only the other ranks' word about the same step: which of them depends on what else is known.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from bitwatch.attach.said import Said, Value
from bitwatch.record import events

WINDOW = 8  # steps over which the time of one is measured, where the log does not say it
APART = 3  # intervals that a number must fall back by: the ranks' own words come in any order
CLOCKS_S = 60.0  # that a log's clock may differ from ours, before ours counts


class Restart(NamedTuple):
    """The training has begun again. `why` says how that is known, `ended` how the log says that
    it ended before, if it does."""

    why: str
    ended: tuple[events.EndState, str] | None = None


class Steps:
    """Of one attempt. `total` is how many there will be, `every` how many lie between two lines,
    both by what the log says. `hinted`: the log has said that something begins again; `may_restart`:
    without such a word a number that falls back to the beginning means that as well. Where the
    ranks are known to be the same as before, it cannot."""

    def __init__(self) -> None:
        self.newest: events.Step | None = None
        self.total = 0
        self.every = 1
        self.hinted = False
        self.may_restart = True
        self._with_loss = 0
        self._first: int | None = None
        self._last: int | None = None  # with a loss
        self._epoch: float | None = None
        self._base = 0  # steps of the epochs that are over, of a log that counts each for itself
        self._bar = 0  # what a bar without a loss says
        self._apart: deque[int] = deque(maxlen=WINDOW)
        self._times: deque[tuple[float, int]] = deque(maxlen=WINDOW)

    def go_on_from(self, step: int) -> None:
        """Whoever watched before has told of all steps up to this one."""
        self._first = 0 if self._first is None else self._first
        self._last = step
        self._with_loss += APART

    def forget_times(self) -> None:
        """Those to come are by another clock, and nothing lies between the two."""
        self._times.clear()

    def take(self, said: Said, read_at: float) -> events.Step | Restart | None:
        """None for a line that says nothing new. `read_at`: when it was read, or its file last
        written before it was read."""
        values = said.values
        loss, number = _real(values.get("loss")), _real(values.get("step"))
        if steps := _real(values.get("steps")):
            self.total = int(steps)
        if loss is None:
            return self._bar_says(said, number, read_at)
        step = int(number) if number is not None else self._unnumbered()
        epoch = _real(values.get("epoch"))
        later = epoch is not None and self._epoch is not None and epoch > self._epoch
        self._epoch = epoch if epoch is not None else self._epoch
        step += self._base
        if self._last is not None and step <= self._last:
            if step == self._last and not (later and number is not None):
                return None
            if not later and self._began_again(step):
                return Restart(f"the steps of its log fall back from {self._last:,} to {step:,}")
            if later or self._falls_back(step):
                step += self._last - self._base
                self._base = self._last
            if step <= self._last:
                return None
        return self._told(step, loss, values, _time_of(said, read_at), measured=True)

    def _bar_says(self, said: Said, number: float | None, read_at: float) -> events.Step | None:
        """A bar of progress. Where lines with a loss exist, it only numbers those."""
        if number is None:
            return None
        before, self._bar = self._bar, int(number)
        if self._with_loss or self._bar == before:
            return None
        return self._told(self._bar, None, said.values, _time_of(said, read_at), measured=False)

    def _unnumbered(self) -> int:
        """The number of a line that has a loss and no number."""
        last = (self._last or 0) - self._base
        return self._bar if self._bar > last else last + self.every

    def _falls_back(self, step: int) -> bool:
        """Whether it is back at the beginning: no late word about a step that was told of."""
        if self._last is None or self._first is None or self._with_loss < APART:
            return False
        far = self._last - step >= APART * self.every
        return far and step - self._base <= self._first + self.every

    def _began_again(self, step: int) -> bool:
        return self.hinted or (self.may_restart and self._falls_back(step))

    def _told(
        self,
        step: int,
        loss: float | None,
        values: Mapping[str, Value],
        t: float,
        *,
        measured: bool,
    ) -> events.Step:
        get = values.get
        step_s = _real(get("step_s"))
        if measured:
            self._measure(step, t)
            step_s = step_s if step_s is not None else self._step_s()
        self.hinted = False
        self.newest = events.Step(
            t=t,
            rank=0,
            step=step,
            tokens=int(_real(get("tokens")) or 0),
            loss=loss,
            learning_rate=_real(get("learning_rate")),
            grad_norm=_real(get("grad_norm")),
            step_s=step_s,
            tokens_per_s=_real(get("tokens_per_s")),
            mfu=_real(get("mfu")),
        )
        return self.newest

    def _measure(self, step: int, t: float) -> None:
        if self._last is not None and step > self._last:
            self._apart.append(step - self._last)
            self.every = max(1, round(statistics.median(self._apart)))
        self._first = step if self._first is None else self._first
        self._last = step
        self._with_loss += 1
        self._times.append((t, step))

    def _step_s(self) -> float | None:
        """From the times between lines: several of them may have been read at one time."""
        (begin, first), (end, last) = self._times[0], self._times[-1]
        if end <= begin or last <= first:
            return None
        return (end - begin) / (last - first)


def _real(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _time_of(said: Said, read_at: float) -> float:
    """A line's own time, unless its clock is ahead of ours."""
    own = said.line.t
    return own if own is not None and own <= read_at + CLOCKS_S else read_at
