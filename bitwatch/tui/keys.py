"""What is made of the table of keys: bindings, footers, what the user's file changes, and how a
sentence names a key. Nothing binds a key anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from textual.binding import Binding, BindingType

from bitwatch.tui.key_table import KEYS, SCOPES, UNBOUND, Key

__all__ = ["KEYS", "SCOPES", "UNBOUND", "Key"]  # of the table, for whoever asks about keys

PANEL_SCOPES = ("", "list", "curves", "gpus", "replay")
EVERYWHERE = ("help", "palette", "suspend")
HELPED = {
    "page",
    "logs",
    "alerts",
    "alert",
    "themes",
    "dialog",
    "plan",
    "picker",
    "compare",
}  # screens of their own
PANELS = ("gpus", "readers", "loss", "processes")
OPENERS = (
    "help",
    "why",
    "stacks",
    "logs",
    "alerts",
    "details",
    "theme",
)  # their keys close their pages too
NEEDED = (
    "detach",
    "help",
    "restore",
    "palette",
    "page-close",
    "cancel",
    "plan-cancel",
    "picker-leave",
)
# What no file can change: leaving works on every page, and ctrl+c never reaches the run.
FIXED = {"ctrl+q": "always leaves the screen", "ctrl+c": "never does anything to the run"}
INTERRUPT = Binding("ctrl+c", "interrupt", show=False, priority=True)

_given: dict[str, str] = {}  # Textual's names of keys, by id: what the user's file changes


def use(given: Mapping[str, str]) -> None:
    """From now on these are the keys of these ids: a terminal has one keyboard."""
    _given.clear()
    _given.update(given)
    _footer.cache_clear()


def given() -> dict[str, str]:
    return dict(_given)


def table() -> list[Key]:
    """All keys, as the user has them."""
    return [_as_given(key) for key in KEYS]


def get(id: str) -> Key:
    return next(_as_given(key) for key in KEYS if key.id == id)


def name(id: str) -> str:
    """The key of an action, for a sentence that names it."""
    key = get(id)
    return key.name or f"{get('palette').name} {key.label}"


def bindings(*scopes: str) -> list[BindingType]:
    """Of the dashboard, or of these scopes. Textual gives each the keys that the user has for its
    id. Whatever lies over the dashboard has what is to be had everywhere."""
    found: list[BindingType] = [
        _bound(key, key.action) for key in KEYS if key.scope in (scopes or ("",))
    ]
    if HELPED.intersection(scopes):
        found += [_bound(key, key.action) for key in KEYS if key.id in EVERYWHERE]
    return found


def closing(id: str) -> Binding:
    """The key that has opened a page closes it again."""
    return _bound(next(key for key in KEYS if key.id == id), "close")


def _bound(key: Key, action: str) -> Binding:
    return Binding(key.keys, action, key.label, show=False, tooltip=key.help, id=key.id)


def footer(
    doing: set[str], panels: bool = True, scopes: Iterable[str] = PANEL_SCOPES
) -> list[tuple[str, str]]:
    """(key, label) of what does something now: `doing` names ids or actions. After the way out
    comes what only the place offers where one is: of a narrow footer the last go first."""
    return list(_footer(frozenset(doing), panels, tuple(scopes)))


@lru_cache(maxsize=64)  # with every picture it is asked for, and it seldom is another
def _footer(doing: frozenset[str], panels: bool, scopes: tuple[str, ...]) -> list[tuple[str, str]]:
    found = [key for key in table() if key.scope in scopes and key.footer and key.name]
    found.sort(key=lambda key: (key.id != "detach", not key.scope))
    pairs = [(key.name, key.label) for key in found if key.id in doing or key.action in doing]
    if panels:
        names = [get(panel).name for panel in PANELS]
        shown = "1-4" if names == ["1", "2", "3", "4"] else " ".join(filter(None, names))
        pairs.insert(max(0, len(pairs) - 2), (shown, "panels"))
    return pairs


def in_words(text: str) -> str:
    """A sentence of a record names a key as it is by default ("key s"): with the user's keys."""
    return _NAMED.sub(_named, text) if _given else text


_NAMED = re.compile(r"\bkey (\w)\b")


def _named(match: re.Match[str]) -> str:
    meant = next((key for key in KEYS if not key.scope and key.name == match[1]), None)
    return f"key {name(meant.id)}" if meant else match[0]


def _as_given(key: Key) -> Key:
    keys = _given.get(key.id)
    return key if keys is None else replace(key, keys=keys, shown="")
