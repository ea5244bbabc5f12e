"""Which keys of the table do something on a screen, and on what: for the help and the palette.

Asked of what is bound, so that neither can name a key that nothing has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from bitwatch.tui import keys
from bitwatch.tui.keys import Key


class Bound(NamedTuple):
    """An action, and the widget or the screen that it is done by."""

    key: Key
    node: DOMNode


def bound(screen: Screen[Any]) -> list[Bound]:
    """What there is on it: first of what has the focus, outwards to the screen, then of the
    parts that could have the focus."""
    found: dict[str, Bound] = {}
    table = keys.table()
    parts = (part for part in screen.walk_children(Widget) if part.can_focus)
    for node in [*_inside_out(screen), *parts]:
        for key in _of(node, table):
            found.setdefault(key.id, Bound(key, node))
    return list(found.values())


def pressed(screen: Screen[Any], name: str, label: str = "") -> Bound | None:
    """What a key does that stands on the screen, and was clicked; with a label, what stands beside
    it: the key may mean something else where the focus is."""
    found = (each for each in bound(screen) if name and each.key.name == name)
    return next((each for each in found if label in ("", each.key.label)), None)


def taken(screen: Screen[Any]) -> set[str]:
    """Textual's names of the keys that what has the focus uses itself."""
    nodes = [node for node in _inside_out(screen) if isinstance(node, Widget) and node != screen]
    return {name for node in nodes for key in _of(node, keys.table()) for name in key.all}


def scopes(screen: Screen[Any]) -> list[str]:
    """Of what has the focus, outwards: where one is. The help and the palette are everywhere."""
    found: dict[str, None] = {}
    table = [key for key in keys.KEYS if key.id not in keys.EVERYWHERE]
    for node in _inside_out(screen):
        there = {key.scope: None for key in _of(node, table)}
        found |= dict.fromkeys(sorted(there, key=lambda scope: not keys.SCOPES[scope][1]))
    return list(found)


def _inside_out(screen: Screen[Any]) -> list[DOMNode]:
    focused = screen.focused
    return list(focused.ancestors_with_self) if focused is not None else [screen, screen.app]


def _of(node: DOMNode, table: list[Key]) -> list[Key]:
    """A key that only closes here what it has opened is no action of this place."""
    listed = node._bindings.key_to_bindings.values()
    there = {(binding.id, binding.action) for bindings in listed for binding in bindings}
    return [key for key in table if (key.id, key.action) in there]
