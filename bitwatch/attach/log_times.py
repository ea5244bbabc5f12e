"""The time that a line of a log bears, in the ways that loggers write it.

Loggers write local time unless they name a zone. Where the year is missing it is that of the
stamps with one in the same log, else the newest in which the line is not later than its file.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

SEARCHED = 96  # characters of a line: a time stands at its beginning, after prefixes
DAY_S = 86400.0
MARGIN = 2  # characters before a stamp that a logger has written, and not a text
MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"

CLOCK = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?!\d)"
# 2025-08-24 07:14:00,709 or 2025-08-24T07:14:00.709Z or ...+02:00
ISO = re.compile(r"(?<![\d.])(\d{4})-(\d\d)-(\d\d)[T _]" + CLOCK + r" ?(Z|[+-]\d\d:?\d\d)?")
# 08/24/2025 07:14:00 or [08/24 07:14:00] or 08/24/25 07:14:00
SLASHED = re.compile(r"(?<![\d/])(\d\d)/(\d\d)(?:/(\d{4}|\d\d))?[ ,-]+" + CLOCK)
# I0824 07:14:00.709 of glog, [E824 07:14:00.709 of torch
GLOG = re.compile(r"(?<!\w)[DIWEFV](\d{1,2})(\d\d) " + CLOCK)
# Sun Aug 24 07:14:00 2025 or Aug 24 07:14:00 of a system's log
NAMED = re.compile(r"\b([A-Z][a-z]{2}) {1,2}(\d{1,2}) " + CLOCK + r"(?: (\d{4})\b)?")


class Times:
    """Reads the times of one log. `near` is a wall-clock time at or after its last line, for
    stamps without a year."""

    def __init__(self, near: float | None = None) -> None:
        self.near = near
        self._whole = ""  # the last stamp up to its second: lines come many in a second
        self._whole_t = 0.0
        self._dated: float | None = None  # of the last line that begins with a whole date

    def read(self, text: str) -> float | None:
        """None when the line bears no time, or an impossible one."""
        head = text[:SEARCHED]
        if ":" not in head:
            return None
        iso = ISO.search(head)
        try:
            if iso:
                return self._iso(iso)
            for pattern, parts in WITHOUT_ZONE:
                if found := pattern.search(head):
                    return self._local(*parts(found))
        except (ValueError, OverflowError, OSError):
            return None
        return None

    def _iso(self, found: re.Match[str]) -> float:
        fraction, zone = found[7], found[8]
        whole = found[0][:19] + (zone or "")
        if whole != self._whole:
            numbers = [int(found[at]) for at in range(1, 7)]
            if zone:
                self._whole_t = datetime(*numbers, tzinfo=_zone(zone)).timestamp()  # type: ignore[misc, arg-type]
            else:
                self._whole_t = _local_t(*numbers)
            self._whole = whole
            if found.start() <= MARGIN:
                self._dated = self._whole_t
        return self._whole_t + _fraction(fraction)

    def _local(
        self, year: int | None, month: int, day: int, clock: tuple[str | None, ...]
    ) -> float:
        hour, minute, second = (int(part or 0) for part in clock[:3])
        if year is not None:
            return _local_t(year, month, day, hour, minute, second) + _fraction(clock[3])
        if self._dated is not None:
            return _nearest(self._dated, month, day, hour, minute, second) + _fraction(clock[3])
        near = time.time() if self.near is None else self.near
        year = time.localtime(near + DAY_S).tm_year
        t = _local_t(year, month, day, hour, minute, second)
        if t > near + DAY_S:
            t = _local_t(year - 1, month, day, hour, minute, second)
        return t + _fraction(clock[3])


def _nearest(dated: float, *rest: int) -> float:
    """In the year in which it is nearest to another line's time. Raises ValueError."""
    middle = time.localtime(dated).tm_year
    found = []
    for year in (middle - 1, middle, middle + 1):
        with contextlib.suppress(ValueError):  # the 29th of February
            found.append(_local_t(year, *rest))
    return min(found, key=lambda t: abs(t - dated))


def _slashed(found: re.Match[str]) -> tuple[int | None, int, int, tuple[str | None, ...]]:
    year = int(found[3]) if found[3] else None
    if year is not None and year < 100:
        year += 2000
    return year, int(found[1]), int(found[2]), found.groups()[3:]


def _glog(found: re.Match[str]) -> tuple[int | None, int, int, tuple[str | None, ...]]:
    return None, int(found[1]), int(found[2]), found.groups()[2:]


def _named(found: re.Match[str]) -> tuple[int | None, int, int, tuple[str | None, ...]]:
    month, rest = divmod(MONTHS.index(found[1]), 3)
    if rest:
        raise ValueError("not a month")
    year = int(found[7]) if found[7] else None
    return year, month + 1, int(found[2]), found.groups()[2:]


Parts = Callable[[re.Match[str]], tuple[int | None, int, int, tuple[str | None, ...]]]
WITHOUT_ZONE: tuple[tuple[re.Pattern[str], Parts], ...] = (
    (SLASHED, _slashed),
    (GLOG, _glog),
    (NAMED, _named),
)


def _local_t(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float:
    datetime(year, month, day, hour, minute, min(second, 59))  # mktime would take a 13th month
    return time.mktime((year, month, day, hour, minute, second, 0, 0, -1))


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _fraction(digits: str | None) -> float:
    return int(digits) / 10 ** len(digits) if digits else 0.0
