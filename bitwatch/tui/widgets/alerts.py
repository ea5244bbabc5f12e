"""What is wrong now: the most severe alerts, one sentence a line, their key at the right.

The key stands at the same column whatever the sentence says, so that the eye finds it. Where there
is little room the sentence says less, in whole words, before the labels of the keys go.
"""

from __future__ import annotations

import re

from rich.cells import cell_len
from textual import events as textual_events
from textual.geometry import Size
from textual.message import Message

from bitwatch.record.events import Alert
from bitwatch.record.view import View
from bitwatch.tui import keys
from bitwatch.tui.draw import ELLIPSIS, Line, clip, first_sentence, plain
from bitwatch.tui.widgets.painted import Painted

SEVERITIES = ("error", "warning", "info")
SHAPES = {"error": "■", "warning": "▲", "info": "●"}
ROLES = {"error": "bad", "warning": "warning", "info": "accent"}
GROUNDS = {"error": "bad-ground", "warning": "warning-ground", "info": "info-ground"}
LEAST = 24  # cells of a line before its keys, else they are left out
AROUND = 5  # cells beside a sentence: its shape and gaps
SENTENCE_SHARE = 0.6  # of a line, which is enough for a sentence
CLAUSE = re.compile(r"[:;] | \(")  # no comma: half of a list would look like all of it
# What is seen from inside the readers goes without saying where the plan has said it.
SAID_BY = {"idle-reader": "workers-exceed-shards"}


class AlertBar(Painted):
    """`rows` is how many lines the app grants; `remedies` names, by alert id, the keys that
    act on it now, besides the one for why."""

    DEFAULT_CSS = "AlertBar { height: auto; }"
    default_id = "alerts"

    rows = 2
    remedies: dict[str, tuple[str, str]] = {}
    _keys_at: list[int] = []  # the column of each line

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
        self._keys_at = []
        said = [plain(first_sentence(alert.text)) for alert in shown]
        wanted = max((cell_len(words) for words in said), default=0) + AROUND
        named = self._labelled(shown, width, wanted)
        column = max((line.width for line in named), default=0)
        lines = []
        for at, (alert, key) in enumerate(zip(shown, named, strict=True)):
            hidden = len(alerts) - len(shown) if at == len(shown) - 1 else 0
            lines.append(self._line(alert, said[at], key, column, hidden, width))
        return lines

    def _labelled(self, shown: list[Alert], width: int, wanted: int) -> list[Line]:
        """The keys of each alert, their labels as long as the sentences leave room for: whole, in
        one word, or none."""
        named: list[Line] = []
        for words in (9, 1, 0):
            named = [self._keys(alert, words) for alert in shown]
            room = width - max((line.width for line in named), default=0)
            if room >= min(wanted, SENTENCE_SHARE * width):
                break
        return named

    def _keys(self, alert: Alert, words: int) -> Line:
        """`why` stands first: its column is the same for every alert."""
        line = Line()
        remedy = self.remedies.get(alert.id)
        why = keys.get("why")
        for key, label in [(why.name, why.label), *([remedy] if remedy else [])]:
            if not key:  # the user wants none for it
                continue
            line.add("  " if line.width else "").add(f"[{key}]", "strong accent")
            short = " ".join(label.split()[:words])
            line.add(f" {short}" if short else "", "accent")
        return line

    def _line(
        self, alert: Alert, said: str, named: Line, column: int, hidden: int, width: int
    ) -> Line:
        ground = GROUNDS[alert.severity]
        line = Line(f" {SHAPES[alert.severity]} ", f"strong {ROLES[alert.severity]}", ground)
        keys_at = width - column - 1
        if keys_at < LEAST:  # no room for both: the sentence counts
            self._keys_at.append(width)
            return line.add(shortened(said, width - line.width - 1))
        self._keys_at.append(keys_at)
        room = keys_at - line.width - 2
        more = Line(f"  and {hidden} more", "quiet") if hidden else Line()
        if hidden and cell_len(said) + more.width > room:
            more = Line(f"  +{hidden}", "quiet")
        line.add(shortened(said, room - more.width))
        return line.join(more).pad(keys_at).join(named).pad(width)

    def on_click(self, event: textual_events.Click) -> None:
        """A key does what it says; anything else of a line is about all alerts."""
        if not self.view.alerts or not self._drawn or event.y >= len(self._drawn):
            return
        keys_at = self._keys_at[event.y]
        text = self._drawn[event.y].text[keys_at:]  # none of it is from anywhere else
        if event.x < keys_at:
            self.post_message(self.Pressed(keys.name("alerts")))
            return
        before = text[: event.x - keys_at + 1].rfind("[")
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


def shortened(text: str, width: int) -> str:
    """What fits of a sentence: all of it, else what stands before a colon or the like where that says
    about half of what there is room for, else its first words; a word is cut only where not even
    one fits."""
    if cell_len(text) <= width:
        return text
    ends = [match.start() for match in CLAUSE.finditer(text)]
    whole = [text[:end] for end in ends if width // 2 <= cell_len(text[:end]) <= width]
    if whole:
        return whole[-1]
    words = clip(text, width)[:-1]
    kept = words if text[len(words) : len(words) + 1] == " " else words.rpartition(" ")[0]
    return f"{kept.rstrip(' ,;:(')}{ELLIPSIS}" if kept.strip() else clip(text, width)
