"""The curve: ranges, ticks, marks, and a cost that no history raises."""

from __future__ import annotations

import bisect
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatch.record import events
from bitwatch.record.series import Series
from bitwatch.record.view import View
from bitwatch.tui import across, axes
from bitwatch.tui.across import Track
from bitwatch.tui.braille import Canvas
from bitwatch.tui.chart import Chart
from bitwatch.tui.curve import Column, columns_of, cuts, filled, smoothed
from bitwatch.tui.drawing import Drawing
from bitwatch.tui.marks import Marks
from bitwatch.tui.tracks import LOSS
from bitwatch.tui.widgets.loss import LossPanel
from tests.tui import views


def lines(view: View, width: int = 80, height: int = 16, **switches: bool) -> list[str]:
    panel = LossPanel()
    for name, on in switches.items():
        setattr(panel, name, on)
    panel.show(view, views.NOW)
    return [line.text for line in panel.draw(width, height)]


def inked(rows: list[str]) -> list[int]:
    """The rows that hold dots of the curve."""
    return [at for at, row in enumerate(rows) if any(0x2800 < ord(c) <= 0x28FF for c in row)]


def series_of(values: list[float], every: int = 1) -> Series:
    made = Series()
    for at, value in enumerate(values):
        made.add(at * every, value)
    return made


def test_a_curve_that_is_flat_now_still_uses_the_height() -> None:
    """The first fall is clipped, and said; what came after it gets most of the rows."""
    falling = [0.7 * math.exp(-at / 10) + 0.09 + 0.002 * math.sin(at) for at in range(1000)]
    rows = lines(views.on_l4s(loss=[(1, series_of(falling))], evaluations=[]))
    late = [row[len(row) // 2 :] for row in rows]
    assert len(inked(late)) >= 4  # of 13
    assert "↑ 0.79" in rows[1]


def test_log_scale_shows_the_whole_fall() -> None:
    rows = lines(views.on_l4s(evaluations=[]), log_scale=True)
    assert len(inked(rows)) >= 12
    assert "↑" not in rows[1] and "log" in rows[-1]


@pytest.mark.parametrize("absurd", [1e300, 1e-300])
@pytest.mark.parametrize("smoothing", [0, 1, 3])
def test_one_absurd_value_leaves_the_axis_to_the_others(absurd: float, smoothing: int) -> None:
    """Smoothed, the curve would leave with it, and not come back for the whole attempt."""
    falling = [0.7 * math.exp(-at / 100) + 0.2 + 0.002 * math.sin(at) for at in range(1000)]
    falling[700] = absurd
    view = views.on_l4s(loss=[(1, series_of(falling))], evaluations=[])
    for log in (True, False):
        rows = lines(view, log_scale=log, smoothing=smoothing)
        assert "e+" not in "".join(rows) and "e-" not in "".join(rows)
        late = [row[-6:-2] for row in rows[1:-2]]
        assert min(inked(late), default=0) >= 9, "low down, and not out of sight"
        if log:
            assert len(inked(rows)) >= 10, "the whole fall"


@pytest.mark.parametrize("value", [0.5, 0.0, -3.0, 1e9, 1e-9, 1e-322])
def test_a_constant_is_a_line(value: float) -> None:
    for log in (False, True):
        rows = lines(
            views.on_l4s(loss=[(1, series_of([value] * 500))], evaluations=[]), log_scale=log
        )
        assert len(inked(rows)) == 1


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[1.7e308], [1.7e308, -1.7e308], [1.7e308, 5e-324, 0.5]])
def test_what_no_axis_can_reach_ends_nothing(values: list[float], log: bool) -> None:
    """As the log of somebody else's training may have it."""
    view = views.on_l4s(loss=[(1, series_of(values))], evaluations=[])
    assert "e+30" in lines(view, log_scale=log)[1]


def test_attempts_validation_and_what_is_not_finite_are_marked() -> None:
    view = views.on_l4s()
    view.loss[1][1].add(9000, math.nan)
    rows = lines(view)
    assert any("┊2" in row for row in rows)
    assert sum(row.count("●") for row in rows[1:-1]) >= 8
    assert any("✗" in row for row in rows[1:-1])
    assert "✗ first NaN at step 9,000" in rows[-1]


def dotted(rows: list[str]) -> list[int]:
    """The columns that hold dots of the curve."""
    return sorted({at for row in rows for at, c in enumerate(row) if 0x2800 < ord(c) <= 0x28FF})


@pytest.mark.parametrize("records", [1, 2, 8])
@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_relaunch_goes_on_as_one_connected_curve(width: int, records: int) -> None:
    """Attempt 1 stops at step 120, attempt 2 goes on from there and logs every 10 steps."""
    before, after = Series(), Series()
    for step in range(10, 121, 10):
        before.add(step, 0.7 - step / 1000)
    for step in range(130, 130 + 10 * records, 10):
        after.add(step, 0.7 - step / 1000)
    rows = lines(views.on_l4s(loss=[(1, before), (2, after)], evaluations=[]), width)
    columns = dotted(rows)
    assert columns == list(range(columns[0], columns[-1] + 1))
    assert columns[-1] >= width - 4  # up to the right edge
    marks = {row.index("┊") for row in rows[1:-1] if "┊" in row}
    assert len(marks) == 1  # one column, where the new attempt begins
    share = (marks.pop() - columns[0]) / (columns[-1] - columns[0])
    assert share == pytest.approx(120 / (120 + 10 * records - 10), abs=0.05)
    assert any("┊2" in row or "2┊" in row for row in rows[1:-1])


def test_an_attempt_that_repeats_steps_is_not_joined_backwards() -> None:
    before, after = Series(), Series()
    for step in range(10, 121, 10):
        before.add(step, 0.5)
    for step in range(70, 131, 10):
        after.add(step, 0.3)
    rows = lines(views.on_l4s(loss=[(1, before), (2, after)], evaluations=[]))
    assert len(inked(rows)) == 2  # two level lines, and nothing between them


def test_a_run_that_is_only_nan_is_drawn() -> None:
    rows = lines(views.on_l4s(loss=[(1, series_of([math.nan] * 100))], evaluations=[]))
    assert any("✗" in row for row in rows[1:-1]) and not inked(rows)


def test_ticks_of_the_steps_are_evenly_spaced() -> None:
    row = lines(views.on_l4s())[-2]
    numbers = [int(word.replace(",", "")) for word in row.split() if word[0].isdigit()]
    assert len(numbers) >= 4
    assert len({b - a for a, b in itertools.pairwise(numbers)}) == 1


def test_validations_leave_the_curve_in_sight() -> None:
    many = [events.Evaluation(step=step, loss=0.09) for step in range(0, 12_000, 10)]
    rows = lines(views.on_l4s(evaluations=many))
    assert sum(row.count("●") for row in rows[1:-1]) <= 80 / 3 + 1
    assert inked(rows)


def test_the_same_curve_is_not_drawn_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    whole = Chart.lines
    monkeypatch.setattr(Chart, "lines", lambda self: drawn.append(1) or whole(self))
    panel, view = LossPanel(), views.on_l4s()
    for _ in range(3):
        panel.show(view, views.NOW)
        panel.draw(80, 16)
    assert len(drawn) == 1
    view.loss[1][1].add(12_416, 7.5)
    panel.draw(80, 16)
    assert len(drawn) == 2


def test_a_chart_is_drawn_anew_when_one_of_its_dots_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 steps on 200 columns of dots: a hundred in each."""
    drawn = []
    whole = Chart.lines
    monkeypatch.setattr(Chart, "lines", lambda self: drawn.append(1) or whole(self))
    series = series_of([2.0 + 0.001 * (step % 7) for step in range(20_000)])
    panel, view = LossPanel(), views.on_l4s(loss=[(1, series)], evaluations=[])

    def draws(value: float, steps: int = 1) -> bool:
        """Whether it is drawn when so many steps more have this loss."""
        before, begin = len(drawn), series.last[0] + 1 if series.last else 0
        series.extend(list(range(begin, begin + steps)), [value] * steps)
        panel.show(view, views.NOW)
        panel.draw(110, 20)
        return len(drawn) > before

    assert draws(2.0)
    assert sum(draws(2.003) for _ in range(20)) <= 5, "in the range of its column"
    assert draws(9.0), "one that stands out is seen at once"
    assert draws(math.nan)
    assert draws(2.003, steps=200), "time goes on"
    panel.zoom.cursor = 5000.0
    assert draws(2.003), "what is read out is of now"


class Counting(list):
    """A list that counts the elements that are taken from it."""

    taken = 0

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        found = super().__getitem__(at)
        Counting.taken += len(found) if isinstance(at, slice) else 1
        return found


def test_a_million_steps_cost_what_the_width_costs() -> None:
    long = series_of([0.1] * 1_000_000)
    short = series_of([0.1] * 2048)
    costs = []
    for made in (short, long):
        made.starts = Counting(made.starts)
        Counting.taken = 0
        columns_of(made, 0, made.last[0], 160)
        costs.append(Counting.taken)
    assert len(long.starts) <= 2048
    assert costs[1] <= costs[0] * 1.1


def attempts_cost(attempts: list[Series]) -> int:
    """How many buckets are looked at for one chart."""
    tracks = [Track(at, made) for at, made in enumerate(attempts, start=1)]
    Counting.taken = 0
    window = across.whole(tracks, across.STEP)
    assert window is not None
    for made in attempts:
        made.low = Counting(made.low)
    drawing = Drawing(LOSS, tracks, [], across.STEP, window, Marks([], [], []))
    Chart(drawing, 160, 40).lines()
    return Counting.taken


def test_many_attempts_cost_what_the_width_costs() -> None:
    def part(first: int, steps: int) -> Series:
        made = Series()
        made.extend(list(range(first, first + steps)), [0.1] * steps)
        return made

    one = attempts_cost([part(0, 2000)])
    assert attempts_cost([part(40 * at, 40) for at in range(50)]) <= 1.1 * one
    again = [attempts_cost([part(0, 2000) for _ in range(count)]) for count in (4, 40)]
    assert again[0] == again[1] <= 4 * one


def test_of_attempts_over_each_other_the_newest_are_drawn() -> None:
    levels = [series_of([value / 10] * 500) for value in range(1, 8)]
    rows = lines(views.on_l4s(loss=list(enumerate(levels, start=1)), evaluations=[]))
    assert len(inked(rows)) == 4


@given(
    st.lists(st.integers(0, 60), unique=True).map(sorted),
    st.lists(st.floats(-5, 70), min_size=2).map(sorted),
)
def test_cuts_are_where_a_search_finds_them(starts: list[int], edges: list[float]) -> None:
    found = cuts(starts, edges)
    assert found == [bisect.bisect_left(starts, edge) for edge in edges]
    columns = [at for at, (a, b) in enumerate(itertools.pairwise(found)) if b > a]
    inside = filled(found)
    assert set(columns) <= set(inside)
    assert not columns or (columns[0], columns[-1]) == (inside[0], inside[-1])


def test_columns_hold_the_lowest_the_highest_and_the_mean() -> None:
    made = series_of([1.0, 3.0, 2.0, 6.0], every=10)
    assert columns_of(made, 0, 39, 2) == [Column(1.0, 3.0, 2.0), Column(2.0, 6.0, 4.0)]
    assert columns_of(made, 0, 79, 4) == [Column(1.0, 3.0, 2.0), Column(2.0, 6.0, 4.0), None, None]


def test_smoothing_leaves_a_constant_as_it_is() -> None:
    columns = [Column(0.3, 0.3, 0.3) if at % 3 else None for at in range(200)]
    assert all(mean is None or math.isclose(mean, 0.3) for mean in smoothed(columns))


# ---------------------------------------------------------------------------------------
# Axes


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-6, 1e6),
    st.integers(3, 60),
)
def test_linear_ticks_are_evenly_spaced_and_the_range_is_shown(
    low: float, spread: float, rows: int
) -> None:
    axis = axes.linear(low, low + spread, rows)
    places = [row for row, _ in axis.ticks]
    assert all(0 <= row < rows for row in places)
    assert len({b - a for a, b in itertools.pairwise(places)}) <= 1
    unit = (axis.high - axis.low) / (rows - 1)
    assert axis.low - unit <= low
    assert axis.high + unit >= low + spread
    assert len({label for _, label in axis.ticks}) == len(places) or abs(low) > 1e3 * spread


@given(st.floats(1e-6, 1e3), st.floats(1.001, 1e6), st.integers(2, 60))
def test_logarithmic_ticks_stand_where_their_value_is(low: float, times: float, rows: int) -> None:
    axis = axes.logarithmic(low, low * times, rows)
    assert axis.ticks
    for row, label in axis.ticks:
        assert 0 <= row < rows
        assert abs(axis.dot(float(label)) // 4 - row) <= 1


def test_labels_tell_ticks_apart() -> None:
    assert axes.label(0.25, 0.25) == "0.25"
    assert axes.label(2.5, 2.5) == "2.5"
    assert axes.label(2.0, 2.0) == "2"
    assert axes.count(1_250_000) == "1.25M"


def test_the_canvas_cuts_off_what_lies_outside() -> None:
    canvas = Canvas(4, 2, ("text", "accent"))
    canvas.vertical(-1, 0, 3, 1)
    canvas.vertical(8, 0, 3, 1)
    canvas.vertical(0, -5, 99, 1)
    assert canvas.line(0).text == "⡇   " and canvas.line(1).text == "⡇   "
