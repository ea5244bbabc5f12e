"""The ranks' own model against what was asked, planned, and built before."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.supervise.watch_model import another_model, lowered


def test_another_model_than_asked_or_planned_is_said_with_all_numbers() -> None:
    view = View(asked=100, built=90, plan={"model": {"built": 100}})
    (alert,) = another_model(view)
    assert (alert.id, alert.severity) == ("parameters-differ", "error")
    assert alert.evidence == ["asked 100, planned 100, built 90"]
    view = View(built=90, plan={"model": {"built": 100}})
    (alert,) = another_model(view)
    assert "the plan says 100" in alert.text
    assert list(another_model(View(asked=90, built=90))) == []
    assert list(another_model(View(asked=90))) == []  # nobody has built anything yet


def test_an_attempt_with_less_than_the_one_before_has_a_lasting_alert() -> None:
    models = [
        (1, events.ModelBuilt(asked=679_962_626, built=679_962_626, ranks=4)),
        (2, events.ModelBuilt(asked=1000, built=1000, ranks=4)),
    ]
    view = View(attempt=2, asked=1000, built=1000, ranks=4, models=models)
    (alert,) = lowered(view)
    assert alert.id == "target-lowered"
    assert alert.evidence == ["attempt 1 of this run built 679,962,626"]
    view = View(attempt=2, asked=169_990_657, built=169_990_657, ranks=4, models=models)
    (alert,) = lowered(view)
    assert alert.id == "target-lowered"  # the ranks really built that: it is no share
