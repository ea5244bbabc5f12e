"""Alerts about the loss: not a number any more, or far above what it was."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from bitwatch.record import events
from bitwatch.record.events import Step
from bitwatch.record.view import View
from bitwatch.supervise.spikes import IN_A_ROW, Spike, Spikes

QUIET = 32  # step records without one, before it is over
LASTING = 8  # in a row: no longer the one step that is left out
NOT_FINITE, SPIKE = "loss-not-finite", "loss-spike"


class Rule(NamedTuple):
    """What the trainer does about a step that is not finite: train.on_not_finite, and whether
    steps are left out for another reason too (train.skip_outliers)."""

    on_not_finite: str = ""  # empty: nobody knows, the training is not ours
    skips_outliers: bool = False


UNKNOWN = Rule()


class Losses:
    """Takes what is new of rank 0's step records, and says what is wrong with them."""

    def __init__(self, rule: Rule = UNKNOWN) -> None:
        self._rule = rule
        self._attempt = 0
        self._begin(0)

    def _begin(self, attempt: int) -> None:
        self._attempt = attempt
        self._step = 0
        self._skipped: int | None = None
        self.spikes = Spikes()
        self.odd = NotFinite()

    def look(self, view: View) -> list[events.Alert]:
        """Nothing of an attempt that has taken no step, or has ended."""
        if not view.recent:
            return []
        if view.attempt != self._attempt:
            self._begin(view.attempt)
        for step in view.recent:
            if step.step > self._step:
                self._take(step, view.foreign)
        return [*not_finite(self.odd, self._rule, view), *spike(self.spikes, view)]

    def _take(self, step: Step, foreign: bool) -> None:
        self._step = step.step
        left_out = 0
        if self._skipped is not None and not self._rule.skips_outliers:
            left_out = max(0, step.skipped - self._skipped)
        self._skipped = step.skipped
        # With loss scaling a norm that overflows now and then is nothing: only the loss counts
        # where the trainer is not ours.
        self.odd.take(step, _what(step, norm=not foreign), left_out)
        self.spikes.take(step)


class NotFinite:
    """Since when, and how often. `first` is None while all is well."""

    def __init__(self) -> None:
        self.first: Step | None = None
        self.newest: Step | None = None
        self.what = ""
        self.count = 0  # steps, as far as they are told of one by one
        self.in_a_row = 0  # records
        self._well = 0

    def take(self, step: Step, what: str, left_out: int) -> None:
        """`what` is not finite in it; `left_out`: steps that were, since the record before."""
        if not what and not left_out:
            self.in_a_row = 0
            self._well += 1
            if self._well >= QUIET:
                self.first, self.count = None, 0
            return
        if self.first is None:
            self.first = step
            self.what = what or "a step was left out, its loss or gradient was not finite"
        self.newest = step
        self.count += max(1, left_out)
        self.in_a_row += 1
        self._well = 0


def _what(step: Step, *, norm: bool) -> str:
    if step.loss is not None and not math.isfinite(step.loss):
        return f"the loss is not finite ({step.loss})"
    if norm and step.grad_norm is not None and not math.isfinite(step.grad_norm):
        return f"the gradient norm is not finite ({step.grad_norm})"
    return ""


def not_finite(seen: NotFinite, rule: Rule, view: View) -> Iterator[events.Alert]:
    """How often is said in powers of ten: each change of the sentence is a line in the record."""
    if seen.first is None or seen.newest is None:
        return
    first = seen.first.step
    level = 10 ** (len(str(seen.count)) - 1)
    since = f", at least {level:,} steps in all" if level > 1 else ""
    lasts = seen.in_a_row >= LASTING
    skips = rule.on_not_finite == "skip"
    yield events.Alert(
        id=NOT_FINITE,
        severity="warning" if skips and not lasts else "error",
        text=f"{seen.what}: step {first:,}{since}",
        evidence=[
            f"first at step {first:,}: loss {seen.first.loss}, gradient norm {seen.first.grad_norm}",
            f"{seen.count:,} in all, the newest at step {seen.newest.step:,}",
            _done(rule.on_not_finite),
        ],
        next=_next_of_odd(view, rule.on_not_finite, first, lasts=lasts),
    )


def _done(on_not_finite: str) -> str:
    match on_not_finite:
        case "skip":
            return 'train.on_not_finite = "skip": such a step is left out, the weights stay as they are'
        case "stop":
            return 'train.on_not_finite = "stop": the run ends, the weights stay as they are'
    return "what its trainer does about it is not known"


def _next_of_odd(view: View, on_not_finite: str, first: int, *, lasts: bool) -> str:
    if view.foreign or not on_not_finite:
        return (
            "weights that are not finite do not recover: stop it where it was started, and go back "
            f"to a checkpoint from before step {first:,}"
        )
    if on_not_finite == "stop":
        return (
            "the run ends by itself; go on from its last checkpoint with a lower "
            f"train.learning_rate (bitwatch run --resume {view.run or 'RUN'} --set ...)"
        )
    if lasts:
        return "key S stops it with a checkpoint: nothing is learned; go on with a lower train.learning_rate"
    return "nothing need be done while it stays rare; a lower train.learning_rate ends it"


def spike(spikes: Spikes, view: View) -> Iterator[events.Alert]:
    """The sentence is of the beginning, and stays: how high it went is evidence."""
    found = spikes.found
    if found is None:
        return
    top, at = spikes.top
    yield events.Alert(
        id=SPIKE,
        severity="warning",
        text=f"the loss has jumped from {found.usual:.4g} to {min(found.losses):.4g} at step "
        f"{found.step:,}{'; the gradient norm rose too' if found.norm_rose else ''}",
        evidence=[
            f"usual: {found.usual:.4g}, with a spread of {found.spread:.2g} (median of "
            f"{found.of} step records, and their deviation from it)",
            f"since step {found.step:,}: {', '.join(f'{loss:.4g}' for loss in found.losses)}, "
            f"all {IN_A_ROW} far above that; {top:.4g} at step {at:,}",
            _about_norm(found),
        ],
        next=_next_of_spike(view, found),
    )


def _about_norm(found: Spike) -> str:
    if found.norm is None or found.usual_norm is None:
        return "the gradient norm is not known"
    told = f"gradient norm {found.norm:.3g}, usually {found.usual_norm:.3g}"
    return told if found.norm_rose else f"{told}: it did not rise; perhaps another kind of text"


def _next_of_spike(view: View, found: Spike) -> str:
    before = [saved.step for saved in view.checkpoints if saved.step < found.step]
    last = f"the checkpoint of step {before[-1]:,}" if before else "an earlier checkpoint"
    how = "stop it where it was started" if view.foreign else "key S stops it"
    return (
        "it often comes down by itself, and this goes away then; if it does not, "
        f"{how}, and it can go on from {last} with a lower learning rate"
    )
