"""What is wrong now: the most severe alerts, one sentence a line, their key at the right.

The key stands at the same column whatever the sentence says, so that the eye finds it.
"""

from __future__ import annotations

from textual import events as textual_events
from textual.geometry import Size
from textual.message import Message

from bitwatch.record.events import Alert
from bitwatch.record.view import View
from bitwatch.tui import keys
from bitwatch.tui.draw import Line, clip, first_sentence, plain
from bitwatch.tui.widgets.painted import Painted

SEVERITIES = ("error", "warning", "info")
SHAPES = {"error": "■", "warning": "▲", "info": "●"}
ROLES = {"error": "bad", "warning": "warning", "info": "accent"}
GROUNDS = {"error": "bad-ground", "warning": "warning-ground", "info": "info-ground"}
# What is seen from inside the readers goes without saying where the plan has said it.
SAID_BY = {"idle-reader": "workers-exceed-shards"}


class AlertBar(Painted):
    """`rows` is how many lines the app grants; `remedies` names, by alert id, the keys that
    act on it now, besides the one for why."""

    DEFAULT_CSS = "AlertBar { height: auto; }"
    default_id = "alerts"

    rows = 2
    remedies: dict[str, tuple[str, str]] = {}

    class Pressed(Message):
        """A key of the bar was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(self.rows, len(worth_a_line(self.view.alerts)))

    def remember(self, view: View) -> None:
        if self.size.height != min(self.rows, len(worth_a_line(view.alerts))):
            self.refresh(layout=True)

    def draw(self, width: int, height: int) -> list[Line]:
        alerts = by_severity(worth_a_line(self.view.alerts))
        # Of equal ones first what a key can end: the terminal may have one line for all.
        alerts.sort(key=lambda a: (SEVERITIES.index(a.severity), a.id not in self.remedies))
        shown = alerts[:height]
        keys = [self._keys(alert) for alert in shown]
        column = max((line.width for line in keys), default=0)
        lines = []
        for at, (alert, key) in enumerate(zip(shown, keys, strict=True)):
            hidden = len(alerts) - len(shown) if at == len(shown) - 1 else 0
            lines.append(_sentence(alert, key, column, hidden, width))
        return lines

    def _keys(self, alert: Alert) -> Line:
        """`why` stands first: its column is the same for every alert."""
        line = Line()
        remedy = self.remedies.get(alert.id)
        why = keys.get("why")
        for key, label in [(why.name, why.label), *([remedy] if remedy else [])]:
            if not key:  # the user wants none for it
                continue
            line.add("  " if line.width else "").add(f"[{key}]", "strong accent")
            line.add(f" {label}", "accent")
        return line

    def on_click(self, event: textual_events.Click) -> None:
        if not self.view.alerts or not self._drawn or event.y >= len(self._drawn):
            return
        text = self._drawn[event.y].text
        before = text[: event.x + 1].rfind("[")
        key, closed, _ = text[before + 1 :].partition("]")
        if before >= 0 and closed:
            self.post_message(self.Pressed(key))


def worth_a_line(alerts: list[Alert]) -> list[Alert]:
    """Without those that say what another one says already."""
    there = {alert.id for alert in alerts}
    return [alert for alert in alerts if SAID_BY.get(alert.id) not in there]


def by_severity(alerts: list[Alert]) -> list[Alert]:
    """The worst first; of equal ones the newest."""
    return sorted(alerts, key=lambda alert: (SEVERITIES.index(alert.severity), -alert.t))


def _sentence(alert: Alert, keys: Line, column: int, hidden: int, width: int) -> Line:
    ground = GROUNDS[alert.severity]
    line = Line(f" {SHAPES[alert.severity]} ", f"strong {ROLES[alert.severity]}", ground)
    more = Line(f"  and {hidden} more", "quiet") if hidden else Line()
    text = plain(first_sentence(alert.text))
    keys_at = width - column - 1
    if keys_at < 24:  # no room for both: the sentence counts
        return line.add(clip(text, width - line.width - 1))
    line.add(clip(text, keys_at - line.width - more.width - 2))
    return line.join(more).pad(keys_at).join(keys).pad(width)
