"""Whether a step may change the weights, decided by all ranks before it does.

A loss or gradient that is not finite would ruin every weight. The ranks put their losses
and the squares of their gradients together in one collective, so all see the same; the
optimiser itself is then told to leave everything as it was. Nobody waits for the GPU: its
verdict is read a step later, and until then no weight can change any more ("stop"), or has
(the step was left out, "skip").
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from trainer import parallel
from trainer.failures import Failed


class Outcome(NamedTuple):
    """Of one step, the same on every rank."""

    step: int
    losses: list[float]  # nats per bit, one a rank
    grad_norm: float  # of the whole gradient, before clipping
    taken: bool  # whether the optimiser used it

    @property
    def loss(self) -> float:
        return sum(self.losses) / len(self.losses)


class Health:
    """Judges steps as they are computed, and tells their outcomes once they are known."""

    def __init__(self, place: parallel.Place, on_not_finite: str) -> None:
        self.skipped = 0
        self._place = place
        self._stop = on_not_finite == "stop"
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
        dist.all_reduce(shared)
        norm = shared[ranks].sqrt()
        bad = 1.0 - shared.isfinite().all().float()
        if self._stop:
            bad = self._halted = torch.maximum(self._halted, bad)
        told = torch.cat((shared[:ranks], norm.view(1), bad.view(1)))
        self._unread.append((step, parallel.read_later(told)))
        return norm, bad

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
            if self._stop and not outcome.taken:
                raise NotFinite(outcome)
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
