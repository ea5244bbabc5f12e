"""Alerts: what is wrong with a run, what it costs, and what to do about it.

Each rule is a pure function of the view and the time, and gives the alerts that hold now.
`Watch` compares that with what was raised before and writes what has begun and what has
cleared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping

from bitwatch.config import Config
from bitwatch.record import afterwards, events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.recent import Behind, behind, waiting_levels
from bitwatch.record.view import View
from bitwatch.supervise import grace
from bitwatch.supervise.watch_deaths import about_deaths, lost_workers
from bitwatch.supervise.watch_disk import Low, at_once
from bitwatch.supervise.watch_gpus import IDS as OF_GPUS
from bitwatch.supervise.watch_gpus import Cards, about_gpus
from bitwatch.supervise.watch_loss import UNKNOWN, Losses, Rule
from bitwatch.supervise.watch_model import another_model, lowered
from bitwatch.supervise.watch_processes import (
    NOWHERE,
    SHM_ENOUGH_MIB,
    Around,
    Growth,
    about_processes,
)
from bitwatch.supervise.watch_readers import about_readers, remedy
from bitwatch.supervise.watch_stalls import stalled, straggler
from bitwatch.supervise.watch_telemetry import stale

# Raised when so many looks in a row find it: it is judged from the time since a reader's last
# word, which a clock that is set, or a machine that wakes, makes long for a moment; or from
# processes, of which a library may start many for an instant.
MAY_PASS = ("data-starved", "worker-died", "process-count", "straggler", "telemetry-stale")
LOOKS = 3


def alerts(
    view: View,
    now: float,
    waiting: Mapping[int, float] | None = None,
    around: Around = NOWHERE,
    most_processes: int | None = None,
    late: Behind | None = None,
) -> list[events.Alert]:
    """Everything that is wrong at this moment, each id once: what a later rule knows of an
    alert is more evidence for it. `waiting`: how much ranks wait for data, as was judged with
    an eye on what was said before; `late`, which rank keeps the others waiting. `around` is what
    no record says."""
    levels = waiting_levels(view.data_shares, {}) if waiting is None else waiting
    found: dict[str, events.Alert] = {}
    for rule in (planned, short_grace, resumed):
        for alert in rule(view):
            found.setdefault(alert.id, alert)
    for alert in (
        *afterwards.leftovers(afterwards.recorded(view.leftovers), view.attempt, now),
        *stalled(view, now),
        *straggler(view, late),
        *stale(view, now),
        *another_model(view),
        *lowered(view),
        *about_processes(view, around, most_processes),
        *about_gpus(view, around.gpus),
        *about_deaths(view, around.logs),
        *about_readers(view, now, levels),
    ):
        if alert.id not in found:
            found[alert.id] = alert
        else:
            found[alert.id].evidence += alert.evidence
    return list(found.values())


def planned(view: View) -> Iterator[events.Alert]:
    """What the plan said before the launch stays true while the attempt runs."""
    for problem in view.plan.get("problems", ()):
        yield events.Alert(
            id=problem["id"],
            severity=problem["severity"],
            text=problem["text"],
            next=remedy(view, problem["id"], problem["next"]),
            evidence=[f"planned before the launch of attempt {view.attempt}"],
        )


def short_grace(view: View) -> Iterator[events.Alert]:
    """A stop that waits shorter than its checkpoint takes loses it when it matters most. The
    supervisor waits as measured, unless it is told how long; torchrun as the launch told it."""
    written = [saved for saved in view.checkpoints if saved.t >= (view.attempt_started or 0.0)]
    if view.grace_s is None or not written:
        return
    last, needed_s = written[-1], math.ceil(grace.needed_s(written[-1].seconds))
    if needed_s <= view.grace_s:
        return
    yield events.Alert(
        id="grace-too-short",
        severity="warning",
        text=f"a stop can take {needed_s} s (a checkpoint took {last.seconds:.0f}), and the launch "
        f"allowed it {view.grace_s:.0f} s",
        evidence=[f"step {last.step}: {last.bytes >> 20} MiB in {last.seconds:.1f} s: {last.path}"],
        next=f"stop it now, while nothing presses, and resume it with --set watch.grace_s={needed_s}",
    )


def resumed(view: View) -> Iterator[events.Alert]:
    """What a resume has lost: it stays in the journal, and before the eyes of who watches."""
    lost = [note.text for note in view.notes if note.severity != "info"]
    if lost:
        yield events.Alert(
            id="resume-lost",
            severity="warning",
            text=lost[-1],
            evidence=lost,
            next="nothing need be done; the attempt goes on from there",
        )


class Watch:
    """Raises and clears alerts in the journal."""

    def __init__(self, journal: JournalWriter, config: Config | None = None) -> None:
        self._journal = journal
        self._most = config.watch.max_processes if config else None
        self._losses = Losses(_rule(config) if config else UNKNOWN)
        self._low = Low()
        self._checkpoints = at_once(config.checkpoint) if config else 1
        self._raised: dict[str, events.Alert] = {}
        self._looks: dict[str, int] = {}  # in a row that have found it
        self._waiting: dict[int, float] = {}
        self._late: Behind | None = None
        self._growth = Growth()
        self._cards = Cards()

    def adopt(self, raised: Iterable[events.Alert]) -> None:
        """What an earlier supervisor has raised and not cleared, so that it can be cleared."""
        self._raised |= {alert.id: alert for alert in raised}
        self._cards.adopt(self._raised)

    def look(self, view: View, now: float, around: Around = NOWHERE) -> None:
        self._waiting = waiting_levels(view.data_shares, self._waiting)
        self._late = behind(view.own_times, self._late)
        around = around._replace(
            grown_from=self._growth.note(view, now), gpus=self._cards.note(view)
        )
        if "shm-low" in self._raised:
            around = around._replace(shm_enough_mib=SHM_ENOUGH_MIB)
        found = [
            *alerts(view, now, self._waiting, around, self._most, self._late),
            *self._losses.look(view),
            *self._low.look(view, around.rooms, self._checkpoints),
        ]
        present = {alert.id: alert for alert in found}
        # A rank that says it has lost its worker needs no second look.
        may_pass = set(MAY_PASS) - ({"worker-died"} if lost_workers(view) else set())
        if view.stuck is None and "stalled" not in self._raised:
            may_pass.add("stalled")  # the ranks are being asked: perhaps they merely compile
        self._looks = {id: self._looks.get(id, 0) + 1 for id in present}
        for alert in present.values():
            before = self._raised.get(alert.id)
            early = alert.id in may_pass and self._looks[alert.id] < LOOKS
            if before is None and early:
                continue
            if before is None or _told(before) != _told(alert):
                alert.attempt, alert.m = view.attempt, time.monotonic()
                self._journal.write(alert)
                self._raised[alert.id] = alert
        for gone in self._raised.keys() - present.keys():
            if gone.startswith(OF_GPUS) and not around.gpus.is_new:
                continue  # nothing has been heard of it since
            text = self._raised.pop(gone).text
            self._journal.write(
                events.Alert(id=gone, attempt=view.attempt, text=text, cleared=True)
            )


def _rule(config: Config) -> Rule:
    return Rule(config.train.on_not_finite, config.train.skip_outliers)


def _told(alert: events.Alert) -> tuple[str, str, str, int]:
    """What makes it worth writing again. Evidence counts when there is more or less of it: a
    reader's pid changes with every epoch, and each change would be a line in the journal."""
    return alert.severity, alert.text, alert.next, len(alert.evidence)
