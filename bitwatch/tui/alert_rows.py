"""The lines of the page of alerts: what is wrong now, then what was. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from bitwatch.record.episodes import CLEARED, WITH_ATTEMPT, Episode, episodes
from bitwatch.record.view import END_STATES, View
from bitwatch.text import clock, counted, duration
from bitwatch.tui.draw import Line, fit, plain
from bitwatch.tui.widgets.alerts import ROLES, SEVERITIES, SHAPES, by_severity, shortened

DAY = "%b %d %H:%M"  # of what was not today
FRESH_S = 5.0  # the picture has only just made it: since when is not known
DATE = "%b %d"
LASTED, LASTED_SHORT = 10, 6
ENDED = 13
WIDE = 92  # from here on how it ended has a column
NARROW = 66  # up to here the sentence needs what times can spare
LEVELS = (3, 1, 2)  # how many of the severities are shown, in the order in which f goes round
THEN = "to be done then"  # of what is over: keys and commands of another time
CALM = "nothing is wrong that bitwatch knows of"
LEVEL_WORDS = {1: "errors", 2: "errors and warnings", 3: ""}


class Heading(NamedTuple):
    name: str
    words: str


class Entry(NamedTuple):
    episode: Episode
    is_now: bool


def entries(view: View, now: float) -> tuple[list[Entry], list[Entry]]:
    """What is wrong now, the worst first, and what was, the newest first. What a run that has
    ended did not clear ended with it, though of a lost one nobody wrote down when."""
    known = episodes(view.past_alerts, view.attempt_ends, view.attempt)
    lasting = {(one.alert.attempt, one.alert.id): one for one in known if not one.how}
    current, there = [], set()
    for alert in by_severity(view.alerts):
        name = alert.attempt, alert.id
        there.add(name)
        if (told := lasting.get(name)) is not None:
            current.append(Entry(told._replace(alert=alert), True))
        else:
            since = alert.t if alert.t < now - FRESH_S else None
            current.append(Entry(Episode(alert, since), True))
    over = view.state in END_STATES
    before = [
        Entry(one if one.how or not over else one._replace(how=WITH_ATTEMPT), False)
        for one in reversed(known)
        if one.how or (one.alert.attempt, one.alert.id) not in there
    ]
    return current, before


def shown(
    view: View, now: float, level: int = 3, text: str = ""
) -> tuple[list[Heading | Entry], int]:
    """The lines, and how many alerts are left out. `level`: of how many severities; `text` must be
    in what is said of it."""
    current, before = entries(view, now)
    wanted = SEVERITIES[:level]
    words = text.casefold()
    lines: list[Heading | Entry] = []
    left_out = 0
    if not current:
        over = f"the run has ended ({view.state})" if view.state in END_STATES else ""
        lines.append(Heading("now", over or CALM))
    for name, some in (("now", current), *_by_attempt(before)):
        kept = [one for one in some if one.episode.alert.severity in wanted and _has(one, words)]
        left_out += len(some) - len(kept)
        if kept:
            lines += [Heading(name, counted(len(kept), "alert")), *kept]
    return lines, left_out


def _by_attempt(before: list[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    for attempt, some in groupby(before, lambda one: one.episode.alert.attempt):
        yield (f"before, in attempt {attempt}" if attempt else "before"), list(some)


def _has(entry: Entry, words: str) -> bool:
    alert = entry.episode.alert
    said = (alert.id, alert.text, alert.next, f"attempt {alert.attempt}", *alert.evidence)
    return not words or any(words in one.casefold() for one in said)


class Columns:
    """For all lines alike, within `width` cells."""

    def __init__(self, lines: list[Heading | Entry], width: int, now: float) -> None:
        some = [line.episode for line in lines if isinstance(line, Entry)]
        self._now = now
        self._narrow = width <= NARROW
        self._time = max([8, *(len(self._when(one.raised)) for one in some)])
        self._lasted = LASTED_SHORT if self._narrow else LASTED
        self._ended = ENDED if width >= WIDE and any(one.how for one in some) else 0
        self._width = width

    def head(self) -> Line:
        line = Line("  ").add(fit("raised", self._time), "quiet")
        line.add(fit("for" if self._narrow else "lasted", self._lasted, right=True), "quiet")
        if self._ended:
            line.add("  ").add(fit("over", ENDED), "quiet")
        return line

    def line(self, row: Heading | Entry) -> Line:
        if isinstance(row, Heading):
            return Line(row.name, "strong text").add(f"  {row.words}", "quiet")
        one, alert = row.episode, row.episode.alert
        role = ROLES[alert.severity]
        line = Line(f"{SHAPES[alert.severity]} ", f"strong {role}")
        line.add(fit(self._when(one.raised), self._time), "text" if row.is_now else "quiet")
        lasted = _lasted(one.lasted_s(self._now))
        if self._narrow:
            lasted = " ".join(lasted.split()[:2])
        line.add(fit(lasted, self._lasted, right=True), "quiet")
        if self._ended:
            over = self._when(one.over) if one.how == CLEARED else "attempt ended"
            line.add("  ").add(fit(over if one.how else "", ENDED), "quiet")
        line.add("  ")
        said = plain(alert.text or alert.id)
        tone = "text" if row.is_now else "quiet"
        return line.add(shortened(said, max(1, self._width - line.width)), tone)

    def _when(self, t: float | None) -> str:
        said = _when(t, self._now)
        return said if len(said) <= 8 or not self._narrow or t is None else _date(t)


def _date(t: float) -> str:
    return time.strftime(DATE, time.localtime(t))


def _when(t: float | None, now: float) -> str:
    if t is None:
        return "–"
    same_day = time.localtime(t)[:3] == time.localtime(now)[:3]
    return clock(t) if same_day else time.strftime(DAY, time.localtime(t))


def _lasted(seconds: float | None) -> str:
    """Whole seconds: a tenth would change with every picture."""
    if seconds is None:
        return "–"
    return f"{seconds:.0f} s" if seconds < 10 else duration(seconds)


def facts(one: Episode, now: float) -> list[str]:
    """When it was, in words."""
    alert = one.alert
    said: list[str] = [alert.severity]
    said += [f"attempt {alert.attempt}"] if alert.attempt else []
    if one.raised is not None:
        said.append(f"raised {_when(one.raised, now)}")
    if one.how:
        said.append(f"cleared {_when(one.over, now)}" if one.how == CLEARED else "ended with it")
    lasted = one.lasted_s(now)
    if lasted is not None:
        said.append(f"lasted {_lasted(lasted)}" if one.how else f"for {_lasted(lasted)}")
    return said
