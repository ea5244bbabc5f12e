"""What a relaunch would be, from every state of a run."""

from __future__ import annotations

from typing import Any

import pytest

from bitwatch.attach.offer import Offer, offers
from bitwatch.record import events
from bitwatch.record.view import END_STATES, View

OLD = {"mode": "as-is", "readers_idle": 8}


def correction(id_: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "recommended": False,
        "resume": "new-epoch",
        "prepare_s": 0.0,
        "prepare_bytes": 0,
        "changes": {"data.sharding": id_},
        "why": f"why {id_}",
        "data": {"mode": id_},
        **fields,
    }


CORRECTIONS = [
    correction("more-files", changes={}),
    correction("reshard"),
    correction("indexed", recommended=True, resume="exact", prepare_s=9.5, prepare_bytes=514),
]


def view(state: str, corrections: list[dict[str, Any]] = CORRECTIONS, **fields: Any) -> View:
    plan = {"data": OLD, "corrections": corrections}
    return View(**{"state": state, "attempt": 2, "plan": plan, **fields})


def ids(seen: View) -> list[str]:
    return [offer.correction for offer in offers(seen)]


@pytest.mark.parametrize("state", ["preparing", "starting", "running", "stalled", "stopping"])
def test_a_live_run_offers_what_can_be_launched_the_recommended_one_first(state: str) -> None:
    first, second = offers(view(state))
    assert first == Offer(
        attempt=2,
        correction="indexed",
        label="relaunch: indexed",
        at_once=False,
        live=True,
        resume="exact",
        old=OLD,
        new={"mode": "indexed"},
        why="why indexed",
        prepare_s=9.5,
        prepare_bytes=514,
    )
    assert (second.correction, second.resume, second.at_once) == ("reshard", "new-epoch", False)


def test_a_live_run_whose_plan_is_sound_offers_nothing() -> None:
    assert ids(view("running", [])) == []
    assert ids(view("running", [CORRECTIONS[0]])) == []


def test_nothing_is_offered_after_the_end_or_before_the_beginning() -> None:
    assert ids(view("done")) == []
    assert ids(view("preparing", attempt=0)) == ids(view("lost", attempt=0)) == []


@pytest.mark.parametrize("state", sorted(set(END_STATES) - {"done"}))
def test_an_ended_run_relaunches_corrected_or_as_it_was(state: str) -> None:
    seen = view(state, last=events.Step(step=7))
    assert ids(seen) == ["indexed", "reshard", "same"]
    assert not any(offer.live for offer in offers(seen))
    asked = [offer.correction for offer in offers(seen) if not offer.at_once]
    # What was stopped on purpose does not lose its place, or write a file, without a question.
    assert asked == (["indexed", "reshard"] if state == "stopped" else [])
    assert ids(view(state, [], last=events.Step(step=7))) == ["same"]
    same = offers(seen)[-1]
    assert (same.label, same.resume, same.new) == ("relaunch", "exact", OLD)


@pytest.mark.parametrize("state", ["failed", "lost", "stopped"])
def test_a_correction_that_did_not_start_is_taken_back_first(state: str) -> None:
    seen = view(state, relaunch_of=1, correction="indexed")
    back, same = offers(seen)
    assert (back.correction, back.label, back.at_once) == ("back", "back to attempt 1", True)
    assert (same.correction, same.at_once) == ("same", True)


def test_there_is_no_way_back_from_what_has_trained_or_was_no_correction() -> None:
    trained = view("failed", relaunch_of=1, correction="indexed", last=events.Step(step=1))
    for seen in (trained, view("failed"), view("failed", relaunch_of=1, correction="same")):
        assert "back" not in ids(seen)
    # When going back failed too, the correction that failed before is not the first thing tried.
    assert ids(view("failed", relaunch_of=2, correction="back"))[0] == "same"


def test_a_correction_that_hangs_before_its_first_step_can_be_taken_back() -> None:
    seen = view("preparing", [], relaunch_of=1, correction="indexed")
    (back,) = offers(seen)
    assert (back.correction, back.live, back.at_once) == ("back", True, False)


def test_a_correction_that_refuses_to_go_on_is_not_offered() -> None:
    refused = correction("indexed", resume="refused", recommended=True)
    assert ids(view("running", [refused, correction("reshard")])) == ["reshard"]


def test_a_plan_of_an_older_version_is_no_obstacle() -> None:
    old = [{"id": "indexed", "recommended": True, "resume": "new-epoch"}]
    assert ids(view("running", old)) == []
    assert ids(View(state="running", attempt=1)) == []
