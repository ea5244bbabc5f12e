"""Before a launch: what the configured plan would do, and beside it what a correction would.

Left with the id of a correction, with AS_IS, or with None when nothing is to be launched.
"""

from __future__ import annotations

from typing import Any

import msgspec
from textual.app import ComposeResult
from textual.screen import Screen

from bitwatch.attach.offer import launchable
from bitwatch.plan.result import Plan
from bitwatch.tui import comparison, keys
from bitwatch.tui.actions import do
from bitwatch.tui.comparison import Side, said
from bitwatch.tui.draw import Line, clip, first_sentence, folded, plain
from bitwatch.tui.where import pressed
from bitwatch.tui.widgets.alerts import ROLES, SEVERITIES, SHAPES
from bitwatch.tui.widgets.chooser import Chooser, Sheet
from bitwatch.tui.widgets.footer import KeyFooter

RESUME = {
    "exact": "a run that is under way goes on at the very place in the text",
    "new-epoch": "a run that is under way begins a new epoch: some text is seen again",
    "refused": "a run that is under way cannot take it",
}
AS_IS = "as-is"
SHOWN = ("corrections", "plan")  # whose keys stand at the bottom
MAPS = 14  # lines of the screen that a map leaves to the rest


class PlanScreen(Screen[str | None]):
    """`blocked`: the configured plan cannot be launched."""

    BINDINGS = keys.bindings("plan")
    AUTO_FOCUS = "#chooser"

    def __init__(self, name: str, configured: Plan, blocked: bool) -> None:
        super().__init__(classes="plan")
        self._run_name = name
        self._blocked = blocked
        self._plan: dict[str, Any] = msgspec.to_builtins(configured)
        self._corrections = launchable(self._plan)
        self._chooser = Chooser(self._lines, len(self._corrections))
        self._footer = KeyFooter()

    def compose(self) -> ComposeResult:
        yield Sheet(self._headline)
        yield self._chooser
        yield self._footer

    def on_mount(self) -> None:
        doing = {"plan-take", "plan-cancel"}
        if not self._blocked:
            doing.add("plan-as-configured")
        if len(self._corrections) > 1:
            doing.add("correction-next")
        self._footer.show_keys(keys.footer(doing, False, SHOWN))

    # -- what it does -----------------------------------------------------------------------

    def action_take(self) -> None:
        self.dismiss(self._corrections[self._chooser.chosen]["id"])

    def action_as_configured(self) -> None:
        if self._blocked:
            self.notify("as configured it cannot be launched", severity="error", markup=False)
        else:
            self.dismiss(AS_IS)

    def action_cancel(self) -> None:
        self.dismiss(None)

    def on_key_footer_pressed(self, message: KeyFooter.Pressed) -> None:
        if each := pressed(self, message.key, message.label):
            self.call_later(do, self.app, each)

    # -- what it shows ----------------------------------------------------------------------

    def _headline(self, width: int) -> list[Line]:
        line = Line(" bitwatch ", "reverse strong accent").add("   ")
        line.add(clip(plain(self._run_name), 40), "strong text").add("   ")
        if self._blocked:
            return [line.add("cannot be launched as configured", "strong bad").cut(width)]
        return [line.add("there is a better plan for its readers", "quiet").cut(width)]

    def _lines(self, width: int, chosen: int) -> list[Line]:
        names = [plain(each["id"]) for each in self._corrections]
        better = self._corrections[chosen]
        data = self._plan["data"]
        old = Side(comparison.heading("as configured:", data["mode"]), data, self._wrong)
        new = Side(
            comparison.choice("corrected:", names, chosen),
            better["data"],
            lambda room: _takes(better, room),
        )
        height = max(4, self.app.size.height - MAPS)
        found = self._errors(better, width)
        return [*found, *([Line()] if found else []), *comparison.lines(old, new, width, height)]

    def _errors(self, better: dict[str, Any], width: int) -> list[Line]:
        """What stands in the way, and the change that helps."""
        errors = [each for each in self._plan["problems"] if each["severity"] == "error"]
        if not self._blocked:
            return []
        found: list[Line] = []
        for error in errors:
            shape = Line(f"{SHAPES['error']} ", "strong bad")
            found += folded(plain(error["text"]), width, "bad", shape)
        helps = Line("  this helps: ", "quiet")
        return [*found, *folded(_changes(better), width, "strong text", helps)]

    def _wrong(self, width: int) -> list[Line]:
        """The problems of the configured plan, the worst first."""
        found: list[Line] = []
        problems = [
            each
            for each in self._plan["problems"]
            if not (self._blocked and each["severity"] == "error")
        ]
        for each in sorted(problems, key=lambda one: SEVERITIES.index(one["severity"])):
            role = ROLES[each["severity"]]
            shape = Line(f"{SHAPES[each['severity']]} ", f"strong {role}")
            found += folded(plain(first_sentence(each["text"])), width, "text", shape)
        return found


def _takes(better: dict[str, Any], width: int) -> list[Line]:
    recommended = "recommended: " if better["recommended"] else ""
    return [
        *said("why", f"{recommended}{plain(better['why'])}", width),
        *said("first", comparison.cost(better["prepare_bytes"], better["prepare_s"]), width),
        *said("changes", _changes(better), width),
        *said("resume", RESUME[better["resume"]], width),
    ]


def _changes(better: dict[str, Any]) -> str:
    """data.sharding = "indexed", as the configuration has it."""
    return ", ".join(
        f"{key} = {msgspec.json.encode(value).decode()}" for key, value in better["changes"].items()
    )
