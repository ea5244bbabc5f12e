"""What a curve is drawn along, what is marked beside it, and which part of it is shown. Pure."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bitwatch.record import events
from bitwatch.record.series import Series
from bitwatch.record.view import View
from bitwatch.tui import across
from bitwatch.tui.across import STEP, TIME, TOKENS, Track, Window
from bitwatch.tui.marks import marks_of
from bitwatch.tui.tracks import LOSS, by_id, tracks
from bitwatch.tui.widgets.loss import LossPanel
from bitwatch.tui.zoom import Zoom
from tests.tui import views

BEGAN = 1_700_000_000.0


def track(attempt: int, first: int, last: int, begins: float, every: int = 1) -> Track:
    """A step every 2 seconds, 64 tokens a step."""
    loss, tokens, time = Series(limit=64), Series(limit=64), Series(limit=64)
    for at in range(first, last + 1, every):
        loss.add(at, 1 / at)
        tokens.add(at, 64.0 * at)
        time.add(at, begins + 2 * (at - first))
    return Track(attempt, loss, tokens, time, BEGAN)


def view_of(*shown: Track, **fields: object) -> View:
    return views.on_cpu(
        started=BEGAN,
        loss=[(one.attempt, one.series) for one in shown],
        curves={
            "tokens": [(one.attempt, one.tokens) for one in shown],
            "t": [(one.attempt, one.time) for one in shown],
        },
        **fields,
    )


@given(st.integers(1, 5000), st.sampled_from([1, 3, 10]))
def test_a_step_stands_where_its_tokens_and_its_time_are(step: int, every: int) -> None:
    one = track(1, 1, 5000, BEGAN + 100, every)
    step = max(1, min(step - step % every + 1, 4990))
    width = one.series.width + every
    tokens, time = across.position(one, TOKENS, step), across.position(one, TIME, step)
    assert tokens is not None and abs(tokens - 64 * step) <= 64 * width
    assert time is not None and abs(time - (100 + 2 * (step - 1))) <= 2 * width
    for axis, x in ((TOKENS, tokens), (TIME, time)):
        back = across.step_at(one, axis, x)
        assert back is not None and abs(back - step) <= 2 * width
    assert across.position(one, STEP, step) == step


def test_every_bucket_falls_into_one_column_whatever_the_axis() -> None:
    one = track(1, 1, 5000, BEGAN)
    for axis in across.ALL:
        window = across.whole([one], axis)
        assert window is not None
        bounds = across.bounds(one, axis, one.series.starts, window.edges(37))
        assert bounds[0] == 0 and bounds[-1] == len(one.series.starts)
        assert bounds == sorted(bounds)


def test_what_is_not_known_has_no_place() -> None:
    bare = Track(1, track(1, 1, 50, BEGAN).series)
    assert not across.is_known([bare], TOKENS) and across.whole([bare], TIME) is None
    assert across.position(bare, TIME, 5) is None
    assert across.bounds(bare, TIME, bare.series.starts, [0.0, 1.0]) == [0, 0]


@given(st.floats(1, 1e7), st.integers(20, 250))
@example(300.0, 180)  # 210 s of it are 125.99999999999999 columns
def test_ticks_of_time_are_evenly_spaced_and_have_room(span_s: float, columns: int) -> None:
    found = across.ticks(TIME, Window(0.0, span_s), columns)
    places = [column for column, _ in found]
    assert found[0] == (0, "0 s")
    gaps = [b - a for a, b in itertools.pairwise(places)]
    assert all(max(gaps) - gap <= 1 for gap in gaps)
    assert all(gap > len(text) for gap, (_, text) in zip(gaps, found, strict=False))
    assert len({text for _, text in found}) == len(found)


def test_times_are_said_in_words() -> None:
    said = {5: "5 s", 60: "1 min", 90: "1 min 30 s", 3600: "1 h", 4800: "1 h 20 min"}
    said |= {86_400: "1 d", 86_400 * 2 + 6 * 3600: "2 d 6 h"}
    assert {seconds: across.lasting(seconds) for seconds in said} == said


def test_alerts_and_checkpoints_stand_at_their_step_tokens_and_time() -> None:
    first, second = track(1, 1, 100, BEGAN + 10), track(2, 60, 200, BEGAN + 1000)
    raised = events.Alert(id="a", severity="error", attempt=2, t=BEGAN + 1000 + 2 * 90)
    early = events.Alert(id="b", severity="warning", attempt=1, t=BEGAN + 3)
    cleared = events.Alert(id="a", severity="error", cleared=True, attempt=2, t=BEGAN + 1200)
    told = events.Alert(id="c", severity="info", attempt=2, t=BEGAN + 1100)
    view = view_of(
        first,
        second,
        alerts=[],
        past_alerts=[early, raised, cleared, told],
        checkpoints=[events.Checkpoint(step=150, t=BEGAN + 1180)],
    )
    shown = tracks(view, LOSS)
    along = {axis: marks_of(view, LOSS, shown, axis) for axis in across.ALL}
    [(step, role)] = along[STEP].alerts  # what was raised before the first step has none
    assert (abs(step - 150) <= second.series.width, role) == (True, "bad")
    assert along[TIME].alerts == [(3.0, "warning"), (1180.0, "bad")]
    assert along[STEP].checkpoints == [150] and along[TIME].checkpoints == [1180.0]
    assert along[TOKENS].checkpoints == [pytest.approx(150 * 64, abs=64 * second.series.width)]


def test_marks_at_the_foot_hide_no_dot_of_the_curve() -> None:
    one = track(1, 1, 60, BEGAN)
    many = [events.Checkpoint(step=at, t=BEGAN) for at in range(1, 60)]
    drawn = []
    for checkpoints in ([], many):
        panel = LossPanel()
        panel.show(view_of(one, checkpoints=checkpoints), views.NOW)
        drawn.append([line.text for line in panel.draw(80, 16)])
    bare, marked = drawn
    assert any("◇" in row for row in marked) and not any("◇" in row for row in bare)
    assert marked[-3].count("◇") <= 80 / 3 + 1
    rows = [row for row in marked if "◇" in row]
    assert len(rows) == 1 and not any(0x2800 < ord(c) <= 0x28FF for c in rows[0])


def test_validations_are_a_curve_by_the_attempt_that_made_them() -> None:
    first, second = track(1, 1, 100, BEGAN + 10), track(2, 60, 200, BEGAN + 1000)
    scored = [
        events.Evaluation(step=50, loss=0.5, t=BEGAN + 110),
        events.Evaluation(step=100, loss=0.4, t=BEGAN + 210),
        events.Evaluation(step=150, loss=0.3, t=BEGAN + 1180),
    ]
    found = tracks(view_of(first, second, attempt=2, evaluations=scored), by_id("validation"))
    assert [(one.attempt, one.series.starts) for one in found] == [(1, [50, 100]), (2, [150])]
    assert across.whole(found, TIME) == Window(110.0, pytest.approx(1180.0, abs=0.1))
    assert across.is_known(found, TOKENS)


@given(st.lists(st.tuples(st.sampled_from("zwpsfe0n"), st.floats(-1, 1)), max_size=30))
def test_a_window_never_leaves_what_there_is(moves: list[tuple[str, float]]) -> None:
    zoom, whole = Zoom(), Window(1, 1001)
    for move, by in moves:
        newest = whole.end - 1
        if move == "n":
            whole = Window(1, whole.end + 37)
        elif move == "0":
            zoom.clear()
        elif move in "zw":
            at = 500 + 400 * by
            zoom.zoom(0.5 if move == "z" else 2.0, whole, newest, STEP, at)
        elif move == "p":
            zoom.pan(300 * by, whole, newest, STEP)
        else:
            zoom.go(move == "e", whole, newest, STEP)
        shown = zoom.shown(whole, whole.end - 1)
        assert whole.first <= shown.first < shown.end <= whole.end
        assert shown.span >= 8


def test_a_curve_of_which_no_value_is_finite_has_no_place_and_can_be_written() -> None:
    bare = Track(1, track(1, 1, 50, BEGAN).series, Series(), Series(), BEGAN)
    assert across.position(bare, TOKENS, 5) is None and across.position(bare, TIME, 5) is None
    assert across.step_at(bare, TIME, 5.0) is None
    assert across.bounds(bare, TIME, bare.series.starts, [0.0, 1.0]) == [0, 0]
    assert across.whole([bare], TIME) is None
    one = track(1, 1, 100, BEGAN + 10)
    view = view_of(
        one._replace(tokens=Series()), evaluations=[events.Evaluation(step=50, loss=0.5)]
    )
    assert not across.is_known(tracks(view, by_id("validation")), TOKENS)
    kind = by_id("step_s")
    said = [kind.value(each) for each in (float("inf"), float("nan"), 90.0, 0.25)]
    assert said == ["inf s", "nan s", "1 m 30 s", "0.25 s"]
