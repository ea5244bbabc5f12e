"""Whether a step may change the weights, decided by all ranks before it does.

A loss or gradient that is not finite would ruin every weight. The ranks put their losses
and the squares of their gradients together in one collective, so all see the same; the
optimiser itself is then told to leave everything as it was. Nobody waits for the GPU: its
verdict is read a step later, and until then no weight can change any more ("stop"), or has
(the step was left out, "skip"). A step far out of line with those before can be left out in
the same way.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from trainer import parallel
from trainer.failures import Failed

MOST_IN_A_ROW = 128  # steps left out
NOT_FINITE, OUTLIER = 1.0, 0.5  # why a step was left out; the worse is the larger


class Outcome(NamedTuple):
    """Of one step, the same on every rank."""

    step: int
    losses: list[float]  # nats per bit, one a rank
    grad_norm: float  # of the whole gradient, before clipping
    taken: bool  # whether the optimiser used it

    @property
    def loss(self) -> float:
        return sum(self.losses) / len(self.losses)


class Outliers:
    """Whether a step's loss or gradient norm lies far above those of the steps before, as
    OLMo-core judges it: more than 6 deviations above the mean of the last 128 finite ones.
    All of it is on the device, so nobody waits for it."""

    WINDOW = 128
    LEAST = 64  # steps that must have been before anything is out of line
    DEVIATIONS = 6.0

    def __init__(self, device: torch.device, kept: Sequence[Sequence[float]] = ()) -> None:
        """kept: what `kept` returned, oldest first, when the training was saved."""
        self._taken = torch.zeros((), dtype=torch.int64, device=device)
        self._seen = torch.zeros(self.WINDOW, 2, device=device)
        for values in kept:
            self.remember(torch.tensor(values, device=device), torch.zeros((), device=device))

    def judge(self, values: Tensor) -> Tensor:
        """1.0 when one of `values` [loss, norm] is far out of line. Call before `remember`."""
        count = self._taken.clamp(max=self.WINDOW)
        inside = (torch.arange(self.WINDOW, device=values.device) < count).unsqueeze(1)
        mean = (self._seen * inside).sum(0) / count
        variance = ((self._seen - mean).square() * inside).sum(0) / count
        above = values > mean + self.DEVIATIONS * variance.sqrt()
        return (above.any() & (count >= self.LEAST)).float()

    def remember(self, values: Tensor, bad: Tensor) -> None:
        """Keeps `values` unless `bad`."""
        row = (self._taken % self.WINDOW).view(1)  # as a plain index it would be waited for
        taken = bad == 0
        kept = torch.where(taken, values, self._seen.index_select(0, row)[0])
        self._seen.index_copy_(0, row, kept.unsqueeze(0))
        self._taken += taken

    def kept(self) -> list[list[float]]:
        """The values in the window, oldest first: a float survives JSON unchanged."""
        taken, seen = int(self._taken), self._seen.tolist()
        return [seen[n % self.WINDOW] for n in range(max(0, taken - self.WINDOW), taken)]


class Health:
    """Judges steps as they are computed, and tells their outcomes once they are known.
    `waited_s`: for the other ranks, in the last judgement. On a GPU that waits, and not the rank."""

    waited_s = 0.0

    def __init__(
        self,
        place: parallel.Place,
        on_not_finite: str,
        outliers: Outliers | None = None,
        skipped: int = 0,
    ) -> None:
        self.skipped = skipped
        self.outliers = outliers
        self._place = place
        self._stop = on_not_finite == "stop"
        self._in_a_row = 0
        self._halted = torch.zeros((), device=place.device)
        self._unread: deque[tuple[int, Callable[[], list[float]]]] = deque()

    def judge(self, step: int, loss: Tensor, square_sum: Tensor) -> tuple[Tensor, Tensor]:
        """The norm of the whole gradient, and 1.0 where the step must not be taken.

        loss: this rank's mean nats per bit; square_sum: of its part of the gradient.
        """
        ranks = self._place.ranks
        shared = torch.zeros(ranks + 1, device=self._place.device)
        shared[self._place.rank] = loss
        shared[ranks] = square_sum
        began = time.monotonic()
        dist.all_reduce(shared)
        self.waited_s = time.monotonic() - began
        norm = shared[ranks].sqrt()
        bad = 1.0 - shared.isfinite().all().float()
        if self._stop:
            bad = self._halted = torch.maximum(self._halted, bad)
        if self.outliers:
            values = torch.stack((shared[:ranks].mean(), norm))
            bad = torch.maximum(bad, OUTLIER * self.outliers.judge(values))
            # An outlier too: what stays out of line is soon a line of its own.
            self.outliers.remember(values, (bad == NOT_FINITE).float())
        told = torch.cat((shared[:ranks], norm.view(1), bad.view(1)))
        self._unread.append((step, parallel.read_later(told)))
        return norm, (bad > 0).float()

    def outcomes(self, newest: bool) -> list[Outcome]:
        """Those not told yet, without the newest one unless asked for: it may still be
        computing. Raises Failed, on all ranks alike, when one ends the run."""
        found = []
        while len(self._unread) > (0 if newest else 1):
            step, read = self._unread.popleft()
            *losses, norm, bad = read()
            outcome = Outcome(step, losses, norm, taken=not bad)
            found.append(outcome)
            self.skipped += not outcome.taken
            self._in_a_row = 0 if outcome.taken else self._in_a_row + 1
            if self._stop and bad == NOT_FINITE:
                raise NotFinite(outcome)
            if self._in_a_row == MOST_IN_A_ROW:
                raise Failed(
                    f"the last {MOST_IN_A_ROW} steps, to step {step}, were all left out (not finite, "
                    "or far out of line): nothing is learned any more; go back to an earlier "
                    "checkpoint, with a lower train.learning_rate"
                )
        return found


class NotFinite(Failed):
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        bad = [str(rank) for rank, loss in enumerate(outcome.losses) if not math.isfinite(loss)]
        what = "the gradient is"
        if bad:
            what = f"the loss of rank{'s' if len(bad) > 1 else ''} {', '.join(bad)} is"
        super().__init__(
            f"step {outcome.step}: {what} not finite; the weights are as step "
            f"{outcome.step - 1} left them"
        )
