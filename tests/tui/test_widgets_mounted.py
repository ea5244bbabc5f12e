"""The widgets in an app: two pictures, what is painted again, focus, keys and clicks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.pilot import Pilot

from bitwatch.record.view import View
from bitwatch.tui import themes
from bitwatch.tui.widgets.alerts import AlertBar
from bitwatch.tui.widgets.footer import KeyFooter
from bitwatch.tui.widgets.gpus import GpuPanel
from bitwatch.tui.widgets.header import Header
from bitwatch.tui.widgets.loss import LossPanel
from bitwatch.tui.widgets.painted import Painted
from bitwatch.tui.widgets.processes import ProcessPanel
from bitwatch.tui.widgets.readers import ReaderPanel
from tests.tui import views

KEYS = [("q", "detach"), ("S", "stop"), ("w", "why"), ("l", "logs"), ("?", "help")]


class Pictures(App[None]):
    CSS = """
    #left, LossPanel { width: 1fr; }
    GpuPanel { height: 6; }
    #top { height: 45%; }
    .narrow GpuPanel { height: 4; }
    .narrow ReaderPanel, .narrow ProcessPanel { height: 1; }
    """

    def __init__(self, view: View, theme: str) -> None:
        super().__init__()
        self.shown, self.wanted = view, theme
        self.pressed: list[str] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.variables_of(self.current_theme)

    def compose(self) -> ComposeResult:
        yield Header()
        yield AlertBar()
        if self.size.width < 100:
            with Vertical(classes="narrow"):
                yield from (GpuPanel(), LossPanel(), ReaderPanel(), ProcessPanel())
        else:
            with Horizontal(id="top"):
                with Vertical(id="left"):
                    yield from (GpuPanel(), ReaderPanel())
                yield LossPanel()
            yield ProcessPanel()
        yield KeyFooter()

    def on_key_footer_pressed(self, message: KeyFooter.Pressed) -> None:
        self.pressed.append(message.key)

    def on_alert_bar_pressed(self, message: AlertBar.Pressed) -> None:
        self.pressed.append(message.key)

    def on_mount(self) -> None:
        for theme in themes.load()[0]:
            self.register_theme(theme)
        self.theme = self.wanted
        self.query_one(KeyFooter).show_keys(KEYS)


async def show(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, Pictures)
    for widget in app.query(Painted):
        widget.show(app.shown, views.NOW)
    await pilot.pause()


@pytest.mark.parametrize(
    ("make", "theme", "size"),
    [
        (views.with_leftovers, "dark", (120, 40)),
        (views.on_cpu, "light", (80, 24)),
    ],
)
def test_the_widgets_together(
    make: Callable[[], View],
    theme: str,
    size: tuple[int, int],
    snap_compare: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert snap_compare(Pictures(make(), theme), terminal_size=size, run_before=show)


async def test_only_lines_that_changed_are_painted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Pictures(views.on_l4s(), "dark")
    async with app.run_test(size=(120, 40)) as pilot:
        await show(pilot)
        panel = app.query_one(ProcessPanel)
        refreshed: list[Any] = []
        monkeypatch.setattr(panel, "refresh", lambda *regions, **_: refreshed.extend(regions))
        panel.show(app.shown, views.NOW)
        assert refreshed == []
        busier = msgspec.structs.replace(app.shown.processes[2], cpu_percent=55.0)
        processes = [*app.shown.processes[:2], busier, *app.shown.processes[3:]]
        panel.show(msgspec.structs.replace(app.shown, processes=processes), views.NOW)
        assert [region.height for region in refreshed] == [1]


async def test_a_click_on_a_key_says_which() -> None:
    app = Pictures(views.on_l4s(), "dark")
    async with app.run_test(size=(120, 40)) as pilot:
        await show(pilot)
        await pilot.click(KeyFooter, offset=(12, 0))
        line = app.query_one(AlertBar).draw(120, 1)[0].text
        await pilot.click(AlertBar, offset=(line.index("[w]") + 1, 0))
        await pilot.click(AlertBar, offset=(3, 0))
        assert app.pressed == ["S", "w", "a"]


async def test_focus_expands_the_processes_and_keys_move_the_cursor() -> None:
    app = Pictures(views.on_l4s(), "dark")
    async with app.run_test(size=(120, 32)) as pilot:
        await show(pilot)
        panel = app.query_one(ProcessPanel)
        app.screen.set_focus(None)
        await pilot.pause()
        panel.draw(120, 12)
        assert len(panel._rows) < 22
        panel.focus()
        await pilot.pause()
        panel.draw(120, 12)
        assert len(panel._rows) == 22
        await pilot.press("down", "down")
        chosen = panel.selected()
        assert chosen is not None and chosen.role == "rank 0"
        await pilot.press("end")
        chosen = panel.selected()
        assert chosen is not None and chosen.role == "worker 3"
