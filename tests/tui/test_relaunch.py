"""R: what it asks, what it asks for, and when it is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bitwatch.plan.cures import CURED
from bitwatch.record import events
from bitwatch.record.afterwards import SUPERVISOR_GONE
from bitwatch.record.view import View
from bitwatch.tui.remedies import remedies
from bitwatch.tui.screens.relaunch import Relaunch
from tests.tui import plans, views
from tests.tui.conftest import Open, Stage

PLANNED = events.Alert(
    id="workers-exceed-shards",
    text="8 of 16 readers idle: 2 shards for 4 ranks x 4 workers. It does not hang.",
    t=views.NOW,
)


def picture(**fields: Any) -> View:
    plan = plans.as_json(plans.incident())
    return views.on_l4s(**{"plan": plan, "alerts": [PLANNED], **fields})


def ended(state: str = "failed", **fields: Any) -> View:
    return picture(**{"state": state, "processes": [], "alerts": [], "phase": "", **fields})


async def give(at: Stage, view: View) -> None:
    at.source.give(view, now=views.NOW)
    await at.pilot.pause()


async def test_a_live_run_shows_both_plans_and_waits_for_enter(stage: Open) -> None:
    async with stage(160, 50) as at:
        await give(at, picture())
        assert "R relaunch" in at.text() and "[R] relaunch corrected" in at.text()
        await at.press("R")
        assert isinstance(at.app.screen, Relaunch)
        text = at.text()
        for words in (
            *("Relaunch attempt 2", "attempt 2: as-is", "attempt 3: ▸indexed   reshard"),
            *("○ idle", "● any", "1  attempt 2, now at step 12,408, stops by agreement"),
            *("3  514.0 MiB are written in about 11 s", "4  attempt 3 goes on from that"),
            "new epoch: model, optimiser and step go on",
        ):
            assert words in text
        assert at.commands.asked == []
        await at.press("enter")
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked == [("relaunch indexed", at.source.run.id, 2)]
        await at.until(lambda: "attempt 3 goes on, indexed" in at.toasts())
        assert at.app.screen is at.dashboard


async def test_another_correction_can_be_chosen(stage: Open) -> None:
    async with stage() as at:
        await give(at, picture())
        await at.press("R", "down")
        assert "1,802 row groups" in at.text()
        await at.press("enter")
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked[0][0] == "relaunch reshard"


async def test_it_means_the_attempt_and_the_correction_that_were_there(stage: Open) -> None:
    async with stage() as at:
        await give(at, picture())
        await at.press("R")
        newer = picture(attempt=3)
        newer.plan["corrections"] = []
        await give(at, newer)
        await at.press("enter")
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked == [("relaunch indexed", at.source.run.id, 2)]


@pytest.mark.parametrize("key", ["escape", "q", "n"])
async def test_no_is_no(stage: Open, key: str) -> None:
    async with stage() as at:
        await give(at, picture())
        await at.press("R", key)
        assert at.app.screen is at.dashboard
        assert at.commands.asked == []


async def test_an_exact_resume_is_no_warning(stage: Open) -> None:
    async with stage(100, 40) as at:
        view = picture()
        view.plan["corrections"][2]["resume"] = "exact"
        await give(at, view)
        await at.press("R")
        assert "resume  exact: it goes on at the very place in the text" in at.text()


async def test_a_low_terminal_shows_first_what_may_be_lost(stage: Open) -> None:
    async with stage(80, 24) as at:
        await give(at, picture())
        await at.press("R")
        assert "new epoch: model" in at.text()
        assert "goes on from that" not in at.text()
        await at.press("space", "space", "space")
        assert "goes on from that" in at.text()


async def test_a_failed_run_is_relaunched_at_once_and_a_stopped_one_after_a_question(
    stage: Open,
) -> None:
    async with stage() as at:
        await give(at, ended("stopped"))
        await at.press("R")
        assert "goes on from the newest checkpoint" in at.text()
        assert "stops by agreement" not in at.text()
        await at.press("escape")
        assert at.commands.asked == []
        await give(at, ended("failed"))
        assert "R relaunch" in at.text()
        await at.press("R")
        assert at.app.screen is at.dashboard
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked == [("relaunch indexed", at.source.run.id, 2)]


async def test_a_correction_that_did_not_start_goes_back_with_one_key(stage: Open) -> None:
    failed = events.Alert(id="relaunch-failed", severity="error", text="attempt 2 did not start")
    async with stage() as at:
        view = ended(last=None, relaunch_of=1, correction="indexed", alerts=[failed])
        await give(at, view)
        assert "[R] go back" in at.text()
        await at.press("R")
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked == [("relaunch back", at.source.run.id, 2)]


async def test_while_an_attempt_stops_nothing_new_is_asked(stage: Open) -> None:
    async with stage() as at:
        await give(at, picture(state="stopping"))
        assert "R relaunch" not in at.text() and "[R]" not in at.text()
        await at.press("R")
        assert at.app.screen is at.dashboard
        assert "attempt 2 is stopping" in at.toasts()
        assert at.commands.asked == []


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        (views.on_l4s(), "the plan needs no correction"),
        (ended("done"), "all steps are done"),
        (views.preparing(), "no attempt yet"),
    ],
)
async def test_where_there_is_nothing_to_relaunch_it_says_so(
    stage: Open, view: View, sentence: str
) -> None:
    async with stage() as at:
        await give(at, view)
        assert "R relaunch" not in at.text()
        await at.press("R")
        assert any(sentence in toast for toast in at.toasts())
        assert at.commands.asked == []


ALWAYS = {"leftovers", "stalled", SUPERVISOR_GONE}


def test_a_correction_is_named_only_where_it_can_be_launched() -> None:
    assert all(remedies(picture())[name] == ("R", "relaunch corrected") for name in CURED)
    for view in (views.on_l4s(), ended("done"), picture(state="stopping")):
        assert set(remedies(view)) == ALWAYS
    # Fewer workers end only that some are idle.
    plan = plans.incident()
    fewer = plans.data(2, 4, 2, imbalance_percent=0.0)
    plan.corrections = [
        plans.correction("fewer-workers", fewer, changes={"data.workers": 2}, recommended=True)
    ]
    assert set(remedies(picture(plan=plans.as_json(plan)))) == {
        *ALWAYS,
        *("workers-exceed-shards", "idle-reader", "rank-without-data"),
    }


async def test_a_plan_from_a_broken_record_is_shown_as_far_as_it_goes(stage: Open) -> None:
    async with stage() as at:
        view = picture()
        view.plan = {
            "data": {},
            "corrections": [{"id": "x\x1b[2J", "changes": {"data.sharding": "x"}}],
        }
        await give(at, view)
        await at.press("R")
        assert "x\\x1b[2J" in at.text() and "who will read what is not known" in at.text()
        later = msgspec.structs.replace(view, plan={})
        await give(at, later)
        await at.press("escape")
        assert at.app.screen is at.dashboard
