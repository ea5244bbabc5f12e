"""The page of alerts: what is wrong now, and the history of the run. One of them in full is what
the page of `why` says of it."""

from __future__ import annotations

from textual import events as textual_events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from bitwatch.record.episodes import Episode
from bitwatch.record.view import View
from bitwatch.tui import keys
from bitwatch.tui.alert_rows import facts
from bitwatch.tui.screens.dialog import Block, Page
from bitwatch.tui.screens.over import Over
from bitwatch.tui.screens.why import about
from bitwatch.tui.widgets.alert_list import AlertList

TITLE = "Alerts"
HINTS = (  # the first ones first
    ("alerts-close", "closes"),
    ("alerts-open", "opens"),
    ("alerts-filter", "filters"),
    ("alerts-severity", "severity"),
)


class AlertsPage(Over[None]):
    """Goes on with every picture that it is shown."""

    BINDINGS = [*keys.bindings("alerts"), keys.closing("alerts")]

    def __init__(self, view: View, now: float) -> None:
        super().__init__(classes="page")
        self.alerts = AlertList()
        self._first = view, now

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog full") as dialog:
            dialog.border_title = Content(TITLE)
            yield self.alerts

    def on_resize(self, event: textual_events.Resize) -> None:
        """As many hints as there is room for, each whole."""
        said = [f"{keys.name(id)} {what}" for id, what in HINTS]
        while said and len(" · ".join(said)) > event.size.width - 14:
            said.pop()
        words = Content(" · ".join([*said[1:], *said[:1]]))
        self.query_one(".dialog").border_subtitle = words

    def on_mount(self) -> None:
        self.alerts.show(*self._first)
        self.alerts.focus()

    def show(self, view: View, now: float) -> None:
        """Another picture."""
        self._first = view, now
        if self.alerts.is_mounted:
            self.alerts.show(view, now)

    def on_alert_list_filtered(self) -> None:
        said = self.alerts.said()
        title = f"{TITLE} · {said}" if said else TITLE
        self.query_one(".dialog").border_title = Content(title)

    def on_alert_list_opened(self, message: AlertList.Opened) -> None:
        self.app.push_screen(AlertInFull(message.episode, self._first[1]))

    def action_close_alerts(self) -> None:
        """Escape first takes a filter away."""
        if not self.alerts.clear_filter():
            self.dismiss()

    def action_leave_alerts(self) -> None:
        self.dismiss()

    def action_open_alert(self) -> None:
        self.alerts.open()

    def action_alerts_down_to(self, level: int) -> None:
        self.alerts.show_level(level)

    def action_next_severity(self) -> None:
        self.alerts.next_level()

    def action_filter_alerts(self) -> None:
        self.alerts.edit_filter()

    def action_move_alert(self, by: int) -> None:
        self.alerts.move(by)

    def action_page_alerts(self, direction: int) -> None:
        self.alerts.move_page(direction)

    def action_go_to_alert(self, at: int) -> None:
        self.alerts.move_to(at)


class AlertInFull(Page):
    BINDINGS = [*keys.bindings("alert"), keys.closing("alerts")]

    def __init__(self, one: Episode, now: float) -> None:
        when = Block(Content.styled(" · ".join(facts(one, now)), "$quiet"))
        first, *rest = about(one.alert, over=bool(one.how))
        super().__init__(one.alert.id, [first, when, *rest])
