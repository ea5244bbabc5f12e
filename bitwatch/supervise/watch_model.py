"""Alerts about the model that is trained: whether it is the one that was asked for.

What the ranks have built counts, not what anybody planned. They all last as long as the attempt.
"""

from __future__ import annotations

from collections.abc import Iterator

from bitwatch.plan import guard
from bitwatch.plan.guard import Target
from bitwatch.plan.result import ModelPlan
from bitwatch.record import events
from bitwatch.record.view import View


def another_model(view: View) -> Iterator[events.Alert]:
    """The ranks' model is not the one that was asked for, or planned."""
    planned = (view.plan.get("model") or {}).get("built")
    wanted = view.asked if view.asked is not None else planned
    if view.built is None or wanted is None or view.built == wanted:
        return
    by = "model.expected_parameters" if view.asked is not None else "the plan"
    yield events.Alert(
        id="parameters-differ",
        severity="error",
        text=f"the ranks train {view.built:,} parameters, and {by} says {wanted:,}",
        evidence=[f"asked {_said(view.asked)}, planned {_said(planned)}, built {view.built:,}"],
        next="key S stops it with a checkpoint; it is not the model that you wanted",
    )


def lowered(view: View) -> Iterator[events.Alert]:
    """An earlier attempt of the run built a larger model."""
    if view.built is None:
        return
    before = [
        Target(
            where=f"attempt {number} of this run",
            asked=model.asked,
            built=model.built,
            held=tuple(model.held),
            ranks=model.ranks,
        )
        for number, model in view.models
        if number < view.attempt
    ]
    now = ModelPlan(asked=view.asked, built=view.built, held=view.held)
    for problem in guard.about_target(now, view.ranks, before):
        yield events.Alert(
            id=problem.id,
            severity=problem.severity,
            text=problem.text,
            evidence=[f"{target.where} built {_said(target.built)}" for target in before],
            next=problem.next,
        )


def _said(number: int | None) -> str:
    return "nothing" if number is None else f"{number:,}"
