"""The keys of the dashboard: one table that makes bindings, footer, help and palette."""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType


class Key(NamedTuple):
    """`keys` are Textual's names, the first is the one that is shown; `id` is the action, and
    stays when keys are given to something else. `footer` is False for what the help alone
    mentions. `scope` is where it does something: "" anywhere on the dashboard, else the panel
    that must have the focus, or the page that must be open."""

    keys: str
    id: str
    label: str
    help: str
    shown: str = ""
    footer: bool = True
    scope: str = ""

    @property
    def name(self) -> str:
        """As a person writes it."""
        return self.shown or self.keys.partition(",")[0]


KEYS = (
    Key("q,ctrl+q", "detach", "detach", "Leave the screen. The run goes on.", shown="q"),
    Key("S", "stop", "stop", "Stop the run with a checkpoint, after a question."),
    Key("c", "clean", "clean up", "End what ended attempts have left behind."),
    Key("R", "relaunch", "relaunch", "Relaunch with the correction of the plan, or as it was."),
    Key("w", "why", "why", "What is wrong, the evidence, and what to do."),
    Key("s", "stacks", "stacks", "Where each rank is, and who keeps the others waiting."),
    Key("slash", "filter", "filter", "Only processes with this in role, command, pid or user.", shown="/"),
    Key("full_stop", "sort(1)", "sort", "Processes by the next column, in a list.", shown="."),
    Key("comma", "sort(-1)", "sort back", "By the previous column. t goes back to the tree.", shown=",", footer=False),
    Key("I", "reverse", "reverse", "Sort the other way round.", footer=False),
    Key("K,f9", "signal", "signal", "Send a signal to the marked processes or the selected one, after a question."),
    Key("enter", "details", "details", "All that can be known of the selected process."),
    Key("space", "tag", "tag", "Mark the selected process, for K; again takes it away."),
    Key("u", "untag", "untag", "Take all marks away."),
    Key("l", "logs", "logs", "What the ranks and torchrun print, as it comes."),
    Key("p", "pause", "pause", "Hold the picture still; reading goes on."),
    Key("t", "tree", "tree", "Processes as a tree, or as a flat list."),
    Key("v", "curve(1)", "curve", "The next curve: loss, bits per byte, validation, gradient norm, ..."),
    Key("V", "curve(-1)", "curve back", "The curve before it.", footer=False),
    Key("x", "axis", "along", "The curve along steps, tokens, or the time since the run began."),
    Key("o", "compare", "compare", "Another run's curve beside this one's, or away again."),
    Key("y", "log", "log y", "The curve on a logarithmic or a linear scale."),
    Key("m", "smooth", "smooth", "Smoothing of the curve: light, medium, strong, off."),
    Key("plus,equals_sign", "zoom(True)", "closer", "Closer, around the cursor or the newest.", shown="+", scope="curves"),
    Key("minus", "zoom(False)", "wider", "Wider.", shown="-", scope="curves"),
    Key("left", "cursor(-1)", "read", "The cursor reads out what was earlier.", shown="←", scope="curves"),
    Key("right", "cursor(1)", "read on", "And later.", shown="→", footer=False, scope="curves"),
    Key("shift+left", "pan(-1)", "earlier", "What is shown moves to earlier steps.", footer=False, scope="curves"),
    Key("shift+right", "pan(1)", "later", "And to later ones.", footer=False, scope="curves"),
    Key("home", "go(False)", "first", "To the first step.", footer=False, scope="curves"),
    Key("end", "go(True)", "newest", "To the newest step.", footer=False, scope="curves"),
    Key("0", "whole", "whole", "The whole curve again.", scope="curves"),
    Key("escape", "drop", "back", "Away with the cursor and the zoom.", footer=False, scope="curves"),
    Key("1", "panel('gpus')", "GPUs", "Go to the GPUs; again: fill the screen.", footer=False),
    Key("2", "panel('readers')", "readers", "The same for the readers.", footer=False),
    Key("3", "panel('loss')", "curves", "The same for the curves.", footer=False),
    Key("4", "panel('processes')", "processes", "The same for the processes.", footer=False),
    Key("tab", "app.focus_next", "next panel", "Go from panel to panel.", footer=False),
    Key("shift+tab", "app.focus_previous", "back", "And back.", footer=False),
    Key("escape", "restore", "all panels", "Back from a panel that fills the screen.", footer=False),
    Key("question_mark,h,f1", "help", "help", "This page.", shown="?"),
    Key("ctrl+p", "app.command_palette", "palette", "Commands and themes by name.", shown="^p"),
)  # fmt: skip
PANELS = ("1-4", "panels")
INTERRUPT = Binding("ctrl+c", "interrupt", show=False, priority=True)


def bindings(scope: str = "") -> list[BindingType]:
    return [
        Binding(key.keys, key.id, key.label, show=False, tooltip=key.help, id=_plain(key))
        for key in KEYS
        if key.scope == scope and not key.id.startswith("app.command")  # Textual's own palette
    ]


def footer(doing: set[str], panels: bool = True) -> list[tuple[str, str]]:
    """(key, label) of what does something now: `doing` names the ids."""
    pairs = [(key.name, key.label) for key in KEYS if key.footer and key.id in doing]
    if panels:
        at = max(0, len(pairs) - 2)
        pairs.insert(at, PANELS)
    return pairs


def by_name(name: str) -> Key | None:
    return next((key for key in KEYS if key.name == name), None)


def _plain(key: Key) -> str:
    return key.id.replace("app.", "").replace("panel('", "").replace("')", "")
