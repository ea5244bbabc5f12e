"""What of a run's record is evidence: for each thing that a finding may speak of, where it
stands. Bounded: a record may have any number of alerts."""

from __future__ import annotations

import msgspec

from bitwatch.record import codec, events
from bitwatch.record.state import Source
from bitwatch.report.model import Entry, Evidence

MOST = 8  # places kept for one thing
MOST_KINDS = 100  # ids of alerts: a record of ours has fewer than thirty
GAP_S = 180.0  # between two records of a journal that has one a minute


class AlertStory(msgspec.Struct):
    """All that was said under one id. `newest` is the last one raised, `cleared` when it was
    cleared after that; None while it holds."""

    newest: events.Alert
    raised: list[Evidence] = []
    attempts: set[int] = set()
    times: int = 0
    cleared: float | None = None


class NotFinite(msgspec.Struct):
    first: Evidence
    count: int = 1


class Gap(msgspec.Struct, frozen=True):
    """From one record to the next; `after` is the line of the second."""

    begin: float
    end: float
    after: Evidence


class Story:
    """`places` has the newest evidence of each of these: ("attempt", n), ("ended", n),
    ("planned", n), ("stuck", n), ("model", n), ("word", n, rank), ("prepared", n),
    ("checkpoint", step), ("step", n), ("run",), ("exit", pid, starttime), ("reader", n, rank, worker)."""

    def __init__(self) -> None:
        self.places: dict[tuple[object, ...], Evidence] = {}
        self.alerts: dict[str, AlertStory] = {}
        self.actions: list[tuple[events.Action, Evidence]] = []
        self.gaps: list[Gap] = []
        self.losses: dict[int, NotFinite] = {}
        self._minutes = False
        self._last: float | None = None  # of the journal, while an attempt is under way

    def add(self, record: codec.Any_, source: Source, evidence: Evidence) -> None:
        if source.kind == "journal":
            self._journal(record, evidence)
            return
        match record:
            case events.RankEnded():
                kind = "prepared" if source.kind == "prepare" else "word"
                self.places[kind, source.attempt, source.rank] = evidence
            case events.ModelBuilt() if not source.rank:
                self.places["model", source.attempt] = evidence
            case events.Checkpoint() if not source.rank:
                self.places["checkpoint", record.step] = evidence
            case events.Reader():
                key = ("reader", source.attempt, record.loader, record.rank, record.worker)
                self.places[key] = evidence

    def not_finite(self, attempt: int, evidence: Evidence) -> None:
        """A loss that is no number."""
        known = self.losses.setdefault(attempt, NotFinite(evidence, 0))
        known.count += 1

    def last_step(self, attempt: int, entry: Entry) -> None:
        self.places["step", attempt] = Evidence(
            source=entry.source, line=entry.line, text=entry.text, t=entry.t
        )

    def _journal(self, record: codec.Any_, evidence: Evidence) -> None:
        self._look_for_gap(record, evidence)
        match record:
            case events.RunStarted():
                self.places["run",] = evidence
            case events.AttemptStarted():
                self.places["attempt", record.attempt] = evidence
            case events.AttemptEnded():
                self.places["ended", record.attempt] = evidence
            case events.DataPlanned():
                self.places["planned", record.attempt] = evidence
            case events.Stuck():
                self.places["stuck", record.attempt] = evidence
            case events.ProcessExit() if record.role != "worker" or record.signal:
                self.places["exit", record.pid, record.starttime] = evidence
            case events.Alert():
                self._alert(record, evidence)
            case events.Action():
                self.actions.append((record, evidence))
                del self.actions[: -10 * MOST]

    def _alert(self, record: events.Alert, evidence: Evidence) -> None:
        known = self.alerts.get(record.id)
        if record.cleared:
            if known is not None:
                known.cleared = record.t
            return
        if known is None:
            if len(self.alerts) >= MOST_KINDS:
                return
            known = self.alerts[record.id] = AlertStory(record)
        known.newest, known.cleared = record, None
        known.times += 1
        known.attempts.add(record.attempt)
        known.raised.append(evidence)
        if len(known.raised) > MOST:  # the first, and the newest
            del known.raised[1]

    def _look_for_gap(self, record: codec.Any_, evidence: Evidence) -> None:
        """Time that nobody wrote about although an attempt went on."""
        last, self._last = self._last, record.t
        if isinstance(record, events.Minute):
            self._minutes = True
        elif isinstance(record, events.AttemptEnded | events.RunEnded):
            self._last, self._minutes = None, False
        if last and self._minutes and record.t - last > GAP_S:
            self.gaps.append(Gap(last, record.t, evidence))
            if len(self.gaps) > MOST:
                del self.gaps[-2]
