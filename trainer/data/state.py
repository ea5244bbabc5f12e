"""Where in the text a training is: a plain value that is saved, compared and gone on from."""

from __future__ import annotations

import msgspec

from bitwatch.plan import resume
from trainer.failures import Failed


class LoaderState(msgspec.Struct):
    """`epoch` counts from 0; `position`: sequences that all ranks together have taken in it;
    `order`: what decided which ones (see `bitwatch.plan.resume`)."""

    epoch: int = 0
    position: int = 0
    order: resume.Order = {}


def go_on(
    saved: LoaderState, now: resume.Order, *, exact: bool, new_epoch: bool
) -> tuple[LoaderState, str]:
    """From where to read on, and why not at the same place: empty when it is.

    exact: whether the mode can find a place again at all. new_epoch: whether a person has
    allowed to lose it. Raises Failed when it would be lost and nobody has.
    """
    if not saved.position:
        return LoaderState(epoch=saved.epoch, order=now), ""  # nothing of this epoch was read
    changed = resume.differences(saved.order, now)
    if exact and not changed:
        return saved, ""
    if changed and not new_epoch:
        raise Failed(resume.refusal(changed))
    why = ", ".join(changed) or "what the shuffle buffer held is lost"
    return LoaderState(epoch=saved.epoch + 1, order=now), why
