"""Alerts: what is wrong with a run, what it costs, and what to do about it.

Each rule is a pure function of the view and gives the alerts that hold now. `Watch` compares
that with what was raised before and writes what has begun and what has cleared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.view import View
from bitwatch.supervise import grace


def alerts(view: View) -> list[events.Alert]:
    """Everything that is wrong at this moment."""
    rules = (planned, idle_readers, broken_off, stalled, sensor, short_grace, resumed)
    return [alert for rule in rules for alert in rule(view)]


def planned(view: View) -> Iterator[events.Alert]:
    """What the plan said before the launch stays true while the attempt runs."""
    for problem in view.plan.get("problems", ()):
        yield events.Alert(
            id=problem["id"],
            severity=problem["severity"],
            text=problem["text"],
            next=problem["next"],
            evidence=[f"planned before the launch of attempt {view.attempt}"],
        )


def idle_readers(view: View) -> Iterator[events.Alert]:
    """Readers that say themselves that they were given nothing, whatever a library prints."""
    train = [reader for reader in view.readers if reader.loader == "train"]
    idle = [reader for reader in train if reader.state == "idle"]
    if not idle:
        return
    total = max(len(train), view.ranks * max(view.workers, 1))
    names = [f"rank {reader.rank} worker {reader.worker}" for reader in idle]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    correction = next((c for c in view.plan.get("corrections", ()) if c.get("recommended")), None)
    if correction and correction["id"] == "fewer-workers":
        remedy = f"run it with --set data.workers={correction['workers_per_rank']}"
    elif correction:
        remedy = f"run it with --sharding {correction['id']}"
    else:
        remedy = "use fewer workers per rank, or write the text into more files"
    yield events.Alert(
        id="idle-reader",
        severity="warning",
        text=f"{len(idle)} of {total} readers have nothing to read: {shown}",
        evidence=[
            f"{name}: given no shard (pid {r.pid})" for name, r in zip(names, idle, strict=True)
        ],
        next=remedy,
    )


def broken_off(view: View) -> Iterator[events.Alert]:
    """Readers that cannot reach their text just now and try again."""
    waiting = [reader for reader in view.readers if reader.state == "reading" and reader.error]
    if waiting:
        names = [f"rank {r.rank} {r.loader} reader {r.worker}" for r in waiting]
        yield events.Alert(
            id="data-starved",
            severity="warning",
            text=f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''} cannot reach "
            "the text and will try again",
            evidence=[f"{name}: {r.error}" for name, r in zip(names, waiting, strict=True)],
            next="nothing need be done while it tries; look at the network or the disk",
        )


def stalled(view: View) -> Iterator[events.Alert]:
    if view.state == "stalled":
        yield events.Alert(
            id="stalled",
            severity="warning",
            text=f"no step since step {view.step}",
            evidence=[f"phase {view.phase or 'unknown'}"],
            next=f"bitwatch logs {view.run}",
        )


def sensor(view: View) -> Iterator[events.Alert]:
    if view.gpus and view.gpus.source == "nvml":
        for gpu in view.gpus.gpus:
            if gpu.error:
                yield events.Alert(
                    id=f"gpu-lost-{gpu.index}",
                    severity="error",
                    text=f"GPU {gpu.index} does not answer: {gpu.error}",
                    next="look at the kernel log for Xid lines",
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

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._raised: dict[str, str] = {}

    def look(self, view: View) -> None:
        now = {alert.id: alert for alert in alerts(view)}
        for alert in now.values():
            if self._raised.get(alert.id) != alert.text:
                alert.attempt = view.attempt
                self._journal.write(alert)
                self._raised[alert.id] = alert.text
        for gone in self._raised.keys() - now.keys():
            self._journal.write(
                events.Alert(id=gone, attempt=view.attempt, text=self._raised[gone], cleared=True)
            )
        self._raised = {key: self._raised[key] for key in now}
