"""The list of the pictures: what is given, and what is pressed before each is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from textual.screen import Screen

from bitwatch.attach.gone import with_alert
from bitwatch.attach.others import Other
from bitwatch.attach.replay import Refusing, Replay
from bitwatch.attach.telling import Mode
from bitwatch.record import events
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.screens.alerts import AlertInFull, AlertsPage
from bitwatch.tui.screens.compare import Compare
from bitwatch.tui.screens.confirm import ConfirmStop
from bitwatch.tui.screens.dashboard import Dashboard
from bitwatch.tui.screens.details import Details
from bitwatch.tui.screens.end_left import EndLeft
from bitwatch.tui.screens.help import Help
from bitwatch.tui.screens.logs import Logs
from bitwatch.tui.screens.over import Palette
from bitwatch.tui.screens.picker import Picker
from bitwatch.tui.screens.plan import PlanScreen
from bitwatch.tui.screens.relaunch import Relaunch
from bitwatch.tui.screens.replay import ReplayDashboard
from bitwatch.tui.screens.signal import SignalDialog
from bitwatch.tui.screens.stacks import StacksPage
from bitwatch.tui.screens.themes import Themes
from bitwatch.tui.screens.why import Why
from bitwatch.tui.themes import load
from tests.attach import played
from tests.tui import every_alert, gpu_views, picture_answers, plans, recorded, views
from tests.tui.beside import TMUX, all_kinds, other

RUN = "2026-11-29-1b21-7f3a"
LOGS = {
    "agent": "W1129 07:14:02.104 torchrun: 2 ranks\n",
    "rank0": "2026-11-29 07:14:03 INFO step 10 loss 0.6931\n"
    "2026-11-29 07:14:05 WARNING 2 of 4 readers have nothing to read\n",
    "rank1": "2026-11-29 07:14:04 INFO step 10 loss 0.6930\n"
    "2026-11-29 07:14:06 ERROR [red]not a colour[/] \x1b[31mnor this\x1b[0m\n",
}


class Picture(NamedTuple):
    """`shows` is the screen that is on top in the end. Pages that read in a thread of theirs are
    waited for: `after` the words that stand there in the end, `before` those that do before a
    key is pressed. `of` makes the program another way than from a view."""

    name: str
    view: Callable[[], View]
    size: tuple[int, int] = (80, 24)
    theme: str = "dark"
    press: Sequence[str] = ()
    others: Sequence[Other] = ()
    mode: Mode = "live"
    shows: type[Screen[Any]] = Dashboard
    before: str = ""
    after: str = ""
    of: Callable[[Picture, Path], Bitwatch] | None = None


def app_of(one: Picture, home: Path) -> Bitwatch:
    """The program over a recorded run whose folder has a name that stays."""
    if one.of is not None:
        return one.of(one, home)
    run = RunDir(recorded.make(home, name="1b21").path.rename(home / RUN))
    for name, text in LOGS.items():
        for attempt in (1, 2):
            run.logs(attempt).mkdir(parents=True, exist_ok=True)
            (run.logs(attempt) / f"{name}.log").write_text(text)
    if one.shows is Dashboard and "o" in one.press:
        picture_answers.make_beside(home)
    source = recorded.Fixed(run, one.view())
    return Bitwatch(source, recorded.Remembered(), load(home)[0], one.theme)


def asks_which_run(one: Picture, home: Path) -> Bitwatch:
    return asking(one, home, lambda: Picker(lambda: picture_answers.choices(home)))


def asks_which_plan(one: Picture, home: Path) -> Bitwatch:
    return asking(one, home, lambda: PlanScreen("1b21", plans.incident(), False))


def cannot_be_launched(one: Picture, home: Path) -> Bitwatch:
    return asking(one, home, lambda: PlanScreen("1b21", plans.incident(blocked=True), True))


def asking(one: Picture, home: Path, choose: Callable[[], Screen[Any]]) -> Bitwatch:
    return Bitwatch(None, recorded.Remembered(), load(home)[0], one.theme, choose=choose)


def replayed(one: Picture, home: Path) -> Bitwatch:
    """A run of two attempts, that stands at its beginning."""
    made = played.make(home)
    replay = Replay(RunDir(made.path.rename(home / RUN)), 60.0, played.Clock())
    replay.start()
    return Bitwatch(
        replay, Refusing(), load(home)[0], one.theme,
        dashboard=lambda run, host, first: ReplayDashboard(replay, host, first),
    )  # fmt: skip


def unreadable() -> View:
    text = "the folder of this run has been deleted or moved; its last picture stays"
    return with_alert(views.on_l4s(), "record-unreadable", text, UNWRITTEN, views.NOW)


def starting() -> View:
    """The ranks are there, and have not taken a step yet."""
    accounts = views.readers(4, 4, 2, samples=0)
    for each in accounts:
        each.state, each.rows = "starting" if each.shards else "idle", 0
    return views.on_l4s(
        state="starting", phase="compile", step=0, last=None, loss=[], evaluations=[],
        rank_steps={}, eta_s=None, readers=accounts, alerts=[], attempt_started=views.NOW - 41,
    )  # fmt: skip


def stalled() -> View:
    words = "rank 2 waits in DataLoader queue.get; ranks 0, 1, 3 wait for it in all_reduce"
    said = events.Alert(
        id="stalled", severity="warning", text=f"no step since 07:14:02: {words}", t=views.NOW - 9,
        next="key s shows where rank 2 is",
    )  # fmt: skip
    return views.on_l4s(state="stalled", phase="", eta_s=None, alerts=[said])


def stopped() -> View:
    cause = "stopped by ada, with a checkpoint at step 12,408"
    ended = msgspec.structs.replace(views.ended(), state="stopped", cause=cause, step=12_408)
    return ended


def lost() -> View:
    cause = "the machine was restarted at 07:14:02"
    return msgspec.structs.replace(
        views.failed(), state="lost", cause=cause, last=views.step(12_408)
    )


def left_of_watched() -> View:
    return views.watched(state="lost", phase="", processes=[], cause="its launcher is gone")


def correctable() -> View:
    return views.on_l4s(plan=plans.as_json(plans.incident()), alerts=views.alerts()[:1])


class Unwritten:
    path = Path(f"/home/ada/.local/state/bitwatch/runs/{RUN}")


UNWRITTEN: Any = Unwritten()
LEFT = [
    other(501 + at, "confirm", run="2026-11-29-train-91ac", role=role, rank=at // 2,
             worker=None if role == "rank" else 0, proof="", why="recorded while watching")
    for at, role in enumerate(("rank", "worker", "rank", "worker"))
]  # fmt: skip
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
    Picture("starting", starting, WIDE, "light"),
    Picture("failed", views.failed, (80, 24), "light"),
    Picture("done", views.ended, WIDE),
    Picture("stopped", stopped, PANE, "light"),
    Picture("stalled", stalled, WIDE, "light"),
    Picture("stopping", partial(views.on_l4s, state="stopping", eta_s=None)),
    Picture("lost", lost, PANE),
    Picture("unreadable", unreadable, (80, 24), "dark", (), (), "reconnecting"),
    Picture("paused", views.on_l4s, (80, 24), "light", ("p",)),
    Picture("high-contrast", views.with_leftovers, WIDE, "high-contrast"),
    Picture("colour-blind", views.with_leftovers, WIDE, "colour-blind"),
    Picture("curves-large", views.on_l4s, LARGE, "dark", ("3", "3", "m", "left", "left")),
    Picture("curves-log-zoomed", views.on_l4s, (80, 24), "light", ("3", "3", "y", "plus", "plus")),
    Picture("curves-beside", views.on_l4s, WIDE, "dark", ("3", "3", "o", "enter"), after="A 1b21-02c4"),
    Picture("gpus-pane", gpu_views.large, PANE, "dark", ("1",)),
    Picture("gpus-whole-run", gpu_views.full_house, LARGE, "light", ("1", "1", "g")),
    Picture("alerts", views.with_leftovers, (80, 24), "dark", ("a",), shows=AlertsPage),
    Picture("one-alert", views.with_leftovers, (80, 24), "light", ("a", "enter"), shows=AlertInFull),
    Picture("every-alert", every_alert.view, LARGE, "light", ("a",), shows=AlertsPage),
    Picture("why", views.with_leftovers, WIDE, "dark", ("w",), shows=Why),
    Picture("stacks", stalled, WIDE, "dark", ("s",), shows=StacksPage, after="rank 3"),
    Picture("details", views.on_l4s, (80, 24), "light", ("4", *["down"] * 3, "enter"), shows=Details, after="nvidia3"),
    Picture("compare", views.on_l4s, WIDE, "light", ("o",), shows=Compare, after="first-77d0"),
    Picture("stop", views.on_l4s, (80, 24), "dark", ("S",), shows=ConfirmStop),
    Picture("signal", views.on_l4s, WIDE, "light", ("4", "4", "down", "down", "K"), shows=SignalDialog),
    Picture("end-left", left_of_watched, (80, 24), "dark", ("c",), [*LEFT, TMUX], shows=EndLeft),
    Picture("relaunch", correctable, WIDE, "dark", ("R",), shows=Relaunch),
    Picture("plan", views.preparing, (80, 24), shows=PlanScreen, of=asks_which_plan),
    Picture("plan-blocked", views.preparing, WIDE, "light", shows=PlanScreen, of=cannot_be_launched),
    Picture("which-run", views.preparing, shows=Picker, after="first-77d0", of=asks_which_run),
    Picture("which-run-large", views.preparing, LARGE, "light", shows=Picker, after="first-77d0", of=asks_which_run),
    Picture("replay", views.preparing, WIDE, "dark", ("p", *["]"] * 5), shows=ReplayDashboard, before="REPLAY 60x", after="50 %", of=replayed),
    Picture("help", views.on_l4s, WIDE, "light", ("4", "question_mark"), shows=Help),
    Picture("palette", views.on_l4s, (80, 24), "dark", ("ctrl+p",), shows=Palette),
    Picture("themes-pane", views.on_l4s, PANE, "light", ("T",), shows=Themes),
    Picture("themes", views.on_l4s, WIDE, "dark", ("T", "down"), shows=Themes),
    Picture("logs", views.on_l4s, (80, 24), "dark", ("l",), shows=Logs, after="not a colour"),
    Picture("too-small", views.on_l4s, (30, 8)),
)  # fmt: skip
