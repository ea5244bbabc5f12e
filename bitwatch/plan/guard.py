"""The scale-down guard: whether a training aims at less than an earlier one did, and whether a
number that looks like a smaller model is only one rank's share of a model.

The two are told apart by arithmetic. FSDP1 prints, after wrapping, a flat shard: ceil(built /
ranks). FSDP2's ranks hold the local parts of each parameter. Neither is another model. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bitwatch.plan import parameters
from bitwatch.plan.result import ModelPlan, Problem, Severity


class Target(msgspec.Struct, kw_only=True, frozen=True):
    """What an earlier attempt, or an earlier run of the same name, was to train. `where` names
    it in a sentence."""

    where: str
    asked: int | None = None
    built: int | None = None
    held: tuple[int, ...] = ()
    ranks: int = 1

    @property
    def parameters(self) -> int | None:
        return self.asked if self.asked is not None else self.built


def about_target(model: ModelPlan, ranks: int, before: Sequence[Target]) -> Iterator[Problem]:
    """At most one problem a kind: the earlier target that is furthest above says most."""
    now = model.asked if model.asked is not None else model.built
    if now is None:
        return
    own = Target(where="this model", built=model.built, held=tuple(model.held or ()), ranks=ranks)
    if share := share_of(now, own):
        yield _is_share(now, own, share, "error")
    higher = [t for t in before if t.parameters is not None and t.parameters > now]
    for target in sorted(higher, key=lambda t: -(t.parameters or 0)):
        assert target.parameters is not None
        if now != model.built and (share := share_of(now, target)):
            yield _is_share(now, target, share, "warning")
        else:
            yield _lowered(now, target, model.asked is not None)
        return


def share_of(number: int, target: Target) -> str:
    """In words, what share of a rank `number` is; empty when it is none."""
    if target.built is None or target.ranks < 2 or number == target.built:
        return ""
    if number == parameters.flat_shard(target.built, target.ranks):
        return f"{target.built:,} / {target.ranks} rounded up: a flat shard, as FSDP1 prints it"
    if number in target.held:
        return f"what rank {target.held.index(number)} of {target.ranks} holds of {target.built:,}"
    return ""


def _is_share(now: int, target: Target, share: str, severity: Severity) -> Problem:
    return Problem(
        id="count-is-shard",
        severity=severity,
        text=(
            f"{now:,} parameters is no model but one rank's share of {target.where}: it is "
            f"{share}. A count after wrapping looks like this; nothing was scaled down."
        ),
        next=f"Set model.expected_parameters to the whole: {target.built:,}.",
    )


def _lowered(now: int, target: Target, asked: bool) -> Problem:
    """Loud where somebody had promised a number; a shape that was tried is only said."""
    before = target.parameters or 0
    promised = asked or target.asked is not None
    return Problem(
        id="target-lowered",
        severity="warning" if promised else "info",
        text=(
            f"The target is {now:,} parameters, {100 * (before - now) / before:.3g} % fewer than "
            f"the {before:,} of {target.where}. bitwatch never lowers a target by itself: the "
            "configuration has changed."
        ),
        next=(
            "If that is meant, nothing need be done; else give [model] the shape that it had "
            "and model.expected_parameters its number."
        ),
    )
