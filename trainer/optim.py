"""The optimiser: AdamW, its learning rate over the steps, and gradients kept in bounds."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bitwatch import config as configuration
from trainer.parallel import local_part

BETAS = (0.9, 0.99)
DECAY_SHARE = 0.2  # of all steps, at the end of "wsd"


def build(model: nn.Module, wanted: configuration.Train) -> torch.optim.AdamW:
    """Fused AdamW on the sharded parameters; only matrices decay."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": wanted.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=wanted.learning_rate, betas=BETAS, fused=True)


def learning_rate(step: int, wanted: configuration.Train) -> float:
    """Of step `step`, which counts from 1: a straight line up over the warm-up, then by
    schedule. Both that end at zero reach it where a step after the last would be.

    cosine: half a cosine. constant: as it is. wsd (warm-up, stable, decay): constant, and
    over the last fifth of the steps 1 - sqrt(x) (Hägele and others, 2024).
    """
    if step <= wanted.warmup:
        return wanted.learning_rate * step / wanted.warmup
    if wanted.schedule == "constant":
        return wanted.learning_rate
    if wanted.schedule == "wsd":
        decay = min(wanted.steps - wanted.warmup, max(1, round(DECAY_SHARE * wanted.steps)))
        done = max(0.0, (step - 1 - wanted.steps + decay) / decay)
        return wanted.learning_rate * (1 - math.sqrt(min(1.0, done)))
    done = (step - 1 - wanted.warmup) / max(1, wanted.steps - wanted.warmup)
    return wanted.learning_rate * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


@torch.no_grad()  # with autograd in it, to_local costs as much again as the sum of squares
def gradients(model: nn.Module) -> list[Tensor]:
    """This rank's part of every gradient; changing them changes what the optimiser sees."""
    return [
        local_part(parameter.grad) for parameter in model.parameters() if parameter.grad is not None
    ]


def square_sum(parts: list[Tensor]) -> Tensor:
    """Of this rank's gradients, float32 scalar. Summed over ranks, its root is the norm of
    the whole gradient; a rank with an empty part of one adds nothing."""
    return torch.stack(torch._foreach_norm(parts)).square().sum()


def clip(parts: list[Tensor], norm: Tensor, limit: float) -> None:
    """Scales the gradients down to `limit` when `norm`, that of all of them, is above it."""
    if limit:
        torch._foreach_mul_(parts, (limit / (norm + 1e-6)).clamp(max=1.0))
