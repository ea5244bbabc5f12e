"""Every page names the keys that it has, whatever the user's file makes of them."""

from __future__ import annotations

import msgspec

from bitwatch.record import events, rundir
from bitwatch.tui.screens.logs import Logs
from bitwatch.tui.screens.why import Why
from tests.tui.conftest import Open
from tests.tui.test_logs_page import append, logs, open_page, says, status, subtitle

OTHERS = {
    "logs-follow": "f6",
    "logs-search": "f7",
    "logs-next-error": "f8",
    "logs-before": "f9",
    "logs-next": "f10",
    "logs-wrap": "",
    "logs-next-found": "t",
    "logs-found-before": "T",
    "compare": "u",
    "compare-choose": "u",
    "compare-filter": "f2",
    "picker-leave": "x",
    "untag": "",
    "detach": "q",
    "alerts": "z",
    "alerts-open": "f11",
    "signal": "K",
    "sort": "",
}


async def test_the_page_of_logs(stage: Open) -> None:
    async with stage(110, 24, given=OTHERS) as at:
        folder = logs(at, rank0="one\n" * 60 + "two\n", rank1="a\n")
        rundir.new_attempt(at.source.run)
        await open_page(at)
        await at.press("0")
        await at.until(lambda: "F6 follow  F7 search  F8 errors  F9 F10 logs  [ ]" in status(at))
        assert "wrap" not in status(at)
        await at.press("t")
        await at.until(says(at, "F7 asks for a word to find"))
        await at.press("up")
        await at.until(lambda: subtitle(at) == "does not follow · F6 goes to the end")
        append(folder / "rank0.log", "more\n")
        await at.until(lambda: subtitle(at) == "1 new line below · F6 follows")
        await at.press("f7", *"two", "enter")
        await at.until(lambda: "1 of 1" in status(at))
        for key, other in (("t", "T"), ("T", "t")):
            await at.press(key)
            await at.until(lambda other=other: f"; {other} goes the other way" in status(at))


async def test_the_page_where_a_run_to_compare_is_chosen(stage: Open) -> None:
    async with stage(given=OTHERS) as at:
        await at.press("u")
        await at.until(says(at, "enter adds or removes · F2 filters · x closes"))
        await at.press("x")
        for number in range(4):
            at.dashboard._chosen(rundir.create(at.source.run.path.parent, f"other{number}"))
        await at.until(at.toasts)
        assert at.toasts() == ["at most 3 runs at once; u takes one away"]


async def test_the_page_of_why(stage: Open) -> None:
    alert = events.Alert(id="x", text="many", evidence=[str(n) for n in range(99)])
    async with stage(given=OTHERS) as at:
        at.source.give(msgspec.structs.replace(at.source.view, alerts=[alert]))
        await at.press("w")
        assert isinstance(at.app.screen, Why)
        await at.until(says(at, "more: z, then F11"))


async def test_the_palette_has_no_key_that_only_its_digit_makes_plain(stage: Open) -> None:
    async with stage() as at:
        logs(at, rank0="one\n")
        await open_page(at)
        assert isinstance(at.app.screen, Logs)
        offered = {command.title for command in at.app.get_system_commands(at.app.screen)}
        assert "Next log" in offered and "Rank" not in offered
