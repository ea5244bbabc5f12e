"""The panel of curves on the real screen: which curve, along what, zoom, cursor, mouse."""

from __future__ import annotations

import math

import msgspec
import pytest

from bitwatch.record import curves, events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.series import Series
from bitwatch.record.view import View
from tests.tui import recorded
from tests.tui.conftest import Open, Stage

VALUES = [1.0, math.nan, 0.9, math.nan, math.nan, math.inf, 0.8]


def told(records: list[events.Step], **fields: object) -> View:
    """A view of one attempt that has told these steps."""
    loss, others = Series(), dict[str, Series]()
    curves.extend(loss, others, records)
    made = {name: [(1, series)] for name, series in others.items()}
    return View(
        run="r", name="r", state="running", attempt=1, started=recorded.BEGAN, step=records[-1].step,
        last=records[-1], recent=records[-64:], loss=[(1, loss)], curves=made, **fields,
    )  # fmt: skip


def step(at: int, loss: float, **fields: object) -> events.Step:
    odd = {"loss": "nan" if math.isnan(loss) else "inf"} if not math.isfinite(loss) else None
    values = {
        "tokens": at * 4096, "bits_per_byte": loss * 11, "grad_norm": 0.4, "learning_rate": 1e-3,
        "tokens_per_s": 20_000.0, "step_s": 1.0, "data_s": 0.1, "t": recorded.BEGAN + 60 * at,
    }  # fmt: skip
    return events.Step(step=at, loss=None if odd else loss, nonfinite=odd, **{**values, **fields})


def falling(count: int, every: int = 1) -> list[events.Step]:
    return [step(at, 0.3 + 3 / (at + 9)) for at in range(every, count * every + 1, every)]


def chart(at: Stage) -> str:
    """The panel alone, as it was drawn."""
    panel = at.dashboard.loss
    return "\n".join(line.text for line in panel.draw(*panel.size))


async def shown(at: Stage, view: View) -> None:
    at.source.give(view, recorded.NOW)
    await at.pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 15)])
@pytest.mark.parametrize("alone", [False, True])
async def test_lone_points_between_what_is_not_finite_are_seen(
    stage: Open, size: tuple[int, int], alone: bool
) -> None:
    async with stage(*size) as at:
        await shown(at, told([step(n, value) for n, value in enumerate(VALUES, start=1)]))
        if alone:
            await at.press("3", "3")
        rows = chart(at).splitlines()
        points = [(x, y) for y, row in enumerate(rows) for x, c in enumerate(row) if c == "•"]
        assert len(points) == 3  # 1.0, 0.9 and the last
        ordered = sorted(points)
        assert [y for _, y in ordered] == sorted(y for _, y in points)  # they fall
        assert len({y for _, y in points}) == 3
        bad = [(x, y) for y, row in enumerate(rows[:-1]) for x, c in enumerate(row) if c == "✗"]
        assert len(bad) == 4
        assert ordered[0][0] < min(bad)[0] < ordered[1][0] < max(bad)[0] < ordered[2][0]
        assert "first NaN at step 2" in rows[-1]
        assert not any(0x2800 < ord(c) <= 0x28FF for row in rows for c in row)  # no line across


async def test_the_first_infinity_is_called_so(stage: Open) -> None:
    async with stage(80, 24) as at:
        await shown(at, told([step(1, 1.0), step(2, math.inf), step(3, math.nan)]))
        assert "first inf at step 2" in chart(at)


async def test_v_goes_through_the_curves_that_have_values(stage: Open) -> None:
    titles = [
        *("Loss", "Bits per byte", "Validation", "Gradient norm", "Learning rate"),
        *("Throughput", "Data wait", "Step time"),
    ]
    async with stage() as at:
        seen = []
        for _ in range(len(titles) + 1):
            seen.append(next(title for title in titles if f"3 {title}" in at.text()))
            await at.press("v")
        assert seen == [*titles, "Loss"]
        await at.press("V")
        assert "3 Loss" in at.text()
        await shown(at, told(falling(50), evaluations=[]))
        await at.press("v", "v")
        assert "3 Gradient norm" in at.text()  # nobody has validated


async def test_all_names_stand_over_a_panel_that_fills_the_screen_and_are_clicked(
    stage: Open,
) -> None:
    async with stage(120, 40) as at:
        await at.press("3")
        assert "data wait" not in at.text()
        await at.press("3")
        panel = at.dashboard.loss
        lines = chart(at).splitlines()
        names = "\n".join(lines[1:3])
        for words in ("loss 0.35", "bits per byte", "learning rate 0.001", "data wait 1.0 %"):
            assert words in names
        row = next(y for y, line in enumerate(lines) if "gradient norm" in line)
        assert await at.pilot.click(panel, offset=(lines[row].index("gradient norm") + 2, row))
        await at.pilot.pause()
        assert "3 Gradient norm" in at.text()


async def test_a_large_screen_has_small_charts_of_the_others(stage: Open) -> None:
    async with stage(200, 60) as at:
        await at.press("3", "3")
        lines = chart(at).splitlines()
        right = [line[150:] for line in lines[2:]]
        for words in ("bits per byte", "gradient norm", "throughput", "step time"):
            row = next(y for y, line in enumerate(right) if words in line)
            below = "".join(right[row + 1 : row + 6])
            assert any(0x2800 < ord(c) <= 0x28FF for c in below), words
        at_row = next(y for y, line in enumerate(lines) if y > 2 and "step time" in line)
        assert await at.pilot.click(at.dashboard.loss, offset=(160, at_row + 2))
        await at.pilot.pause()
        assert "3 Step time" in at.text()


async def test_x_goes_along_steps_tokens_and_time_and_skips_what_is_not_known(
    stage: Open,
) -> None:
    async with stage() as at:
        await shown(at, told(falling(200)))
        panel = at.dashboard.loss
        words = []
        for _ in range(4):
            words.append(chart(at))
            await at.press("x")
        assert ["along tokens" in drawn for drawn in words] == [False, True, False, False]
        assert ["along time" in drawn for drawn in words] == [False, False, True, False]
        assert "819,200" in words[1] or "800,000" in words[1]
        assert "2 h" in words[2] and "3 h" in words[2]
        await shown(at, told([step(n, 0.5, tokens=0) for n in range(1, 20)]))
        panel.axis = "step"
        await at.press("x")
        assert panel.axis == "time"


async def test_attempts_that_repeat_steps_come_one_after_the_other_along_time(
    stage: Open,
) -> None:
    first, second = falling(100), [step(n, 0.3, t=recorded.BEGAN + 9000 + n) for n in range(50, 99)]
    one, other = told(first), told(second)
    both = msgspec.structs.replace(
        one,
        attempt=2,
        loss=[(1, one.loss[0][1]), (2, other.loss[0][1])],
        curves={name: [(1, one.curves[name][0][1]), (2, other.curves[name][0][1])] for name in one.curves},
    )  # fmt: skip
    async with stage() as at:
        await shown(at, both)
        panel = at.dashboard.loss
        assert panel.chart is not None
        ends = {d.track.attempt: d for d in panel.chart.drawn}
        filled = {n: [x for x, c in enumerate(d.columns) if c] for n, d in ends.items()}
        assert filled[1][-1] > filled[2][0]
        await at.press("x", "x")
        assert panel.chart is not None
        filled = {
            d.track.attempt: [x for x, c in enumerate(d.columns) if c] for d in panel.chart.drawn
        }
        assert filled[1][-1] <= filled[2][0]


async def test_keys_zoom_pan_and_go_back(stage: Open) -> None:
    async with stage() as at:
        await shown(at, told(falling(1000)))
        await at.press("3")
        panel = at.dashboard.loss
        assert panel.chart is not None
        whole = panel.chart.window
        await at.press("plus")
        assert panel.chart.window == (501, 1001)  # at the right end
        await at.press("shift+left")
        assert panel.chart.window == (376, 876)
        assert "newest is further right" in chart(at)
        await at.press("shift+right", "shift+right", "shift+right")
        assert panel.chart.window == (501, 1001)
        assert "further right" not in chart(at)
        await at.press("home")
        assert panel.chart.window.first == whole.first
        await at.press("end")
        assert panel.chart.window.end == whole.end
        await at.press("minus")
        assert panel.chart.window == whole
        await at.press("plus", "plus", "0")
        assert panel.chart.window == whole


async def test_keys_in_the_footer_are_clicked_for_the_panel_that_has_the_focus(
    stage: Open,
) -> None:
    async with stage(160, 40) as at:
        await at.press("3")
        footer = at.dashboard.footer
        words = footer.draw(160, 1)[0].text
        assert await at.pilot.click(footer, offset=(words.index("closer"), 0))
        await at.until(lambda: at.dashboard.loss.zoom.window is not None)


async def test_a_zoom_along_what_a_curve_does_not_know_is_dropped(stage: Open) -> None:
    scored = [events.Evaluation(step=at, loss=0.5, t=0.0) for at in (100, 500, 900)]
    async with stage() as at:
        await shown(at, told(falling(1000), evaluations=scored))
        await at.press("3", "x", "x", "plus")
        panel = at.dashboard.loss
        assert panel.along == "time" and panel.zoom.window is not None
        await at.press("v", "v")  # validations whose time is not known
        assert panel.along == "step" and panel.zoom.window is None
        assert "along" not in chart(at)
        await at.press("v")
        assert panel.along == "time"


async def test_a_zoom_at_the_right_end_follows_and_elsewhere_stays(stage: Open) -> None:
    async with stage() as at:
        await shown(at, told(falling(1000)))
        await at.press("3", "plus")
        panel = at.dashboard.loss
        await shown(at, told(falling(1100)))
        assert panel.chart is not None and panel.chart.window == (601, 1101)
        await at.press("home")
        there = panel.chart.window
        await shown(at, told(falling(1200)))
        assert panel.chart.window == there
        assert "newest is further right" in chart(at)


async def test_the_cursor_reads_out_what_stands_under_it(stage: Open) -> None:
    async with stage(120, 40) as at:
        await shown(at, told(falling(40, every=10)))
        await at.press("3", "3", "left")
        said = chart(at).splitlines()[3]
        value = 0.3 + 3 / 409
        for words in ("step 400", "1.638M tokens", "after 6 h 40 min", f"loss {value:.4f}"):
            assert words in said, said
        assert "◆" in chart(at)
        await at.press("left", "m")
        said = chart(at).splitlines()[3]
        assert "step 390" in said and "smoothed" in said
        await at.press("home")
        assert "step 10 " in chart(at).splitlines()[3]


async def test_many_steps_in_a_column_are_read_out_as_a_range(stage: Open) -> None:
    async with stage(120, 40) as at:
        await shown(at, told([step(n, 0.5 + 0.1 * (n % 2)) for n in range(1, 5001)]))
        await at.press("3", "left")
        top = chart(at).splitlines()[0]
        assert "steps 4," in top and "to 5,000" in top and "0.5000 to 0.6000" in top


async def test_escape_drops_cursor_and_zoom_before_it_gives_the_other_panels_back(
    stage: Open,
) -> None:
    async with stage() as at:
        await at.press("3", "3", "plus", "left")
        panel = at.dashboard.loss
        await at.press("escape")
        assert panel.zoom.window is None and panel.zoom.cursor is None
        assert "1 GPUs" not in at.text()
        await at.press("escape")
        assert "1 GPUs" in at.text()


async def test_arrows_are_the_panels_own_only_while_it_has_the_focus(stage: Open) -> None:
    async with stage() as at:
        await at.press("4", "left", "plus")
        assert at.dashboard.loss.zoom.cursor is None and at.dashboard.loss.zoom.window is None


# ---------------------------------------------------------------------------------------
# Detail, and what is kept


async def test_a_close_look_reads_the_file_again(stage: Open) -> None:
    async with stage() as at:
        records = falling(8000)
        path = at.source.run.rank(1, 0)
        path.unlink()
        writer = JournalWriter(path)
        for record in records:
            writer.write(record)
        writer.close()
        view = told(records)
        assert view.loss[0][1].width == 4
        await shown(at, view)
        await at.press("3")
        panel = at.dashboard.loss
        await at.press("plus", "plus", "plus", "plus", "plus")
        assert panel.chart is not None and panel.chart.window.span == 250
        assert "each point" not in chart(at)  # there are enough
        await at.press("plus")
        await at.until(lambda: panel.chart and panel.chart.drawn[0].track.series.width == 1)
        assert "each point" not in chart(at)
        shown_ = [start for start in panel.chart.drawn[0].track.series.starts if start > 7880]
        assert shown_ == list(range(7881, 8001))
        newer = [*records, *(step(n, 0.4) for n in range(8001, 8006))]
        await shown(at, told(newer))
        await at.until(lambda: panel.chart and panel.chart.drawn[0].track.series.starts[-1] == 8005)


async def test_without_the_file_it_says_how_much_each_point_is(stage: Open) -> None:
    async with stage() as at:
        path = at.source.run.rank(1, 0)
        path.unlink()
        records = falling(8000)
        await shown(at, told(records))
        await at.press("3", *["plus"] * 6)
        await at.until(lambda: "each point is 4 steps" in chart(at))
        panel = at.dashboard.loss
        await at.until(lambda: not panel.detail._asked)
        # It is back, as on a network that was away: with the next picture it is read.
        recorded.write(path, records)
        await shown(at, told(records))
        await at.until(lambda: panel.chart and panel.chart.drawn[0].track.series.width == 1)
        assert "each point" not in chart(at)


async def test_what_is_kept_comes_back(stage: Open) -> None:
    async with stage() as at:
        await at.press("v", "x", "y", "m", "m")
        kept = at.dashboard.loss.kept()
        assert kept == {
            "curve": "bits_per_byte",
            "axis": "tokens",
            "log_scale": True,
            "smoothing": 2,
        }
    async with stage() as at:
        panel = at.dashboard.loss
        panel.restore(dict(kept))
        assert panel.kept() == kept
        panel.restore({"curve": 7, "axis": "depth", "smoothing": -1, "log_scale": "yes"})
        assert panel.kept()["axis"] == "tokens" and panel.kept()["curve"] == "loss"
