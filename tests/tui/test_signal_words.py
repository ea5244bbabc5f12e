"""What the dialog of signals says of them, for whom they are meant."""

from __future__ import annotations

import msgspec
import pytest
from textual.widgets import OptionList

from bitwatch.attach.signals import SIGNALS
from bitwatch.tui import family
from bitwatch.tui.rows import Row
from bitwatch.tui.sections import beside
from bitwatch.tui.signal_words import words
from bitwatch.tui.targets import Target, targets_of
from tests.tui import views
from tests.tui.beside import all_kinds, other
from tests.tui.conftest import Open

GENERAL = dict(SIGNALS)


def made(*roles: str) -> list[Target]:
    rows = family.make(views.on_l4s(), views.NOW).values()
    return targets_of([next(row for row in rows if row.process.role == role) for role in roles])


@pytest.mark.parametrize(
    ("name", "role", "training", "says"),
    [
        ("TERM", "rank", True, "stops all ranks with a checkpoint, if they agree"),
        ("TERM", "agent", True, "is passed on: all ranks stop with a checkpoint"),
        ("TERM", "supervisor", True, "stops the training, with a checkpoint"),
        ("INT", "supervisor", False, "stops the training, with a checkpoint"),
        ("TERM", "rank", False, "what it has not saved is lost"),
        ("TERM", "worker", True, "what it has not saved is lost"),
        ("STOP", "supervisor", True, "the training goes on, unwatched"),
        ("STOP", "rank", True, "the others wait for it"),
        ("KILL", "rank", True, "ends it at once"),
    ],
)
def test_a_signal_does_another_thing_to_each_role(
    name: str, role: str, training: bool, says: str
) -> None:
    (line,) = words(name, made(role), training=training)
    assert says in line


def test_for_several_roles_each_is_named_and_alike_ones_share_their_words() -> None:
    both = words("TERM", made("rank", "worker"), training=True)
    assert [line.partition(" it ")[0] for line in both] == [
        "rank: stops all ranks with a checkpoint, if they agree on a step",
        "worker: asks",
    ]
    assert words("KILL", made("rank", "worker"), training=True) == [GENERAL["KILL"]]
    (alike,) = words("TERM", [*made("rank"), *made("rank")], training=True)
    assert alike.startswith("stops all ranks")


def test_of_others_and_of_somebody_elses_training_nothing_is_promised() -> None:
    theirs = targets_of(family.make(views.on_l4s(), views.NOW).values(), foreign=True)
    left = targets_of(beside(views.on_l4s(), all_kinds(), views.NOW))
    for targets in (theirs, left):
        for name, does in SIGNALS:
            assert words(name, targets, training=True) == [does]


def test_what_waits_to_be_reaped_gets_no_signal_but_live_threads_of_it_do() -> None:
    view = views.on_l4s()
    view.processes[3] = msgspec.structs.replace(view.processes[3], state="Z")
    view.processes[4] = msgspec.structs.replace(view.processes[4], state="Z", threads_live=2)
    rows = {row.process.pid: row for row in family.make(view, views.NOW).values()}
    dead, halved, whole = targets_of(rows[view.processes[at].pid] for at in (3, 4, 5))
    assert dead.barred == "has ended already, and its parent must reap it"
    assert (halved.barred, whole.barred) == ("", "")
    gone = targets_of(
        row
        for row in family.make(msgspec.structs.replace(view, supervisor="gone"), 0.0).values()
        if row.process.role == "supervisor"
    )
    assert gone[0].barred == "has ended already"
    zombie = other(9, "suspect", state="Z", words="ended, its parent has not reaped it")
    leader = other(10, "suspect", state="Z", words="leader dead, 3 threads live")
    found = targets_of(beside(view, (zombie, leader), views.NOW))
    assert [bool(target.barred) for target in found] == [True, False]


async def test_the_dialog_bars_what_has_ended_and_says_what_becomes_of_a_training(
    stage: Open,
) -> None:
    async with stage() as at:
        view = at.source.view
        ended = [
            msgspec.structs.replace(row, state="Z") if row.pid == 105 else row
            for row in view.processes
        ]
        at.source.give(msgspec.structs.replace(view, processes=ended))
        await at.press("4", *["down"] * 4)
        row = at.dashboard.processes.selected()
        assert isinstance(row, Row) and row.process.pid == 105
        await at.press("K")
        assert "Nothing here can be signalled" in at.text() and "has ended already" in at.text()
        assert at.app.screen.query_one(OptionList).option_count == 1
        await at.press("escape", "home", "K")
        assert "supervisor, pid 100" in at.text()
        said = " ".join(at.text().split())
        assert "stops the training, with a checkpoint" in said
        assert "the training goes on, unwatched" in said and "its training waits" not in said
