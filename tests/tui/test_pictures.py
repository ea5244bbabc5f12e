"""Every screen, state, theme and layout as a picture, with a clock that stands still."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from textual.pilot import Pilot

from bitwatch.attach.follow import Mode, with_alert
from bitwatch.attach.others import Other
from bitwatch.record import events
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.themes import load
from tests.tui import gpu_views, recorded, views
from tests.tui.beside import all_kinds

LOGS = {
    "agent": "W1129 07:14:02.104 torchrun: 2 ranks\n",
    "rank0": "2026-11-29 07:14:03 INFO step 10 loss 0.6931\n"
    "2026-11-29 07:14:05 WARNING 2 of 4 readers have nothing to read\n",
    "rank1": "2026-11-29 07:14:04 INFO step 10 loss 0.6930\n"
    "2026-11-29 07:14:06 ERROR [red]not a colour[/] \x1b[31mnor this\x1b[0m\n",
}


class Picture(NamedTuple):
    """What is given, and what is pressed before the picture is taken."""

    name: str
    view: Callable[[], View]
    size: tuple[int, int] = (80, 24)
    theme: str = "dark"
    press: Sequence[str] = ()
    others: Sequence[Other] = ()
    mode: Mode = "live"


def unreadable() -> View:
    text = "the folder of this run has been deleted or moved; its last picture stays"
    return with_alert(views.on_l4s(), "record-unreadable", text, UNWRITTEN, views.NOW)


def stalled() -> View:
    words = "rank 2 waits in DataLoader queue.get; ranks 0, 1, 3 wait for it in all_reduce"
    said = events.Alert(
        id="stalled", severity="warning", text=f"no step since 07:14:02: {words}", t=views.NOW - 9,
        next="key s shows where rank 2 is",
    )  # fmt: skip
    return views.on_l4s(state="stalled", phase="", eta_s=None, alerts=[said])


def lost() -> View:
    cause = "the machine was restarted at 07:14:02"
    return msgspec.structs.replace(
        views.failed(), state="lost", cause=cause, last=views.step(12_408)
    )


class Unwritten:
    path = Path("/home/ada/.local/state/bitwatch/runs/2026-11-29-1b21-7f3a")


UNWRITTEN: Any = Unwritten()
WIDE, LARGE, PANE = (120, 40), (200, 60), (60, 15)
PICTURES = (
    Picture("running-pane", views.on_l4s, PANE),
    Picture("running-wide-light", views.on_l4s, WIDE, "light"),
    Picture("running-large", views.on_l4s, LARGE),
    Picture("leftovers-and-others", views.with_leftovers, WIDE, "dark", ("4", "4"), all_kinds()),
    Picture("leftovers-pane", views.with_leftovers, PANE, "light"),
    Picture("on-a-cpu", views.on_cpu, WIDE),
    Picture("many-readers", views.many_readers, WIDE, "light", ("2", "2")),
    Picture("watched", views.watched, WIDE),
    Picture("preparing", views.preparing),
    Picture("failed", views.failed, (80, 24), "light"),
    Picture("done", views.ended, WIDE),
    Picture("stalled", stalled, WIDE, "light"),
    Picture("stopping", partial(views.on_l4s, state="stopping")),
    Picture("lost", lost, PANE),
    Picture("unreadable", unreadable, (80, 24), "dark", (), (), "reconnecting"),
    Picture("paused", views.on_l4s, (80, 24), "light", ("p",)),
    Picture("high-contrast", views.with_leftovers, WIDE, "high-contrast"),
    Picture("colour-blind", views.with_leftovers, WIDE, "colour-blind"),
    Picture("curves-large", views.on_l4s, LARGE, "dark", ("3", "3", "m", "left", "left")),
    Picture("curves-log-zoomed", views.on_l4s, (80, 24), "light", ("3", "3", "y", "plus", "plus")),
    Picture("gpus-pane", gpu_views.large, PANE, "dark", ("1", "1")),
    Picture("gpus-whole-run", gpu_views.full_house, LARGE, "light", ("1", "1", "g")),
    Picture("alerts", views.with_leftovers, (80, 24), "dark", ("a",)),
    Picture("one-alert", views.with_leftovers, (80, 24), "light", ("a", "enter")),
    Picture("why", views.with_leftovers, WIDE, "dark", ("w",)),
    Picture("stop", views.on_l4s, (80, 24), "dark", ("S",)),
    Picture("signal", views.on_l4s, WIDE, "light", ("4", "4", "down", "down", "K")),
    Picture("help", views.on_l4s, WIDE, "light", ("4", "question_mark")),
    Picture("logs", views.on_l4s, (80, 24), "dark", ("l",)),
    Picture("too-small", views.on_l4s, (30, 8)),
)


@pytest.mark.parametrize("one", PICTURES, ids=[one.name for one in PICTURES])
def test_it_looks_as_it_did(
    one: Picture, snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("COLORTERM", "truecolor"), ("TERM", "xterm-256color"), ("TZ", "UTC")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/ada/.config")
    time.tzset()
    made = recorded.make(tmp_path, name="1b21").path
    run = RunDir(made.rename(tmp_path / "2026-11-29-1b21-7f3a"))  # an id that stays
    for name, text in LOGS.items():
        for attempt in (1, 2):
            run.logs(attempt).mkdir(parents=True, exist_ok=True)
            (run.logs(attempt) / f"{name}.log").write_text(text)
    source = recorded.Fixed(run, one.view())
    app = Bitwatch(source, recorded.Remembered(), load(tmp_path)[0], one.theme)

    async def prepare(pilot: Pilot[None]) -> None:
        source.give(source.view, now=views.NOW, mode=one.mode, others=one.others)
        await pilot.pause()
        await pilot.press(*one.press)
        if "l" in one.press:
            await until_read(pilot)
        await pilot.pause()

    assert snap_compare(app, terminal_size=one.size, run_before=prepare)


async def until_read(pilot: Pilot[None]) -> None:
    for _ in range(250):
        rows = pilot.app.screen._compositor.render_strips(pilot.app.size)
        if "not a colour" in "\n".join(strip.text for strip in rows):
            return
        await pilot.pause(0.02)
    raise AssertionError("the logs were never read")


def test_every_theme_has_a_picture() -> None:
    assert {theme.name for theme in load(Path("/nowhere"))[0]} == {one.theme for one in PICTURES}
