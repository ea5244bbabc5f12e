"""What no supervisor could say of itself: that it is gone, or says nothing any more."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.afterwards import STALE_S, SUPERVISOR_GONE
from bitwatch.record.follow import Liveness
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, Source, fold
from bitwatch.record.view import View, view
from bitwatch.tui.remedies import remedies

NOW = 1_000_000.0
WATCHED = Liveness(supervisor=True, agent=True, ranks=frozenset({0}))
ALONE = Liveness(agent=True, ranks=frozenset({0}))


def running(*more: events.Record, foreign: bool = False) -> RunState:
    state = RunState()
    began = NOW - 900.0
    fold(state, JOURNAL, [events.RunStarted(run="r", foreign=foreign, t=began)])
    fold(state, JOURNAL, [events.AttemptStarted(attempt=1, steps=10, t=began), *more])
    fold(state, SAMPLES, [events.Processes(attempt=1, t=NOW - 2.0)])
    fold(state, Source("rank", 1, 0), [events.Step(step=7, step_s=1.0, t=NOW - 2.0)])
    return state


def said(seen: View) -> dict[str, events.Alert]:
    return {alert.id: alert for alert in seen.alerts}


def test_ranks_that_go_on_without_a_supervisor_are_an_alert_until_there_is_one() -> None:
    state = running()
    assert said(view(state, NOW, WATCHED)) == {}
    alert = said(view(state, NOW, ALONE))[SUPERVISOR_GONE]
    assert alert.severity == "warning" and alert.t == NOW - 2.0
    assert "the ranks go on" in alert.text and "bitwatch attach" in alert.next
    assert alert.next.startswith("key c ") and alert.id in remedies(view(state, NOW, ALONE))
    assert "the last that it wrote was at" in alert.evidence[0]


def test_where_nothing_goes_on_or_nothing_can_be_seen_no_supervisor_is_missed() -> None:
    state = running()
    assert SUPERVISOR_GONE not in said(view(state, NOW, Liveness()))
    assert SUPERVISOR_GONE not in said(view(state, NOW, Liveness(elsewhere="on another host")))
    over = running(events.AttemptEnded(attempt=1, state="failed", t=NOW))
    assert SUPERVISOR_GONE not in said(view(over, NOW, ALONE))
    assert SUPERVISOR_GONE not in said(view(running(foreign=True), NOW, ALONE))


def test_a_supervisor_that_measures_nothing_is_an_alert_until_it_does() -> None:
    state = running()
    late = NOW + STALE_S
    alert = said(view(state, late, WATCHED))["telemetry-stale"]
    assert alert.text.startswith("nothing has been measured since")
    assert "telemetry-stale" not in said(view(state, late, ALONE))  # which is said already
    fold(state, SAMPLES, [events.Processes(attempt=1, t=late - 1.0)])
    assert "telemetry-stale" not in said(view(state, late, WATCHED))


def test_of_an_attempt_that_has_not_been_measured_yet_nothing_is_missed() -> None:
    state = running()
    fold(state, JOURNAL, [events.AttemptStarted(attempt=2, steps=10, t=NOW)])
    assert said(view(state, NOW + 2 * STALE_S, WATCHED)) == {}
