"""The keys: one table that makes bindings, footers, help, the palette, and what the user's file
may change. Nothing binds a key anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from textual.binding import Binding, BindingType

from bitwatch.tui.key_names import short, written

UNBOUND = "no_key"  # what Textual calls no key: an action that the user wants none for


@dataclass(frozen=True)
class Key:
    """`keys` are Textual's names, the first is the one that is shown. `action` is Textual's; `id`
    is the plain name by which the user's file gives it other keys, and stays whatever becomes of
    the action. `footer` is False for what the help alone mentions. `scope` is where it does
    something: "" anywhere on the dashboard, else one of SCOPES."""

    keys: str
    action: str
    label: str
    help: str
    shown: str = ""
    footer: bool = True
    scope: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            words = self.action.removeprefix("app.").replace("(1)", "").replace("(-", "-back-")
            words = re.sub(r"[^a-z0-9]+", "-", words.lower().replace("-back-1)", "-back"))
            words = f"{self.scope}-{words}" if self.scope else words
            object.__setattr__(self, "id", words.strip("-"))

    @property
    def all(self) -> list[str]:
        return [name for name in self.keys.split(",") if name != UNBOUND]

    @property
    def name(self) -> str:
        """As a footer writes it; empty when the user wants no key for it."""
        return self.shown or next(map(short, self.all), "")

    @property
    def written(self) -> str:
        """All of them, as the help writes them."""
        return " ".join(map(written, self.all))


KEYS = (
    Key("q,f10", "detach", "detach", "Leave the screen. The run goes on.", id="detach"),
    Key("S", "stop", "stop", "Stop the run with a checkpoint, after a question.", id="stop"),
    Key("c", "clean", "clean up", "End what ended attempts have left behind.", id="clean"),
    Key("R", "relaunch", "relaunch", "Relaunch with the correction of the plan, or as it was.", id="relaunch"),
    Key("w", "why", "why", "What is wrong, the evidence, and what to do.", id="why"),
    Key("s", "stacks", "stacks", "Where each rank is, and who keeps the others waiting.", id="stacks"),
    Key("slash,backslash,f3,f4", "filter", "filter", "Only processes with this in role, command, pid or user.", id="filter"),
    Key("full_stop,f6", "sort(1)", "sort", "Processes by the next column, in a list.", id="sort"),
    Key("comma", "sort(-1)", "sort back", "By the previous column.", footer=False, id="sort-back"),
    Key("I", "reverse", "reverse", "Sort the other way round.", footer=False, id="reverse"),
    Key("K,f9", "signal", "signal", "A signal to the marked or the selected processes; asks first.", id="signal"),
    Key("enter", "details", "details", "All that can be known of the selected process.", id="details"),
    Key("space", "tag", "tag", "Mark the process for a signal; again takes it away.", id="tag"),
    Key("u,U", "untag", "untag", "Take all marks away.", id="untag"),
    Key("l", "logs", "logs", "What the ranks and torchrun print, as it comes.", id="logs"),
    Key("p,Z", "pause", "pause", "Hold the picture still; reading goes on.", id="pause"),
    Key("t,f5", "tree", "tree", "Processes as a tree, or as a flat list.", id="tree"),
    Key("y", "log", "log y", "Loss on a logarithmic or a linear scale.", id="log-scale"),
    Key("m", "smooth", "smooth", "Smoothing of the loss.", id="smooth"),
    Key("1", "panel('gpus')", "GPUs", "Go to the GPUs; again: fill the screen.", footer=False, id="gpus"),
    Key("2", "panel('readers')", "readers", "The same for the readers.", footer=False, id="readers"),
    Key("3", "panel('loss')", "loss", "The same for the loss.", footer=False, id="loss"),
    Key("4", "panel('processes')", "processes", "The same for the processes.", footer=False, id="processes"),
    Key("tab", "app.focus_next", "next panel", "Go from panel to panel.", footer=False, id="next-panel"),
    Key("shift+tab", "app.focus_previous", "panel before", "And back.", footer=False, id="previous-panel"),
    Key("escape", "restore", "all panels", "Takes the filter away; then back to all panels.", footer=False, id="restore"),
    Key("T", "app.themes", "theme", "Other colours, seen before they are chosen.", footer=False, id="theme"),
    Key("question_mark,h,f1", "app.help", "help", "This page.", id="help"),
    Key("ctrl+p", "app.command_palette", "palette", "Everything that a key does, by its name.", id="palette"),
    # -- a list of processes with the focus
    Key("up,k", "move(-1)", "up", "The process before.", footer=False, scope="list", id="list-up"),
    Key("down,j", "move(1)", "down", "The next process.", footer=False, scope="list", id="list-down"),
    Key("pageup", "move_page(-1)", "page up", "A page up.", footer=False, scope="list", id="list-page-up"),
    Key("pagedown", "move_page(1)", "page down", "A page down.", footer=False, scope="list", id="list-page-down"),
    Key("home,g", "move_to(0)", "first", "The first process.", footer=False, scope="list", id="list-first"),
    Key("end,G", "move_to(-1)", "last", "The last process.", footer=False, scope="list", id="list-last"),
    # -- pages of text, over the dashboard
    Key("escape,q", "close", "close", "Back to the dashboard; so does the key that has opened the page.", scope="page", id="page-close"),
    Key("up,k", "scroll(-1)", "up", "A line up.", footer=False, scope="page", id="page-up"),
    Key("down,j", "scroll(1)", "down", "A line down.", footer=False, scope="page", id="page-down"),
    Key("pageup", "scroll(-10)", "far up", "Ten lines up.", footer=False, scope="page", id="page-far-up"),
    Key("pagedown,space", "scroll(10)", "far down", "Ten lines down.", footer=False, scope="page", id="page-far-down"),
    Key("r", "again", "ask again", "Ask the ranks again where they are.", scope="stacks", id="stacks-again"),
    Key("f,end,G", "follow", "follow", "To the end, and on with it.", scope="logs", id="logs-follow"),
    Key("enter", "keep", "keep", "Keep these colours.", scope="themes", id="theme-keep"),
    Key("escape,q", "close", "back", "The colours that were there before.", scope="themes", id="theme-back"),
    # -- before there is a run
    Key("enter", "take", "launch corrected", "Launch with the correction that is shown.", scope="plan", id="plan-take"),
    Key("a", "as_configured", "as configured", "Launch without a correction.", scope="plan", id="plan-as-configured"),
    Key("escape,q", "cancel", "cancel", "Launch nothing.", scope="plan", id="plan-cancel"),
    Key("escape,q", "leave", "leave", "Open no run.", scope="picker", id="picker-leave"),
    # -- questions, and lists to choose from
    Key("escape,q,n", "cancel", "cancel", "Do nothing.", scope="dialog", id="cancel"),
    Key("left,up", "app.focus_previous", "button before", "The button before.", footer=False, scope="buttons", id="button-before"),
    Key("right,down", "app.focus_next", "next button", "The next button.", footer=False, scope="buttons", id="button-next"),
    Key("k", "move(-1)", "up", "The line before; so does the arrow.", footer=False, scope="choice", id="choice-up"),
    Key("j", "move(1)", "down", "The next line; so does the arrow.", footer=False, scope="choice", id="choice-down"),
    Key("down,right,tab", "choose(1)", "another correction", "The next correction, if there are more.", scope="corrections", id="correction-next"),
    Key("up,left,shift+tab", "choose(-1)", "correction before", "The correction before.", footer=False, scope="corrections", id="correction-before"),
    Key("j", "move(1)", "down", "A line down.", footer=False, scope="corrections", id="corrections-down"),
    Key("k", "move(-1)", "up", "A line up.", footer=False, scope="corrections", id="corrections-up"),
    Key("pagedown,space", "move(10)", "far down", "Ten lines down.", footer=False, scope="corrections", id="corrections-far-down"),
    Key("pageup", "move(-10)", "far up", "Ten lines up.", footer=False, scope="corrections", id="corrections-far-up"),
    Key("enter,y", "take", "relaunch", "Relaunch with the correction that is shown.", scope="relaunch", id="relaunch-take"),
)  # fmt: skip

# What a scope is called in the help, and the scopes whose keys work there too.
SCOPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "": ("On the dashboard", ()),
    "list": ("In the list of processes", ("",)),
    "curves": ("In the panel of curves", ("",)),
    "gpus": ("In the panel of GPUs", ("",)),
    "replay": ("While a run is replayed", ("", "list", "curves", "gpus")),
    "page": ("On every page", ()),
    "stacks": ("On the page of stacks", ("page",)),
    "logs": ("On the page of logs", ("page",)),
    "alerts": ("On the page of alerts", ()),
    "alert": ("On the page of one alert", ("page",)),
    "themes": ("On the page of themes", ()),
    "dialog": ("In every question", ()),
    "buttons": ("In a question with buttons", ("dialog",)),
    "choice": ("In a list to choose from", ("dialog", "picker", "themes")),
    "relaunch": ("In the question before a relaunch", ("dialog", "corrections")),
    "corrections": ("Where corrections are compared", ("dialog",)),
    "plan": ("Before a launch", ("corrections",)),
    "picker": ("Where a run is chosen", ()),
}
PANEL_SCOPES = ("", "list", "curves", "gpus", "replay")
EVERYWHERE = ("help", "palette")
HELPED = {
    "page",
    "logs",
    "alerts",
    "alert",
    "themes",
    "dialog",
    "plan",
    "picker",
}  # screens of their own
PANELS = ("gpus", "readers", "loss", "processes")
OPENERS = ("help", "why", "stacks", "logs", "details", "theme")  # their keys close their pages too
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
    id. Whatever lies over the dashboard has the help and the palette as well."""
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
    """(key, label) of what does something now: `doing` names ids or actions."""
    found = [key for key in table() if key.scope in scopes and key.footer and key.name]
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
