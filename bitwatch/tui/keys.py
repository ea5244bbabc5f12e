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
    Key("q,l,escape", "close", "close", "Back to the dashboard. Escape first takes a search away.", scope="logs"),
    Key("f,end,G", "follow", "follow", "The end of the logs, and what comes.", scope="logs"),
    Key("home,g", "first", "beginning", "The beginning of the logs.", scope="logs", shown="home"),
    Key("up,k", "scroll(-1)", "up", "A line up; following ends.", scope="logs"),
    Key("down,j", "scroll(1)", "down", "A line down.", scope="logs"),
    Key("pageup,b", "page(-1)", "page up", "A page up.", scope="logs"),
    Key("pagedown,space", "page(1)", "page down", "A page down.", scope="logs"),
    Key("left,shift+tab", "source(-1)", "log before", "The log before this one in the bar.", scope="logs"),
    Key("right,tab", "source(1)", "next log", "The next log in the bar.", scope="logs"),
    Key("0,1,2,3,4,5,6,7,8,9", "rank", "rank", "The log of the rank with this number.", scope="logs", shown="0-9"),
    Key("a", "all", "all logs", "The logs of all, in the order of their lines.", scope="logs"),
    Key("less_than_sign,shift+left", "sideways(-1)", "to the left", "What stands further left in long lines.", scope="logs", shown="<"),
    Key("greater_than_sign,shift+right", "sideways(1)", "to the right", "What stands further right.", scope="logs", shown=">"),
    Key("w", "wrap", "wrap", "Long lines in several lines, or cut.", scope="logs"),
    Key("r", "raw", "raw", "Every byte: colours and what a bar has overwritten, as escapes.", scope="logs"),
    Key("slash", "search", "search", "A word to find, in any case unless it has a capital.", scope="logs", shown="/"),
    Key("n", "again(1)", "next found", "The next one that is found.", scope="logs"),
    Key("N", "again(-1)", "found before", "The one before.", scope="logs"),
    Key("e", "trouble(1)", "next error", "The next error or warning.", scope="logs"),
    Key("E", "trouble(-1)", "error before", "The error or warning before.", scope="logs"),
    Key("left_square_bracket", "attempt(-1)", "attempt before", "The logs of the attempt before.", scope="logs", shown="["),
    Key("right_square_bracket", "attempt(1)", "next attempt", "The logs of the next attempt.", scope="logs", shown="]"),
    Key("question_mark,h,f1", "keys", "keys", "All keys.", scope="logs", shown="?"),
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
