"""Alerts from when they were raised to when they were over: a fold over what the journal says of
them. The same one raised again is another episode; what an attempt did not clear ended with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bitwatch.record.events import Alert

Key = tuple[int, str, float]
CLEARED, WITH_ATTEMPT = "cleared", "with its attempt"


class Episode(NamedTuple):
    """`alert` is as it was told last. `raised` is None where the record begins later, or where
    nobody recorded it; `over` where it lasts, or where that is not known. `how` it ended is empty
    while it lasts."""

    alert: Alert
    raised: float | None
    over: float | None = None
    how: str = ""

    @property
    def key(self) -> Key:
        """Which one it is, whatever is said of it later."""
        return self.alert.attempt, self.alert.id, self.raised or 0.0

    def lasted_s(self, now: float) -> float | None:
        until = self.over if self.how else now
        if self.raised is None or until is None:
            return None
        return max(0.0, until - self.raised)


def episodes(told: Iterable[Alert], ends: Mapping[int, float], newest: int) -> list[Episode]:
    """In the order in which they began. `ends`: of attempts, when they ended; `newest` is the
    number of the newest one."""
    found: list[Episode] = []
    lasting: dict[tuple[int, str], int] = {}
    for alert in told:
        name = alert.attempt, alert.id
        at = lasting.get(name)
        if alert.cleared:
            if at is None:
                found.append(Episode(alert, None, alert.t, CLEARED))
            else:
                found[at] = found[at]._replace(over=alert.t, how=CLEARED)
                del lasting[name]
        elif at is None:
            lasting[name] = len(found)
            found.append(Episode(alert, alert.t))
        else:
            found[at] = found[at]._replace(alert=alert)
    for (attempt, _), at in lasting.items():
        if attempt < newest or attempt in ends:
            found[at] = found[at]._replace(over=ends.get(attempt), how=WITH_ATTEMPT)
    return found
