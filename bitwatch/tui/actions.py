"""Everything that a key does, by its name: what the palette offers on a screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from textual.app import App, SystemCommand
from textual.screen import Screen
from textual.widget import Widget

from bitwatch.tui.where import Bound, bound


def actions(app: App[Any], screen: Screen[Any]) -> Iterable[SystemCommand]:
    """Each with its keys. Two of one name are told apart by where they do something."""
    offered = getattr(screen, "has", lambda key: True)
    found = [each for each in bound(screen) if each.key.id != "palette" and offered(each.key)]
    labels = [each.key.label for each in found]
    for each in found:
        title = f"{each.key.label[:1].upper()}{each.key.label[1:]}"
        if labels.count(each.key.label) > 1:
            title += f" ({each.key.id})"
        keys = each.key.written or "no key"
        yield SystemCommand(title, f"{keys}: {each.key.help}", _run(app, each))


def _run(app: App[Any], each: Bound) -> Callable[[], Awaitable[None]]:
    """As if its key had been pressed there: what a panel does, it does with the focus."""

    async def go() -> None:
        if isinstance(each.node, Widget) and each.node.focusable and not each.node.has_focus:
            each.node.focus()
        await do(app, each)

    return go


async def do(app: App[Any], each: Bound) -> None:
    """What was chosen a moment ago, unless the page that has it was left meanwhile."""
    above = each.node.ancestors_with_self
    if each.node is app or any(screen in above for screen in app.screen_stack):
        await app.run_action(each.key.action, each.node)
