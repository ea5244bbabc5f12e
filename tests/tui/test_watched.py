"""A training that bitwatch did not start, on the same dashboard: what is unknown says so."""

from __future__ import annotations

import pytest

from bitwatch.attach.offer import offers
from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.tui.rows import Row
from bitwatch.tui.sections import sections
from bitwatch.tui.widgets.gpus import GpuPanel
from bitwatch.tui.widgets.header import Header
from bitwatch.tui.widgets.loss import LossPanel
from bitwatch.tui.widgets.processes import ProcessPanel
from bitwatch.tui.widgets.readers import ReaderPanel
from tests.tui import views
from tests.tui.conftest import Open


def workers(view: View, width: int = 66, height: int = 12) -> list[str]:
    panel = ReaderPanel()
    panel.show(view, views.NOW)
    return [line.text.rstrip() for line in panel.draw(width, height)]


def test_workers_are_counted_a_rank_and_what_they_read_is_unknown() -> None:
    drawn = "\n".join(workers(views.watched()))
    assert "workers 8 of 4 ranks  what they read is unknown" in drawn
    assert drawn.count("2 workers") == 4
    assert "cpu   67 %" in drawn and "0.78 GiB" in drawn


def test_a_worker_that_is_stopped_or_blocked_is_seen() -> None:
    view = views.watched()
    held = [row for row in view.processes if row.role == "worker"][:2]
    held[0].state, held[1].state = "T", "D"
    assert any("blocked, stopped" in line for line in workers(view))


@pytest.mark.parametrize("height", range(1, 8))
def test_any_height_holds_and_says_how_many_more(height: int) -> None:
    drawn = workers(views.watched(), 50, height)
    assert len(drawn) <= height
    if 3 < height < 7:
        assert any("more ranks" in line for line in drawn)


def test_a_log_alone_has_no_processes() -> None:
    alone = views.watched(processes=[], gpus=None, device="")
    for panel, words in (
        (GpuPanel(), "which GPUs it uses is unknown"),
        (ProcessPanel(), "no process of it is known"),
    ):
        panel.show(alone, views.NOW)
        assert words in "\n".join(line.text for line in panel.draw(60, 8))
    assert "no process of it is known" in "\n".join(workers(views.watched(processes=[])))


def header(view: View) -> str:
    widget = Header()
    widget.show(view, views.NOW)
    return "\n".join(line.text for line in widget.draw(120, 2))


def test_the_header_says_that_it_is_watched_and_counts_in_tokens() -> None:
    text = header(views.watched())
    assert "watched" in text and "step 12,408 of unknown" in text
    assert "20.1k tok/s" in text and "bit/s" not in text and "bits/byte" not in text
    assert "step 12,408/20,000" in header(views.watched(steps=20_000))
    assert "attempt 2" in header(views.watched(attempt=2))


def test_without_a_step_the_curve_says_why() -> None:
    panel = LossPanel()
    panel.show(views.watched(loss=[], last=None, step=0), views.NOW)
    assert "its log has told of no step yet" in "\n".join(x.text for x in panel.draw(60, 8))
    note = events.Note(text="its output goes to a terminal: there is no log to read")
    panel.show(views.watched(loss=[], last=None, step=0, notes=[note]), views.NOW)
    assert "goes to a terminal" in "\n".join(line.text for line in panel.draw(60, 8))


async def test_it_is_neither_stopped_nor_relaunched(stage: Open) -> None:
    assert offers(views.watched(state="failed")) == []
    async with stage() as at:
        at.source.give(views.watched())
        await at.until(lambda: at.dashboard.view.foreign)
        await at.press("S")
        assert at.app.screen is at.dashboard
        assert any("stopped where it was started" in toast for toast in at.toasts())
        await at.press("R")
        assert any("relaunched where it was started" in toast for toast in at.toasts())
        assert at.commands.asked == []
        bottom = at.text().splitlines()[-1]
        assert "detach" in bottom and "stop" not in bottom and "relaunch" not in bottom


def test_its_processes_are_not_called_ours() -> None:
    view = views.watched()
    beside = [Row(view.processes[0], "worker", "running", group="confirm")]
    headings = [section.heading.title for section in sections(view, beside)]
    assert headings[0] == "this training"
    panel = ProcessPanel()
    panel.show(view, views.NOW)
    drawn = "\n".join(line.text for line in panel.draw(100, 20))
    assert f"{len(view.processes)} of it" in drawn and "ours" not in drawn
