"""A rank that no longer writes while the others do."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.supervise.watch_telemetry import stale

NOW = 100_000.0


def told(rank: int, step: int, ago_s: float) -> events.Step:
    return events.Step(rank=rank, step=step, t=NOW - ago_s)


def view(**newest: events.Step | None) -> View:
    """Rank 0 has told of a step every ten seconds."""
    recent = [told(0, 10 * n, 200.0 - 10 * n) for n in range(1, 21)]
    steps = {0: recent[-1], **{int(name[1:]): step for name, step in newest.items() if step}}
    return View(attempt=1, state="running", ranks=3, recent=recent, rank_steps=steps)


def test_a_rank_that_falls_silent_is_named_until_it_writes_again() -> None:
    (alert,) = stale(view(r1=told(1, 200, 0.0), r2=told(2, 100, 100.0)), NOW)
    assert alert.id == "telemetry-stale"
    assert alert.text.startswith("rank 2 no longer writes records")
    assert "last record of step 100" in alert.evidence[0]
    assert "--rank 2" in alert.next
    assert list(stale(view(r1=told(1, 200, 0.0), r2=told(2, 190, 10.0)), NOW)) == []


def test_one_that_has_never_written_counts_too() -> None:
    (alert,) = stale(view(r1=told(1, 200, 0.0)), NOW)
    assert "rank 2: no record of a step yet" in alert.evidence


def test_who_is_only_a_little_late_or_has_ended_is_not_meant() -> None:
    late = view(r1=told(1, 160, 40.0), r2=told(2, 160, 40.0))
    assert list(stale(late, NOW)) == []
    ended = view(r1=told(1, 200, 0.0), r2=told(2, 100, 100.0))
    ended.last_words = {2: events.RankEnded(rank=2, state="done")}
    assert list(stale(ended, NOW)) == []


def test_when_nobody_moves_it_is_another_alert() -> None:
    assert list(stale(view(r1=told(1, 200, 0.0), r2=told(2, 100, 100.0)), NOW + 61.0)) == []


def test_a_training_that_is_not_ours_has_one_file_only() -> None:
    seen = view(r1=told(1, 200, 0.0), r2=told(2, 100, 100.0))
    seen.foreign = True
    assert list(stale(seen, NOW)) == []
