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
    Key("a", "alerts", "alerts", "All alerts: what is wrong now, and the history of the run.", footer=False),
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
    Key("y", "log", "log y", "Loss on a logarithmic or a linear scale."),
    Key("m", "smooth", "smooth", "Smoothing of the loss."),
    Key("1", "panel('gpus')", "GPUs", "Go to the GPUs; again: fill the screen.", footer=False),
    Key("2", "panel('readers')", "readers", "The same for the readers.", footer=False),
    Key("3", "panel('loss')", "loss", "The same for the loss.", footer=False),
    Key("4", "panel('processes')", "processes", "The same for the processes.", footer=False),
    Key("tab", "app.focus_next", "next panel", "Go from panel to panel.", footer=False),
    Key("shift+tab", "app.focus_previous", "back", "And back.", footer=False),
    Key("escape", "restore", "all panels", "Back from a panel that fills the screen.", footer=False),
    Key("question_mark,h,f1", "help", "help", "This page.", shown="?"),
    Key("ctrl+p", "app.command_palette", "palette", "Commands and themes by name.", shown="^p"),
    Key("enter,right", "open_alert", "open", "Evidence and next step of the selected alert, in full.", scope="alerts"),
    Key("f", "next_severity", "severity", "Errors alone, errors and warnings, all.", scope="alerts"),
    Key("1", "alerts_down_to(1)", "errors", "Errors alone.", scope="alerts", footer=False),
    Key("2", "alerts_down_to(2)", "warnings", "Errors and warnings.", scope="alerts", footer=False),
    Key("3", "alerts_down_to(3)", "all", "All alerts.", scope="alerts", footer=False),
    Key("slash", "filter_alerts", "filter", "Only alerts that say this.", shown="/", scope="alerts"),
    Key("up,k", "move_alert(-1)", "up", "The alert above.", scope="alerts", footer=False),
    Key("down,j", "move_alert(1)", "down", "The alert below.", scope="alerts", footer=False),
    Key("pageup", "page_alerts(-1)", "page up", "A page up.", scope="alerts", footer=False),
    Key("pagedown,space", "page_alerts(1)", "page down", "A page down.", scope="alerts", footer=False),
    Key("home,g", "go_to_alert(0)", "first", "The first alert.", scope="alerts", footer=False),
    Key("end,G", "go_to_alert(-1)", "last", "The last alert.", scope="alerts", footer=False),
    Key("escape", "close_alerts", "close", "Takes the filter away, then closes the page.", scope="alerts", footer=False),
    Key("q,a", "leave_alerts", "close", "Closes the page.", scope="alerts", footer=False),
    Key("left,enter,a", "close", "close", "Back to the alerts.", scope="alert", footer=False),
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
