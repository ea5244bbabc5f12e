"""What holds for every panel: no size, no view and no text breaks a line or a column."""

from __future__ import annotations

import math
import unicodedata

import pytest
from rich.cells import cell_len

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.tui.draw import Line, clip, fit, middle, plain
from bitwatch.tui.widgets.alerts import AlertBar
from bitwatch.tui.widgets.gpus import GpuPanel
from bitwatch.tui.widgets.header import Header
from bitwatch.tui.widgets.loss import LossPanel
from bitwatch.tui.widgets.painted import Painted
from bitwatch.tui.widgets.panel import Panel
from bitwatch.tui.widgets.processes import ProcessPanel
from bitwatch.tui.widgets.readers import ReaderPanel
from tests.tui import views

WIDGETS = (Header, AlertBar, GpuPanel, LossPanel, ReaderPanel, ProcessPanel)
PANELS = (GpuPanel, LossPanel, ReaderPanel, ProcessPanel)
EVIL = "\x1b[31m[bold]日本語\u202e\x07é\u0301❤\ufe0f\t\n%s"


def hostile() -> View:
    """Everything that a name, a command or a sentence may hold."""
    view = views.with_leftovers()
    view.name = view.note = view.cause = EVIL
    view.phase, view.phase_text = "compile", EVIL * 3
    view.plan["data"]["mode"] = view.plan["data"]["source"] = EVIL
    for alert in view.alerts:
        alert.text = EVIL * 4
    for row in view.processes:
        row.command = EVIL * 5
        row.role = row.role if row.role in ("rank", "worker") else EVIL
    for left in view.leftovers:
        left.command = EVIL
    for reader in view.readers:
        reader.shards = [EVIL] if reader.shards else []
    assert view.gpus
    for card in view.gpus.gpus:
        card.name = EVIL
    view.gpus.gpus[0].error = EVIL
    return view


@pytest.mark.parametrize("kind", WIDGETS)
@pytest.mark.parametrize(
    "make",
    [
        hostile,
        views.on_l4s,
        views.on_cpu,
        views.failed,
        views.ended,
        views.preparing,
        views.many_readers,
    ],
)
def test_no_size_breaks_a_line(kind: type[Painted], make: type[View]) -> None:
    widget = kind()
    widget.show(make(), views.NOW)
    for width in (20, 21, 25, 33, 47, 60, 80, 121, 300):
        for height in (1, 2, 3, 4, 7, 20):
            lines = widget.draw(width, height)
            for line in lines:
                assert line.width == cell_len(line.text), line
                assert line.cut(width).width <= width
                for character in line.text:
                    assert unicodedata.category(character)[0] != "C", repr(line.text)
            if issubclass(kind, Panel) and lines[0].text.startswith("╭"):
                assert [line.width for line in lines] == [width] * height
                assert {line.text[-1] for line in lines[1:-1]} == {"│"}


@pytest.mark.parametrize("kind", PANELS)
def test_a_panel_of_one_line_is_its_number_and_its_summary(kind: type[Panel]) -> None:
    panel = kind()
    panel.show(views.on_l4s(), views.NOW)
    (line,) = panel.draw(80, 1)
    assert line.text.startswith(f" {panel.number} {panel.title}  ")
    assert len(line.text) > 20


def test_text_is_cut_and_padded_by_cells() -> None:
    assert fit("日本語", 5) == "日本…"
    assert cell_len(fit("日本語", 4)) == 4
    assert fit("e\u0301a", 4, right=True) == "  e\u0301a"
    assert clip("abc", 0) == ""
    assert middle("/home/ada/runs/a", 9) == "/hom…ns/a"
    assert plain("a\u202eb\x1b[0m❤\ufe0f") == "a\\u202eb\\x1b[0m❤"


def test_a_line_cut_ends_in_an_ellipsis_and_keeps_its_roles() -> None:
    line = Line("one ", "quiet").add("two", "text").add(" three", "bad")
    assert line.cut(6).text == "one t…"
    assert line.cut(6).spans[-1] == ("t…", "text")
    assert line.cut(13) is line


def test_a_line_that_is_not_finite_is_no_obstacle() -> None:
    view = views.on_l4s(last=views.step(1, loss=math.nan, step_s=0.0, bits_per_byte=math.inf))
    view.rank_steps = {0: events.Step(step=1, step_s=0.0, data_s=math.nan)}
    for kind in WIDGETS:
        widget = kind()
        widget.show(view, views.NOW)
        assert widget.draw(100, 12)
