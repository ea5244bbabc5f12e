"""The dashboard: its panels, how they share the terminal, and what its keys do.

Layouts by size, from the design: full (panels side by side), compact (80x24: a line a GPU,
the curve, a line each for readers and processes), small (60x15: header, alert, curve, one
line for all GPUs), and below that a sentence.
"""

from __future__ import annotations

from textual import events as textual_events
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import Static

from bitwatch.attach.offer import offers
from bitwatch.attach.telling import Snapshot
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES, View
from bitwatch.tui import keys
from bitwatch.tui.actions import do
from bitwatch.tui.gpu_facts import rows_wanted
from bitwatch.tui.host import Host
from bitwatch.tui.kept import Kept, Value
from bitwatch.tui.remedies import remedies
from bitwatch.tui.screens.curve_keys import CurveKeys
from bitwatch.tui.screens.run_keys import RunKeys
from bitwatch.tui.where import pressed
from bitwatch.tui.widgets.alerts import AlertBar
from bitwatch.tui.widgets.footer import KeyFooter
from bitwatch.tui.widgets.gpus import GpuPanel
from bitwatch.tui.widgets.header import Header
from bitwatch.tui.widgets.loss import LossPanel
from bitwatch.tui.widgets.panel import Panel
from bitwatch.tui.widgets.processes import ProcessPanel
from bitwatch.tui.widgets.readers import ReaderPanel

FULL, COMPACT, SMALL, TINY = "full", "compact", "small", "tiny"
MOST_GPUS = 8  # lines; more are summed up in the last
TOO_SMALL = "too small: needs 60x15"


def layout(width: int, height: int) -> str:
    if width < 40 or height < 10:
        return TINY
    if width < 78 or height < 20:
        return SMALL
    return FULL if width >= 100 and height >= 28 else COMPACT


class Dashboard(RunKeys, CurveKeys):
    BINDINGS = keys.bindings()
    focused: Reactive[Widget | None] = Reactive(
        None, repaint=False
    )  # its panels repaint themselves
    AUTO_FOCUS = ""  # a number goes to its panel first, and fills the screen with it next

    def __init__(self, run: RunDir, host: Host, first: Snapshot | None = None) -> None:
        super().__init__()
        self.run = run
        self.host = host
        self.snapshot = first
        self.shown = first  # the same, except while paused
        self.paused = False
        self._maximised = ""
        self._layout = FULL
        self._rows = 0  # of processes, the most so far: workers come and go, the layout stays
        self.header = Header()
        self.alerts = AlertBar()
        self.gpus, self.readers = GpuPanel(), ReaderPanel()
        self.loss, self.processes = LossPanel(), ProcessPanel()
        self.panels: tuple[Panel, ...] = (self.gpus, self.readers, self.loss, self.processes)
        self.footer = KeyFooter()

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.alerts
        with Container(id="body"):
            with Container(id="top"):
                with Vertical(id="left"):
                    yield self.gpus
                    yield self.readers
                yield self.loss
            yield self.processes
        yield self.footer
        yield Static(TOO_SMALL, id="too-small", markup=False)

    def on_mount(self) -> None:
        self._arrange()
        self._paint()
        if self._maximised:
            self.query_one(f"#{self._maximised}").focus()

    # -- pictures -------------------------------------------------------------------------

    def take(self, snapshot: Snapshot) -> None:
        """The newest picture. While paused it is kept and not shown."""
        self.snapshot = snapshot
        if not self.paused:
            self._paint()

    def _paint(self) -> None:
        snapshot = self.shown = self.snapshot
        if snapshot is None:
            return
        self.header.mode = "paused" if self.paused else snapshot.mode
        self.loss.filled = snapshot.filled
        view, now = snapshot.view, snapshot.now
        self.alerts.remedies = self.remedies(view)
        self.processes.others = snapshot.others
        for widget in (self.header, self.alerts, *self.panels):
            widget.show(view, now)
        if self.alerts_page is not None:
            self.alerts_page.show(view, now)
        self._fit(view)
        self.name_keys()

    @property
    def view(self) -> View:
        """What is on the screen: keys are about that, however old it is while paused."""
        return self.shown.view if self.shown else View()

    @property
    def now(self) -> float:
        return self.shown.now if self.shown else 0.0

    # -- layout ---------------------------------------------------------------------------

    def on_resize(self, event: textual_events.Resize) -> None:
        self._arrange()

    def _arrange(self) -> None:
        self._layout = layout(*self.app.size)
        before = [node.classes for node in (self, *self.panels)]
        for panel in self.panels:
            panel.set_class(panel.id == self._maximised, "-maximised", update=False)
        wanted = {f"-{name}": name == self._layout for name in (FULL, COMPACT, SMALL, TINY)}
        wanted["-maximised"] = bool(self._maximised)
        wanted["-below"] = self._maximised == "processes"
        wanted["-beside"] = self._maximised == "loss"
        self.update_classes(wanted, update=False)
        if before != [node.classes for node in (self, *self.panels)]:
            self.update_node_styles(animate=False)  # of all at once: it is what costs
        self.readers.listed = self._maximised == "readers"
        self.gpus.large = self._maximised == "gpus"
        self.alerts.rows = 2 if self._layout == FULL else 1
        self._fit(self.view)
        self.name_keys()

    def _fit(self, view: View) -> None:
        """Gives the panels the lines that they can fill, and the curve the rest."""
        gpus, readers, processes = self.gpus, self.readers, self.processes
        if self._maximised:
            for panel in (gpus, readers, processes):
                panel.styles.height = "1fr"
            return
        rows = max(1, rows_wanted(view))
        if self._layout == FULL:
            self._rows = max(self._rows, processes.wanted())
            if view.state in END_STATES:
                self._rows = processes.wanted()
            most = (self.app.size.height - 5) // 2
            gpus.styles.height = min(rows, MOST_GPUS) + 2
            readers.styles.height = "1fr"
            processes.styles.height = max(5, min(self._rows + 3, most))
        else:
            gpus.styles.height = min(rows, MOST_GPUS) if self._layout == COMPACT else 1
            readers.styles.height = processes.styles.height = 1

    def action_panel(self, which: str) -> None:
        """The first press goes to a panel, the second fills the screen with it. Where a panel
        is only a line, or not there at all, the first press already does."""
        panel = next(panel for panel in self.panels if panel.id == which)
        before = self._maximised
        if self._maximised == which:
            self._maximised = ""
        elif self._maximised or panel.has_focus or panel.outer_size.height <= 1:
            self._maximised = which
        if self._maximised != before:  # else all stands where it is, and only the focus moves
            self._arrange()
        panel.focus()

    def on_click(self, event: textual_events.Click) -> None:
        """Two clicks on a panel do what its number does twice; in a list of processes, where two
        clicks open one of them, on its title."""
        panel = event.widget
        in_a_row = isinstance(panel, ProcessPanel) and event.y > 0
        if event.chain == 2 and isinstance(panel, Panel) and panel.id and not in_a_row:
            panel.focus()
            self._fill_with(panel.id)

    def _fill_with(self, which: str) -> None:
        self._maximised = "" if self._maximised == which else which
        self._arrange()

    def action_restore(self) -> None:
        if self.processes.filter.text:
            self.processes.clear_filter()
            return
        self._maximised = ""
        self._arrange()

    def open_processes(self) -> None:
        if self.processes.size.height <= 1:
            self._maximised = "processes"
            self._arrange()
        self.processes.focus()

    def kept(self) -> tuple[str, dict[str, dict[str, Value]]]:
        """What fills the screen, and how each panel stands: for the next attach."""
        panels = {str(panel.id): kept for panel in self.panels if (kept := panel.kept())}
        return self._maximised, panels

    def restore(self, kept: Kept) -> None:
        """Before it is mounted."""
        for panel in self.panels:
            panel.restore(kept.panels.get(str(panel.id), {}))
        if kept.maximised in [panel.id for panel in self.panels]:
            self._maximised = kept.maximised

    # -- keys -----------------------------------------------------------------------------

    def remedies(self, view: View) -> dict[str, tuple[str, str]]:
        return remedies(view)

    @staticmethod
    def leaving() -> str:
        """What leads out, and what does not."""
        return (
            f"{keys.name('detach')} detaches (the run goes on), {keys.name('stop')} stops the run"
        )

    def has(self, key: keys.Key) -> bool:
        """Whether it is offered here: a run that is over has nothing that could be stopped."""
        return True

    def name_keys(self) -> None:
        self.footer.show_keys(keys.footer(self.doing()))

    def doing(self) -> set[str]:
        """The ids of the keys that do something now."""
        view = self.view
        doing = {
            "detach",
            "why",
            "logs",
            "pause",
            "tree",
            "curve",
            "log-scale",
            "smooth",
            "help",
            "palette",
        }
        stands = view.state in (*END_STATES, "stopping") or view.gone
        if view.attempt and not stands and not view.foreign:
            doing.add("stop")
        if view.state == "stalled":
            doing.add("stacks")
        if self.processes.leftovers() or self.left_of_watched():
            doing.add("clean")
        if view.state != "stopping" and offers(view):
            doing.add("relaunch")
        if self._layout != FULL and self._maximised != "processes":
            doing.discard("tree")
        if self.at_processes:
            doing |= {"filter", "sort", "tag", "details", "signal"}
            doing -= {"logs", "pause", "curve", "log-scale", "smooth"}  # room for the processes
            if self.processes.tagged:
                doing.add("untag")
        if self.focused is self.loss:
            doing |= {"axis", "compare", "curve-closer", "curve-wider", "curve-cursor-left"}
            doing = doing - {"logs", "tree"} | {"curve-whole"}  # room for what is about curves
        if self.gpus.large and self.focused is self.gpus:
            doing = doing - {"tree", "curve", "log-scale", "smooth"} | {"gpus-span"}
        return doing

    def watch_focused(self) -> None:
        """At once, so that it is painted with the panel that has got the focus."""
        if self.is_mounted:
            self.name_keys()

    def on_alert_bar_pressed(self, message: AlertBar.Pressed) -> None:
        self._press(message.key)

    def on_key_footer_pressed(self, message: KeyFooter.Pressed) -> None:
        self._press(message.key, message.label)

    def _press(self, name: str, label: str = "") -> None:
        if each := pressed(self, name, label):
            self.call_later(do, self.app, each)

    def action_detach(self) -> None:
        self.host.detach()

    def action_pause(self) -> None:
        self.paused = not self.paused
        if self.paused and self.snapshot:
            self.header.mode = "paused"
            self.header.show(self.view, (self.shown or self.snapshot).now)
        else:
            self._paint()
