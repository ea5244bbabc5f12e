"""The alert about leftovers says what the panel counts."""

from __future__ import annotations

from typing import Any

from bitwatch.attach.others import Other, with_leftovers
from bitwatch.record import events
from bitwatch.record.follow import Liveness
from bitwatch.record.state import PrepareState, RunState
from bitwatch.record.view import View, view
from bitwatch.tui import sections

NOW = 1_700_000_000.0
RUN = "2026-01-01-x-1"


def started(pid: int, attempt: int = 1) -> events.ProcessStart:
    return events.ProcessStart(pid=pid, starttime=pid, role="worker", rank=1, attempt=attempt)


def other(pid: int, **fields: Any) -> Other:
    told = {"group": "leftover", "run": RUN, "attempt": 1, "role": "worker", "proof": "recorded"}
    return Other(pid=pid, starttime=pid, **(told | fields))


def alert_of(seen: View, *others: Other) -> events.Alert:
    seen = with_leftovers(seen, others, NOW)
    (alert,) = (alert for alert in seen.alerts if alert.id == "leftovers")
    number = sections.counts(seen, others)["leftover"]
    many = "1 process of" if number == 1 else f"{number:,} processes of"
    assert alert.text.startswith(many)
    return alert


def test_it_counts_everything_that_the_key_ends() -> None:
    seen = View(run=RUN, attempt=2, leftovers=[started(5)])
    text = "1 process of ended attempt 1 is still there"
    assert alert_of(seen).text == text  # before the first look
    assert alert_of(seen, other(5)).text == text
    found = [
        other(5, rank=1),
        other(6, role="resource tracker", proof="tagged"),
        other(7, role="other", proof="descends", attempt=2),
        other(8, group="confirm"),
        other(9, group="gpu", run=""),
    ]
    alert = alert_of(seen, *found)
    assert alert.text == "3 processes of ended attempts 1, 2 are still there"
    assert alert.evidence == [
        "pid 5: worker of rank 1, of attempt 1 (proof: recorded)",
        "pid 6: resource tracker, of attempt 1 (proof: tagged)",
        "pid 7: process, of attempt 2 (proof: descends)",
    ]
    assert with_leftovers(View(run=RUN, attempt=2), found[3:], NOW).alerts == []


def test_what_is_of_other_runs_is_told_apart_and_a_crowd_is_not_listed() -> None:
    seen = View(run=RUN, attempt=2)
    theirs = [other(100 + at, run="y") for at in range(1200)]
    alert = alert_of(seen, *theirs)
    assert alert.text == "1,200 processes of ended attempts of another run are still there"
    assert alert.evidence[0] == "pid 100: worker, of attempt 1 of run y (proof: recorded)"
    assert len(alert.evidence) == 9 and alert.evidence[8] == "and 1,192 more"
    alert = alert_of(seen, other(5), other(6, run="y"), other(7, run="z"))
    expected = "3 processes of ended attempts are still there, 2 of them of 2 other runs"
    assert alert.text == expected


def test_what_the_supervisor_has_raised_is_not_said_twice() -> None:
    state = RunState()
    told = events.Alert(id="leftovers", attempt=2, text="as the supervisor has it")
    state.journal.alerts[2, "leftovers"] = told
    state.prepares[2] = PrepareState(updated=NOW)
    nobody_looked = view(state, NOW, Liveness(supervisor=True))
    assert nobody_looked.alerts == [told]
    seen = view(state, NOW, Liveness(supervisor=True, leftovers=(started(5),)))
    assert [alert.text for alert in seen.alerts] == ["1 process of ended attempt 1 is still there"]
    assert with_leftovers(nobody_looked, (), NOW).alerts == []  # it has ended meanwhile
