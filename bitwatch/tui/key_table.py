"""All keys that do anything, each once, and the places where they do it."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    Key("c", "clean", "clean up", "End what ended attempts have left behind; give a run without a supervisor a new one.", id="clean"),
    Key("R", "relaunch", "relaunch", "Relaunch with the correction of the plan, or as it was.", id="relaunch"),
    Key("w", "why", "why", "What is wrong, the evidence, and what to do.", id="why"),
    Key("a", "alerts", "alerts", "All alerts: what is wrong now, and the history of the run.", footer=False, id="alerts"),
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
    Key("p,Z", "pause", "pause", "Hold the picture still; reading goes on. In a replay, hold its clock.", id="pause"),
    Key("t,f5", "tree", "tree", "Processes as a tree, or as a flat list.", id="tree"),
    Key("v", "curve(1)", "curve", "The next curve: loss, bits per byte, validation, gradient norm, ...", id="curve"),
    Key("V", "curve(-1)", "curve before", "The curve before it.", footer=False, id="curve-before"),
    Key("x", "axis", "along", "The curve along steps, tokens, or the time since the run began.", id="axis"),
    Key("o", "compare", "compare", "Another run's curve beside this one's, or away again.", id="compare"),
    Key("y", "log", "log y", "The curve on a logarithmic or a linear scale.", id="log-scale"),
    Key("m", "smooth", "smooth", "Smoothing of the curve: light, medium, strong, off.", id="smooth"),
    Key("1", "panel('gpus')", "GPUs", "Go to the GPUs; again: fill the screen.", footer=False, id="gpus"),
    Key("2", "panel('readers')", "readers", "The same for the readers.", footer=False, id="readers"),
    Key("3", "panel('loss')", "curves", "The same for the curves.", footer=False, id="loss"),
    Key("4", "panel('processes')", "processes", "The same for the processes.", footer=False, id="processes"),
    Key("tab", "app.focus_next", "next panel", "Go from panel to panel.", footer=False, id="next-panel"),
    Key("shift+tab", "app.focus_previous", "panel before", "And back.", footer=False, id="previous-panel"),
    Key("escape", "restore", "all panels", "Takes the filter away; then back to all panels.", footer=False, id="restore"),
    Key("T", "app.themes", "theme", "Other colours, seen before they are chosen.", footer=False, id="theme"),
    Key("question_mark,h,f1", "app.help", "help", "This page.", id="help"),
    Key("ctrl+p", "app.command_palette", "palette", "Everything that a key does, by its name.", id="palette"),
    Key("ctrl+z", "app.suspend_process", "suspend", "Back to the shell for a while; fg brings the screen back. The run goes on.", footer=False, id="suspend"),
    # -- a list of processes with the focus
    Key("up,k", "move(-1)", "up", "The process before.", footer=False, scope="list", id="list-up"),
    Key("down,j", "move(1)", "down", "The next process.", footer=False, scope="list", id="list-down"),
    Key("pageup", "move_page(-1)", "page up", "A page up.", footer=False, scope="list", id="list-page-up"),
    Key("pagedown", "move_page(1)", "page down", "A page down.", footer=False, scope="list", id="list-page-down"),
    Key("home,g", "move_to(0)", "first", "The first process.", footer=False, scope="list", id="list-first"),
    Key("end,G", "move_to(-1)", "last", "The last process.", footer=False, scope="list", id="list-last"),
    # -- the panel of curves with the focus
    Key("plus,equals_sign", "zoom(True)", "closer", "Closer, around the cursor or the newest.", shown="+", scope="curves", id="curve-closer"),
    Key("minus", "zoom(False)", "wider", "Wider.", shown="-", scope="curves", id="curve-wider"),
    Key("left", "cursor(-1)", "read", "The cursor reads out what was earlier.", shown="←", scope="curves", id="curve-cursor-left"),
    Key("right", "cursor(1)", "read on", "And later.", shown="→", footer=False, scope="curves", id="curve-cursor-right"),
    Key("shift+left", "pan(-1)", "earlier", "What is shown moves to earlier steps.", footer=False, scope="curves", id="curve-earlier"),
    Key("shift+right", "pan(1)", "later", "And to later ones.", footer=False, scope="curves", id="curve-later"),
    Key("home", "go(False)", "first", "To the first step.", footer=False, scope="curves", id="curve-first"),
    Key("end", "go(True)", "newest", "To the newest step.", footer=False, scope="curves", id="curve-newest"),
    Key("0", "whole", "whole", "The whole curve again.", scope="curves", id="curve-whole"),
    Key("escape", "drop", "back", "Away with the cursor and the zoom.", footer=False, scope="curves", id="curve-back"),
    # -- the panel of GPUs with the focus
    Key("g", "gpu_span", "10 min/whole", "Graphs of the GPUs: the last ten minutes, or the whole run.", scope="gpus", id="gpus-span"),
    Key("up,k", "gpu_scroll(-1)", "GPU before", "To the GPU before, where the GPUs fill the screen.", footer=False, scope="gpus", id="gpus-up"),
    Key("down,j", "gpu_scroll(1)", "next GPU", "To the next GPU.", footer=False, scope="gpus", id="gpus-down"),
    Key("pageup", "gpu_page(-1)", "page up", "A page of GPUs back.", footer=False, scope="gpus", id="gpus-page-up"),
    Key("pagedown", "gpu_page(1)", "page down", "A page of GPUs on.", footer=False, scope="gpus", id="gpus-page-down"),
    # -- while a run is replayed
    Key("greater_than_sign", "faster(2)", "faster", "Twice as fast.", shown=">", scope="replay", id="replay-faster"),
    Key("less_than_sign", "faster(0.5)", "slower", "Half as fast.", shown="<", scope="replay", id="replay-slower"),
    Key("left", "jump(-60)", "min back", "A minute back.", shown="←", scope="replay", id="replay-minute-back"),
    Key("right", "jump(60)", "min on", "A minute on.", shown="→", scope="replay", id="replay-minute-on"),
    Key("left_square_bracket", "leap(-0.1)", "tenth back", "A tenth of the whole back.", shown="[", footer=False, scope="replay", id="replay-tenth-back"),
    Key("right_square_bracket", "leap(0.1)", "tenth on", "A tenth of the whole on.", shown="]", footer=False, scope="replay", id="replay-tenth-on"),
    Key("home", "begin_again", "begin", "Play from the beginning.", scope="replay", id="replay-begin"),
    Key("end", "to_the_end", "last", "How it ended.", scope="replay", id="replay-end"),
    # -- pages of text, over the dashboard
    Key("escape,q", "close", "close", "Back to the dashboard; so does the key that has opened the page.", scope="page", id="page-close"),
    Key("up,k", "scroll(-1)", "up", "A line up.", footer=False, scope="page", id="page-up"),
    Key("down,j", "scroll(1)", "down", "A line down.", footer=False, scope="page", id="page-down"),
    Key("pageup", "scroll(-10)", "far up", "Ten lines up.", footer=False, scope="page", id="page-far-up"),
    Key("pagedown,space", "scroll(10)", "far down", "Ten lines down.", footer=False, scope="page", id="page-far-down"),
    Key("r", "again", "ask again", "Ask the ranks again where they are.", scope="stacks", id="stacks-again"),
    # -- the page of logs
    Key("q,escape", "close", "close", "Back to the dashboard. Escape first takes a search away.", scope="logs", id="logs-close"),
    Key("f,end,G", "follow", "follow", "The end of the logs, and what comes.", scope="logs", id="logs-follow"),
    Key("home,g", "first", "beginning", "The beginning of the logs.", scope="logs", shown="home", id="logs-first"),
    Key("up,k", "scroll(-1)", "up", "A line up; following ends.", scope="logs", id="logs-up"),
    Key("down,j", "scroll(1)", "down", "A line down.", scope="logs", id="logs-down"),
    Key("pageup,b", "page(-1)", "page up", "A page up.", scope="logs", id="logs-page-up"),
    Key("pagedown,space", "page(1)", "page down", "A page down.", scope="logs", id="logs-page-down"),
    Key("left,shift+tab", "source(-1)", "log before", "The log before this one in the bar.", scope="logs", id="logs-before"),
    Key("right,tab", "source(1)", "next log", "The next log in the bar.", scope="logs", id="logs-next"),
    Key("0,1,2,3,4,5,6,7,8,9", "rank", "rank", "The log of the rank with this number.", scope="logs", shown="0-9", id="logs-rank"),
    Key("a", "all", "all logs", "The logs of all, in the order of their lines.", scope="logs", id="logs-all"),
    Key("less_than_sign,shift+left", "sideways(-1)", "to the left", "What stands further left in long lines.", scope="logs", shown="<", id="logs-left"),
    Key("greater_than_sign,shift+right", "sideways(1)", "to the right", "What stands further right.", scope="logs", shown=">", id="logs-right"),
    Key("w", "wrap", "wrap", "Long lines in several lines, or cut.", scope="logs", id="logs-wrap"),
    Key("r", "raw", "raw", "Every byte: colours and what a bar has overwritten, as escapes.", scope="logs", id="logs-raw"),
    Key("slash,f3", "search", "search", "A word to find, in any case unless it has a capital.", scope="logs", shown="/", id="logs-search"),
    Key("n", "again(1)", "next found", "The next one that is found.", scope="logs", id="logs-next-found"),
    Key("N", "again(-1)", "found before", "The one before.", scope="logs", id="logs-found-before"),
    Key("e", "trouble(1)", "next error", "The next error or warning.", scope="logs", id="logs-next-error"),
    Key("E", "trouble(-1)", "error before", "The error or warning before.", scope="logs", id="logs-error-before"),
    Key("left_square_bracket", "attempt(-1)", "attempt before", "The logs of the attempt before.", scope="logs", shown="[", id="logs-attempt-before"),
    Key("right_square_bracket", "attempt(1)", "next attempt", "The logs of the next attempt.", scope="logs", shown="]", id="logs-next-attempt"),
    # -- the page of alerts, and the page of one
    Key("enter,right", "open_alert", "open", "Evidence and next step of the selected alert, in full.", scope="alerts", id="alerts-open"),
    Key("f", "next_severity", "severity", "Errors alone, errors and warnings, all.", scope="alerts", id="alerts-severity"),
    Key("1", "alerts_down_to(1)", "errors", "Errors alone.", scope="alerts", footer=False, id="alerts-errors"),
    Key("2", "alerts_down_to(2)", "warnings", "Errors and warnings.", scope="alerts", footer=False, id="alerts-warnings"),
    Key("3", "alerts_down_to(3)", "all", "All alerts.", scope="alerts", footer=False, id="alerts-all"),
    Key("slash,f4", "filter_alerts", "filter", "Only alerts that say this.", shown="/", scope="alerts", id="alerts-filter"),
    Key("up,k", "move_alert(-1)", "up", "The alert above.", scope="alerts", footer=False, id="alerts-up"),
    Key("down,j", "move_alert(1)", "down", "The alert below.", scope="alerts", footer=False, id="alerts-down"),
    Key("pageup", "page_alerts(-1)", "page up", "A page up.", scope="alerts", footer=False, id="alerts-page-up"),
    Key("pagedown,space", "page_alerts(1)", "page down", "A page down.", scope="alerts", footer=False, id="alerts-page-down"),
    Key("home,g", "go_to_alert(0)", "first", "The first alert.", scope="alerts", footer=False, id="alerts-first"),
    Key("end,G", "go_to_alert(-1)", "last", "The last alert.", scope="alerts", footer=False, id="alerts-last"),
    Key("escape", "close_alerts", "close", "Takes the filter away, then closes the page.", scope="alerts", footer=False, id="alerts-close"),
    Key("q", "leave_alerts", "leave", "Closes the page.", scope="alerts", footer=False, id="alerts-leave"),
    Key("left,enter", "close", "close", "Back to the alerts.", scope="alert", footer=False, id="alert-close"),
    Key("enter", "keep", "keep", "Keep these colours.", scope="themes", id="theme-keep"),
    Key("escape,q", "close", "back", "The colours that were there before.", scope="themes", id="theme-back"),
    # -- before there is a run
    Key("enter", "take", "launch corrected", "Launch with the correction that is shown.", scope="plan", id="plan-take"),
    Key("a", "as_configured", "as configured", "Launch without a correction.", scope="plan", id="plan-as-configured"),
    Key("escape,q", "cancel", "cancel", "Launch nothing.", scope="plan", id="plan-cancel"),
    Key("escape,q", "leave", "leave", "Open no run.", scope="picker", id="picker-leave"),
    # -- where a run to compare is chosen
    Key("o", "choose", "add or remove", "Its curve beside this one's, or away again; so does enter.", scope="compare", id="compare-choose"),
    Key("slash,f4", "filter", "filter", "Only runs with these words.", shown="/", scope="compare", id="compare-filter"),
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
    "logs": ("On the page of logs", ()),
    "alerts": ("On the page of alerts", ()),
    "alert": ("On the page of one alert", ("page",)),
    "themes": ("On the page of themes", ()),
    "dialog": ("In every question", ()),
    "buttons": ("In a question with buttons", ("dialog",)),
    "choice": ("In a list to choose from", ("dialog", "picker", "themes")),
    "relaunch": ("In the question before a relaunch", ("dialog", "corrections")),
    "corrections": ("Where corrections are compared", ("dialog",)),
    "plan": ("Before a launch", ("corrections",)),
    "compare": ("Where a run to compare is chosen", ("picker", "choice")),
    "picker": ("Where a run is chosen", ()),
}
