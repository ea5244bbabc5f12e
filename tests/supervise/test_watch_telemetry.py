"""A rank that no longer writes while the others do."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.supervise.watch_telemetry import stale

NOW = 100_000.0


def told(rank: int, step: int, ago_s: float) -> events.Step:
    return events.Step(rank=rank, step=step, t=NOW - ago_s)


def view(**newest: events.Step | None) -> View:
    """Rank 0 has told of a step every ten seconds, from step 10 to step 200."""
    recent = [told(0, 10 * n, 200.0 - 10 * n) for n in range(1, 21)]
    steps = {0: recent[-1], **{int(name[1:]): step for name, step in newest.items() if step}}
    firsts = {rank: told(rank, 10, 190.0) for rank in steps}
    return View(
        attempt=1, state="running", ranks=3, recent=recent, rank_steps=steps, rank_firsts=firsts,
        log_every=10, attempt_started=NOW - 400.0,
    )  # fmt: skip


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


def test_rank_0_is_no_exception_whatever_its_silence_makes_of_the_run() -> None:
    for state in ("running", "stalled"):
        seen = view(r0=told(0, 100, 100.0), r1=told(1, 200, 0.0), r2=told(2, 200, 0.0))
        seen.state = state  # type: ignore[assignment]
        (alert,) = stale(seen, NOW)
        assert alert.text.startswith("rank 0 no longer writes")
    never = view(r1=told(1, 200, 0.0), r2=told(2, 200, 0.0))
    del never.rank_steps[0], never.rank_firsts[0]
    never.state, never.recent = "starting", []
    (alert,) = stale(never, NOW)
    assert "rank 0: no record of a step yet" in alert.evidence
    never.state = "stopping"
    assert list(stale(never, NOW)) == []


def test_a_first_record_after_a_long_start_is_waited_for() -> None:
    """Others have told of a few steps, long after the attempt was started."""
    steps = {0: told(0, 1040, 0.0), 1: told(1, 1040, 0.0)}
    seen = view()
    seen.rank_steps, seen.rank_firsts = steps, {0: told(0, 1000, 40.0), 1: told(1, 1000, 40.0)}
    assert list(stale(seen, NOW)) == []


def test_no_pause_of_all_is_the_silence_of_one() -> None:
    """The last records of before an evaluation, a checkpoint or a compilation are not written in
    the same instant; and of slow steps there are few records."""
    for pause_s in (0.0, 30.0, 300.0):
        seen = view(r1=told(1, 190, 10.0), r2=told(2, 160, 40.0))
        assert list(stale(seen, NOW + pause_s)) == []
    slow = {rank: told(rank, 200 - 10 * (5 - rank), 90.0 * (5 - rank)) for rank in range(1, 5)}
    slow[0] = events.Step(rank=0, step=200, t=NOW, step_s=9.0)
    seen = view()
    seen.ranks, seen.rank_steps = 5, slow
    assert list(stale(seen, NOW)) == []
    slow[1] = told(1, 140, 540.0)
    for later_s in (0.0, 80.0):  # until the next record is due: no end, and no new beginning
        (alert,) = stale(seen, NOW + later_s)
        assert alert.text.startswith("rank 1 ")
