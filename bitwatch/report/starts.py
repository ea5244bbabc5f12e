"""When a process began, from the few characters that `ps` spends on it.

What is missing (a year, a day) is taken from the logs beside the listing or from the time of
its file, and said to be. A weekday that does not agree is no start.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import NamedTuple

DAY_S = 86400.0
KIN_S = 1.5 * DAY_S  # a file's time further than this from the logs is not the listing's
YEARS_BACK = 2

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = "|".join(MONTHS)
_TIME = r"\d{1,2}:\d{2}(?::\d{2})?"

# As `lstart`, with and without its year; an ISO time; a day; a month and day; a time; a year.
START = re.compile(
    rf"(?P<weekday>{'|'.join(DAYS)}),? +(?P<month>{_MONTH}) +(?P<day>\d{{1,2}}) +"
    rf"(?P<time>{_TIME})(?: +(?P<year>\d{{4}})(?!\S))?"
    rf"|(?P<iso>\d{{4}}-\d{{2}}-\d{{2}})[ T](?P<iso_time>{_TIME})"
    rf"|(?P<short_month>{_MONTH}) ?(?P<short_day>\d{{1,2}})(?!\S)"
    rf"|(?P<clock>{_TIME})(?!\S)"
    r"|(?P<only_year>(?:19|20)\d{2})(?!\S)"
)
LONGEST_S = 100 * 365 * DAY_S  # that anything has run
ELAPSED = re.compile(r"(?:(?:(\d+)-)?(\d{1,2}):)?(\d{1,2}):(\d{2})(?!\S)")


class Start(NamedTuple):
    """`t` None: it cannot be told, and `inferred` says why; else what was inferred, if
    anything. Both are half a sentence."""

    t: float | None
    within_s: float = 1.0
    inferred: str = ""


class Around(NamedTuple):
    """What is known of the time of a listing: its file's, and those of the logs beside it."""

    taken: float | None
    logs: Sequence[float] = ()

    @property
    def copied(self) -> bool:
        """Its file is so much younger or older than the logs that it was written again."""
        return (
            self.taken is not None
            and bool(self.logs)
            and not min(self.logs) - KIN_S <= self.taken <= max(self.logs) + KIN_S
        )


def of_match(found: re.Match[str], around: Around) -> Start:
    """Of a match of START."""
    if found["weekday"]:
        return _long(found, around)
    if found["iso"]:
        year, month, day = map(int, found["iso"].split("-"))
        return _exact(year, month, day, found["iso_time"])
    if found["short_month"]:
        month, day = MONTHS.index(found["short_month"]) + 1, int(found["short_day"])
        for year, source in _years(around):
            t = _time(year, month, day, "00:00")
            if t is not None and not _future(t, around):
                return Start(t, DAY_S, f"its year is taken from {source}")
        return Start(None, inferred="no year fits its day")
    if found["clock"]:
        return _clock(found["clock"], around)
    return Start(None, inferred="only its year is shown")


def ago(found: re.Match[str], around: Around) -> Start:
    """Of a match of ELAPSED: it counts back from when the listing was taken."""
    if around.taken is None or around.copied:
        return Start(None, inferred="only its age is shown, and when the listing was taken is not")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    elapsed_s = days * DAY_S + hours * 3600 + minutes * 60 + seconds
    if elapsed_s > LONGEST_S:  # ps writes so that a process began a moment after its clock
        elapsed_s = 0
    return Start(around.taken - elapsed_s, 2.0, "counted back from the time of the listing's file")


def _long(found: re.Match[str], around: Around) -> Start:
    month, day = MONTHS.index(found["month"]) + 1, int(found["day"])
    if found["year"]:
        start = _exact(int(found["year"]), month, day, found["time"])
        if start.t is not None and _weekday(start.t) != found["weekday"]:
            said = f"{found['month']} {day} {found['year']} is no {found['weekday']}"
            return Start(None, inferred=f"its weekday does not agree: {said}")
        return start
    for year, source in _years(around):
        t = _time(year, month, day, found["time"])
        if t is not None and _weekday(t) == found["weekday"]:
            agrees = f"the year {year} is taken from {source}, and its weekday agrees"
            return Start(t, _within(found["time"]), agrees)
    why = f"no year near it has {found['month']} {day} as a {found['weekday']}"
    return Start(None, inferred=f"its year is missing, and {why}")


def _clock(text: str, around: Around) -> Start:
    """A time of day: of the day of the listing, or of the day before where it lies ahead."""
    if around.taken is not None and not around.copied:
        day, source = datetime.date.fromtimestamp(around.taken), "the time of the listing's file"
        t = _time(day.year, day.month, day.day, text)
        if t is not None and t > around.taken:
            before = day - datetime.timedelta(days=1)
            t = _time(before.year, before.month, before.day, text)
    elif around.logs:
        day, source = datetime.date.fromtimestamp(max(around.logs)), "the logs beside it"
        t = _time(day.year, day.month, day.day, text)
    else:
        return Start(None, inferred="its day is not shown, and nothing says it")
    return Start(t, _within(text), f"its day is taken from {source}")


def _years(around: Around) -> list[tuple[int, str]]:
    """The years that it may be of, the likeliest first, with where they come from."""
    found: dict[int, str] = {}
    for t in sorted(around.logs, reverse=True):
        found.setdefault(datetime.date.fromtimestamp(t).year, "the logs beside it")
    if around.taken is not None:
        newest = datetime.date.fromtimestamp(around.taken).year
        for year in range(newest, newest - YEARS_BACK - 1, -1):
            found.setdefault(year, "the time of the listing's file")
    return list(found.items())


def _future(t: float, around: Around) -> bool:
    latest = max([*around.logs, around.taken or 0.0])
    return t > latest + DAY_S


def _exact(year: int, month: int, day: int, time: str) -> Start:
    t = _time(year, month, day, time)
    return Start(t, _within(time), "" if t is not None else "there is no such day")


def _within(time: str) -> float:
    return 60.0 if time.count(":") == 1 else 1.0


def _time(year: int, month: int, day: int, time: str) -> float | None:
    """Local time, as `ps` prints it; None where there is no such moment."""
    hour, minute, second = [*map(int, time.split(":")), 0][:3]
    try:
        return datetime.datetime(year, month, day, hour, minute, min(second, 59)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _weekday(t: float) -> str:
    return DAYS[datetime.date.fromtimestamp(t).weekday()]
