"""Every key of the dashboard, on a run recorded by the test."""

from __future__ import annotations

import msgspec
import pytest
from textual.command import CommandPalette
from textual.widgets import Button

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.tui import keys
from bitwatch.tui.screens import why
from bitwatch.tui.screens.confirm import ConfirmStop
from bitwatch.tui.screens.help import Help
from bitwatch.tui.screens.logs import Logs
from bitwatch.tui.screens.why import Why
from tests.tui import recorded
from tests.tui.conftest import Open


async def test_q_leaves_and_asks_nothing_of_the_run(stage: Open) -> None:
    async with stage() as at:
        await at.press("q")
        assert at.app._exit
        assert at.source.closed
        assert at.commands.asked == []
        assert at.app.return_code == 0


async def test_ctrl_c_only_says_what_does_what(stage: Open) -> None:
    async with stage() as at:
        await at.press("ctrl+c")
        assert not at.app._exit
        assert at.commands.asked == []
        assert any("q detaches" in toast and "S stops" in toast for toast in at.toasts())
        await at.press("S", "ctrl+c")
        assert isinstance(at.app.screen, ConfirmStop)
        assert at.commands.asked == []


async def test_stop_asks_with_cancel_focused(stage: Open) -> None:
    async with stage() as at:
        for answer in ("enter", "escape", "q", "n"):
            await at.press("S")
            assert isinstance(at.app.screen, ConfirmStop)
            assert isinstance(at.app.focused, Button) and at.app.focused.id == "cancel"
            await at.press(answer)
            assert at.app.screen is at.dashboard
        assert at.commands.asked == []
        await at.press("S", "tab", "enter")
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked == [("stop", at.source.run.id, 1)]
        await at.until(lambda: "attempt 1 stops" in at.toasts())


async def test_a_stop_means_the_attempt_that_was_there_when_it_was_asked(stage: Open) -> None:
    async with stage() as at:
        await at.press("S")
        at.source.give(msgspec.structs.replace(at.source.view, attempt=2))
        await at.pilot.pause()
        assert "attempt 1?" in at.text()
        await at.press("right", "enter")
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked[0][2] == 1


async def test_an_ended_run_has_nothing_to_stop(stage: Open) -> None:
    async with stage(ended=True) as at:
        assert "S stop" not in at.text()
        await at.press("S")
        assert at.app.screen is at.dashboard
        assert any("nothing to stop" in toast for toast in at.toasts())


@pytest.mark.parametrize("key", ["?", "h", "f1"])
async def test_help_names_every_key(stage: Open, key: str) -> None:
    async with stage(120, 50) as at:
        await at.press(key)
        assert isinstance(at.app.screen, Help)
        for each in keys.KEYS:
            if not each.scope:
                assert f" {each.written} " in at.text() and each.id in at.text()
        await at.press(key)
        assert at.app.screen is at.dashboard


async def test_why_shows_the_evidence_and_the_next_step(stage: Open) -> None:
    async with stage() as at:
        await at.press("w")
        assert isinstance(at.app.screen, Why)
        assert "given no shard (pid 105)" in at.text()
        assert "--set data.workers=1" in at.text()
        await at.press("escape")
        assert at.app.screen is at.dashboard


async def test_why_begins_with_the_model_and_keeps_what_the_bar_leaves_out(stage: Open) -> None:
    async with stage() as at:
        view = at.source.view
        planned = events.Alert(id="workers-exceed-shards", text="2 of 4 readers idle. More of it.")
        models = [(1, events.ModelBuilt(built=170)), (2, events.ModelBuilt(built=680))]
        at.source.give(
            msgspec.structs.replace(
                view, attempt=2, asked=1208, built=680, held=[170, 171], models=models,
                alerts=[planned, *view.alerts],
            )
        )  # fmt: skip
        await at.pilot.pause()
        bar = [row for row in at.text().splitlines() if "[w]" in row]
        assert len(bar) == 1 and "2 of 4 readers idle  " in bar[0] and "more" not in bar[0]
        await at.press("w")
        for words in (
            *("built 680 parameters, asked 1,208", "2 ranks hold 170 to 171 of them each"),
            *("attempt 1 built 170: this is another model", "2 of 4 readers idle. More of it."),
            "2 of 4 readers have nothing to read",
        ):
            assert words in at.text()


async def test_why_without_an_alert_says_so(stage: Open) -> None:
    async with stage() as at:
        at.source.give(msgspec.structs.replace(at.source.view, alerts=[], past_alerts=[]))
        await at.pilot.pause()
        await at.press("w")
        assert "Nothing is wrong" in at.text()


async def test_why_of_a_run_that_failed_has_evidence_and_what_to_do(stage: Open) -> None:
    died = events.Alert(
        id="rank-died", severity="error", text="rank 1 was killed", attempt=1,
        evidence=["rank 0 failed: Connection reset"],
    )  # fmt: skip
    async with stage() as at:
        view = msgspec.structs.replace(
            at.source.view, state="failed", cause="rank 1 was killed by SIGKILL", alerts=[],
            past_alerts=[died, msgspec.structs.replace(died, cleared=True)],
            checkpoints=[], run="2026-11-30-demo-1",
        )  # fmt: skip
        at.source.give(view)
        await at.pilot.pause()
        await at.press("w")
        for words in (
            *("failed: rank 1 was killed by SIGKILL", "rank 0 failed: Connection reset"),
            *("key R starts it anew", "bitwatch report 2026-11-30-demo-1"),
        ):
            assert words in at.text()


def test_a_stop_that_lost_nothing_is_no_alarm() -> None:
    whole = "stopped by SIGTERM from pid 7 to rank 0, with a checkpoint"
    for cause, colour in ((whole, "$quiet"), ("stopped by signals, without a checkpoint", "$bad")):
        (said,) = [block.text for block in why.text(View(state="stopped", cause=cause))]
        assert said.plain == f"stopped: {cause}"
        assert [str(span.style) for span in said.spans] == [f"bold {colour}"]


async def test_logs_are_merged_literal_and_go_on(stage: Open) -> None:
    async with stage() as at:
        folder = at.source.run.logs(1)
        (folder / "rank0.log").write_text("hello [bold]from[/] rank \x1b[31mzero\x1b[0m\n")
        (folder / "rank1.log").write_text("漢字 é e\u0301 \u202eabc\n")
        await at.press("l")
        assert isinstance(at.app.screen, Logs)
        await at.until(lambda: "rank 1  漢字" in at.text())
        assert "rank 0  hello [bold]from[/] rank zero" in at.text()
        assert "\\u202eabc" in at.text()
        with open(folder / "rank0.log", "a") as log:
            log.write("one more\n")
        await at.until(lambda: "rank 0  one more" in at.text())
        await at.press("r")
        await at.until(lambda: "[/] rank \\x1b[31mzero\\x1b[0m" in at.text())
        await at.press("l")
        assert at.app.screen is at.dashboard


async def test_pause_holds_the_picture_and_reading_goes_on(stage: Open) -> None:
    async with stage() as at:
        await at.press("p")
        assert "paused" in at.text()
        at.source.give(msgspec.structs.replace(at.source.view, step=410))
        await at.pilot.pause()
        assert "400/800" in at.text()
        assert at.dashboard.snapshot and at.dashboard.snapshot.view.step == 410
        await at.press("p")
        assert "410/800" in at.text()
        assert "paused" not in at.text()


async def test_t_changes_between_tree_and_list(stage: Open) -> None:
    async with stage() as at:
        assert "└─" in at.text()
        await at.press("t")
        assert "└─" not in at.text()
        await at.press("t")
        assert "└─" in at.text()


@pytest.mark.parametrize(
    ("key", "words"),
    [("y", ("log",)), ("m", ("smoothed light", "smoothed medium", "smoothed strong"))],
)
async def test_the_curve_says_how_it_is_drawn(
    stage: Open, key: str, words: tuple[str, ...]
) -> None:
    async with stage() as at:
        for word in words:
            assert f"{word} ─" not in at.text()
            await at.press(key)
            assert f"{word} ─" in at.text()
        await at.press(key)
        assert not any(f"{word} ─" in at.text() for word in words)


@pytest.mark.parametrize(
    ("key", "title", "others"),
    [
        ("1", "1 GPUs", ("2 Readers", "3 Loss", "4 Processes")),
        ("2", "2 Readers", ("1 GPUs", "3 Loss", "4 Processes")),
        ("3", "3 Loss", ("1 GPUs", "2 Readers", "4 Processes")),
        ("4", "4 Processes", ("1 GPUs", "2 Readers", "3 Loss")),
    ],
)
async def test_a_number_goes_to_its_panel_then_fills_the_screen(
    stage: Open, key: str, title: str, others: tuple[str, ...]
) -> None:
    async with stage() as at:
        await at.press(key)
        assert at.app.focused is not None and at.app.focused.title in title  # type: ignore[attr-defined]
        assert all(other in at.text() for other in others)
        await at.press(key)
        assert title in at.text()
        assert not any(other in at.text() for other in others)
        await at.press("escape")
        assert all(other in at.text() for other in others)


async def test_a_number_opens_a_summary_line_at_once(stage: Open) -> None:
    async with stage(80, 24) as at:
        assert "worker 0" not in at.text()
        await at.press("4")
        assert "worker 0" in at.text()
        assert "3 Loss" not in at.text()
        await at.press("2")
        assert "2 Readers" in at.text() and "4 Processes" not in at.text()
        await at.press("2")
        assert "3 Loss" in at.text()


async def test_tab_goes_round_the_panels(stage: Open) -> None:
    async with stage() as at:
        seen = []
        for _ in range(5):
            await at.press("tab")
            assert at.app.focused is not None
            seen.append(at.app.focused.id)
        assert seen == ["gpus", "readers", "loss", "processes", "gpus"]
        await at.press("shift+tab")
        assert at.app.focused is not None and at.app.focused.id == "processes"


async def test_the_palette_has_the_themes(stage: Open) -> None:
    async with stage() as at:
        assert set(at.app.available_themes) >= {"dark", "light"}
        assert "nord" not in at.app.available_themes
        await at.press("ctrl+p")
        assert isinstance(at.app.screen, CommandPalette)
        await at.press(*"light")
        await at.until(lambda: "Theme: light" in at.text())
        await at.press("enter")
        await at.until(lambda: at.app.theme == "light")


async def test_c_cleans_and_says_what_it_did(stage: Open) -> None:
    async with stage() as at:
        assert "c clean up" not in at.text()
        left = events.ProcessStart(pid=7, starttime=1, role="worker", rank=0, worker=1, attempt=1)
        alive = recorded.Liveness(supervisor=True, agent=True, leftovers=(left,))
        at.source.give(recorded.seen(at.source.run, alive))
        await at.pilot.pause()
        assert "c clean up" in at.text()
        assert "1 process of ended attempt 1 is still there" in at.text()
        await at.press("c")
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked == [("clean", at.source.run.id, 0)]
        await at.until(lambda: "ended worker 1 of rank 0 (pid 7)" in at.toasts())


async def test_a_command_that_fails_is_a_sentence(
    stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage() as at:

        def refuse(run: object) -> str:
            raise OSError("no room")

        monkeypatch.setattr(at.commands, "clean", refuse)
        await at.press("c")
        await at.until(lambda: "no room" in at.toasts())
        assert at.app.screen is at.dashboard and at.commands.asked == []


async def test_the_footer_names_keys_and_is_clickable(stage: Open) -> None:
    async with stage() as at:
        footer = at.text().splitlines()[-1]
        for words in ("q detach", "S stop", "w why", "l logs", "p pause", "? help", "^p palette"):
            assert words in footer
        await at.pilot.click("#footer", offset=(footer.index("? help"), 0))
        await at.until(lambda: isinstance(at.app.screen, Help))


async def test_the_alerts_why_is_clickable(stage: Open) -> None:
    async with stage() as at:
        line = next(row for row in at.text().splitlines() if "[w]" in row)
        await at.pilot.click("#alerts", offset=(line.index("[w]") + 1, 0))
        await at.until(lambda: isinstance(at.app.screen, Why))
        assert at.dashboard.view.alerts[0].text in " ".join(at.text().split())
