"""The page of alerts: what is wrong now and the history, by keyboard and mouse."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.episodes import CLEARED, WITH_ATTEMPT, episodes
from bitwatch.record.view import View
from bitwatch.tui.alert_rows import THEN
from bitwatch.tui.screens.alerts import AlertInFull, AlertsPage
from bitwatch.tui.widgets.alert_list import AlertList
from tests.tui import alarms, views
from tests.tui.alarms import FULL, HOT, IDLE, LOST, STUCK, cleared, told
from tests.tui.conftest import Open, Stage

NOW = views.NOW


async def opened(at: Stage, view: View | None = None) -> AlertList:
    at.source.give(view or alarms.view(), now=NOW)
    await at.pilot.pause()
    await at.press("a")
    page = at.app.screen
    assert isinstance(page, AlertsPage)
    return page.alerts


def ids(shown: AlertList) -> list[str]:
    """Of the alerts in their order, as far as they are shown."""
    return [row.episode.alert.id for row in shown._rows if hasattr(row, "episode")]


def line_of(at: Stage, words: str) -> int:
    return next(n for n, line in enumerate(at.text().splitlines()) if words in line)


# -- the history ------------------------------------------------------------------------


def test_a_history_is_episodes_with_their_beginning_and_end() -> None:
    found = episodes(alarms.HISTORY, {1: NOW - 7500}, 2)
    assert [(one.alert.id, one.how) for one in found] == [
        ("loss-spike", CLEARED),
        ("stalled", WITH_ATTEMPT),
        ("disk-low", CLEARED),
        ("workers-exceed-shards", ""),
        ("newer-version", CLEARED),
        ("gpu-throttled", CLEARED),
        ("gpu-throttled", ""),
        ("loss-not-finite", ""),
    ]
    assert [one.lasted_s(NOW) for one in found[:3]] == [340.0, 32_500.0, 900.0]
    assert len({one.key for one in found}) == len(found)


def test_what_is_said_anew_is_the_same_episode_and_keeps_its_beginning() -> None:
    later = told(LOST, 50.0)
    later.text, later.severity = "worse", "error"
    (one,) = episodes([LOST, later], {}, 2)
    assert (one.raised, one.alert.text, one.how) == (LOST.t, "worse", "")
    (unknown,) = episodes([cleared(LOST, 9.0)], {}, 2)  # the record begins later
    assert (unknown.raised, unknown.how, unknown.lasted_s(NOW)) == (None, CLEARED, None)
    (lost,) = episodes([STUCK], {}, 2)  # nobody wrote down when its attempt ended
    assert (lost.how, lost.over, lost.lasted_s(NOW)) == (WITH_ATTEMPT, None, None)


# -- the page ---------------------------------------------------------------------------


async def test_a_shows_what_is_wrong_now_by_severity_and_then_the_newest_that_was(
    stage: Open,
) -> None:
    async with stage(120, 40) as at:
        shown = await opened(at)
        assert ids(shown) == [
            "loss-not-finite", "gpu-throttled", "workers-exceed-shards",
            "gpu-throttled", "newer-version", "disk-low", "stalled", "loss-spike",
        ]  # fmt: skip
        lines = at.text().splitlines()
        assert "1 m 35 s" in lines[line_of(at, "step 12,404")]
        stuck = lines[line_of(at, "rank 2 waits for text")]
        assert "attempt ended" in stuck and "9 h 01 m" in stuck
        assert "go on with a lower train.learning_rate" in at.text()  # of the selected one
        await at.press("escape")
        assert at.app.screen is at.dashboard


async def test_enter_and_right_open_one_in_full_with_all_its_evidence(stage: Open) -> None:
    async with stage(80, 24) as at:
        await opened(at)
        await at.press("j", "j", "enter")
        page = at.app.screen
        assert isinstance(page, AlertInFull)
        assert "warning · attempt 2 · raised" in at.text() and "for 2 h 04 m" in at.text()
        await at.press("pagedown")
        assert "rank 1 worker 3: given no shard" in at.text()  # the last of fifteen lines
        assert "Take as many workers" in at.text()
        await at.press("left")
        assert isinstance(at.app.screen, AlertsPage)
        await at.press("end", "right")
        assert "usually 0.38" in at.text() and "cleared" in at.text()
        await at.press("escape", "q")
        assert at.app.screen is at.dashboard


async def test_what_is_over_tells_nobody_what_to_do_now(stage: Open) -> None:
    async with stage(100, 30) as at:
        await opened(at)
        assert "  S stops it with a checkpoint" in at.text() and THEN not in at.text()
        # Nobody wrote down when the attempt ended, as of a run that is lost.
        over = alarms.view(state="lost", alerts=[])
        at.source.give(over, now=NOW + 9)
        await at.pilot.pause()
        await at.press("home")
        assert f"{THEN}: S stops it with a checkpoint" in at.text()
        lost = at.text().splitlines()[line_of(at, "step 12,404")]
        assert "–  the loss" in lost, "how long it lasted nobody knows"
        await at.press("enter")
        text = at.text()
        assert "ended with it" in text and "S stops it with a checkpoint" in text
        assert f"  {THEN}  " in text and "  next  " not in text


async def test_the_selection_is_the_alert_wherever_it_moves(stage: Open) -> None:
    async with stage(100, 30) as at:
        shown = await opened(at)
        await at.press("j")
        selected = shown.selected()
        assert selected is not None and selected.alert.id == "gpu-throttled"
        key = selected.key
        # It has cleared: the same episode, now the newest of those before.
        again = alarms.view(
            alerts=[IDLE, LOST],
            past_alerts=[*alarms.HISTORY, cleared(told(HOT, 3100.0), 850.0)],
        )
        at.source.give(again, now=NOW + 1)
        await at.pilot.pause()
        moved = shown.selected()
        assert moved is not None and moved.key == key and moved.how == CLEARED
        # Another error comes above all.
        worse = events.Alert(id="gpu-lost", severity="error", text="GPU 1", attempt=2, t=NOW)
        again.alerts.append(worse)
        again.past_alerts.append(worse)
        at.source.give(again, now=NOW + 9)
        await at.pilot.pause()
        assert ids(shown)[0] == "gpu-lost"
        still = shown.selected()
        assert still is not None and still.key == key
        # Nothing of it is there any more: the line stays.
        at.source.give(views.on_l4s(alerts=[]), now=NOW + 20)
        await at.pilot.pause()
        assert shown.selected() is None and "nothing is wrong that bitwatch knows of" in at.text()
        await at.press("enter", "down", "up", "end", "home", "pagedown")
        assert isinstance(at.app.screen, AlertsPage)


async def test_a_picture_that_is_held_still_holds_the_page(stage: Open) -> None:
    async with stage(100, 30) as at:
        at.source.give(alarms.view(), now=NOW)
        await at.press("p", "a")
        page = at.app.screen
        assert isinstance(page, AlertsPage)
        at.source.give(views.on_l4s(alerts=[]), now=NOW + 5)
        await at.pilot.pause()
        assert ids(page.alerts)[0] == "loss-not-finite"


async def test_severity_and_text_filter_what_is_shown(stage: Open) -> None:
    async with stage(100, 30) as at:
        shown = await opened(at)
        await at.press("1")
        assert ids(shown) == ["loss-not-finite", "disk-low"] and "Alerts · errors" in at.text()
        await at.press("2")
        assert "newer-version" not in ids(shown) and len(ids(shown)) == 7
        await at.press("3")
        assert len(ids(shown)) == 8
        levels = []
        for _ in range(3):
            await at.press("f")
            levels.append(len(ids(shown)))
        assert levels == [2, 7, 8]
        await at.press("slash", *"disk", "1")
        assert ids(shown) == [] and "none of 8 alerts is like that" in at.text()
        await at.press("backspace", "enter")
        assert ids(shown) == ["disk-low"] and "Alerts · /disk" in at.text()
        await at.press("escape")
        assert len(ids(shown)) == 8 and isinstance(at.app.screen, AlertsPage)
        await at.press("escape")
        assert at.app.screen is at.dashboard


async def test_the_mouse_selects_opens_and_scrolls(stage: Open) -> None:
    async with stage(100, 30) as at:
        shown = await opened(at)
        place = shown.region
        y = line_of(at, "less than 16 GiB") - place.y
        await at.pilot.click(AlertList, offset=(20, y))
        selected = shown.selected()
        assert selected is not None and selected.alert.id == "disk-low"
        await at.pilot.click(AlertList, offset=(20, y), times=2)
        await at.pilot.pause()
        assert isinstance(at.app.screen, AlertInFull)
        await at.press("escape")
        before = shown._at
        await at.pilot._post_mouse_events([events_scroll()], AlertList, (5, 5))
        assert shown._at > before
        await at.pilot.click(AlertList, offset=(5, 0))  # the head of the columns
        await at.pilot.click(AlertList, offset=(5, 1))  # a heading
        assert shown.selected() is not None


def events_scroll() -> type:
    from textual.events import MouseScrollDown

    return MouseScrollDown


async def test_a_click_on_the_sentence_opens_the_page_and_one_on_the_key_does_what_it_says(
    stage: Open,
) -> None:
    async with stage(60, 15) as at:
        at.source.give(alarms.view(), now=NOW)
        await at.pilot.pause()
        bar = at.dashboard.alerts
        line = at.text().splitlines()[bar.region.y]
        assert "the loss is not finite" in line and "+2" in line
        await at.pilot.click(bar, offset=(10, 0))
        await at.pilot.pause()
        assert isinstance(at.app.screen, AlertsPage)
        await at.press("escape")
        await at.pilot.click(bar, offset=(line.index("+2"), 0))
        await at.pilot.pause()
        assert isinstance(at.app.screen, AlertsPage)
        await at.press("escape")
        await at.pilot.click(bar, offset=(line.index("[w]") + 1, 0))
        await at.pilot.pause()
        assert not isinstance(at.app.screen, AlertsPage) and at.app.screen is not at.dashboard


async def test_a_long_history_scrolls_and_a_narrow_one_keeps_the_sentences(stage: Open) -> None:
    history = []
    for number in range(200):
        one = told(FULL, 10.0 * number)
        history += [one, cleared(one, 5.0)]
    async with stage(60, 15) as at:
        shown = await opened(at, alarms.view(alerts=[], past_alerts=history))
        assert len(ids(shown)) == 200
        assert "less than 16 GiB left on" in at.text()
        await at.press("G")
        last = shown.selected()
        assert last is not None and last.raised == FULL.t
        await at.press("pageup", "k", "g")
        first = shown.selected()
        assert first is not None and first.raised == FULL.t + 1990.0
        at.source.give(alarms.view(), now=NOW)
        for size in ((200, 60), (80, 24), (40, 10), (60, 15)):
            await at.pilot.resize_terminal(*size)
            await at.pilot.pause()
        at.source.give(views.ended(past_alerts=history), now=NOW)
        await at.press("home")
        assert "the run has ended (done)" in at.text()


async def test_what_others_write_is_shown_literally(stage: Open) -> None:
    evil = events.Alert(
        id="log-error", severity="error", text="[red]x[/] \x1b[2J", evidence=["[b]e \x07"],
        next="[link=x]", attempt=2, t=NOW - 9,
    )  # fmt: skip
    async with stage(100, 30) as at:
        await opened(at, alarms.view(alerts=[evil], past_alerts=[evil]))
        assert "[red]x[/] \\x1b[2J" in at.text()
        await at.press("enter")
        assert "[b]e \\x07" in at.text() and "[link=x]" in at.text()
