"""How long a stop waits, and where that comes from."""

from __future__ import annotations

from pathlib import Path

from bitwatch.record import events, rundir
from bitwatch.record.journal import JournalWriter
from bitwatch.record.state import RunState, Source, fold
from bitwatch.supervise import grace, stopping
from bitwatch.supervise.escalation import Escalation

BIG = {"model": {"built": 1_208_606_722}}
SMALL = {"model": {"built": 8_674}}


def measured(*attempts: list[float]) -> RunState:
    """A run whose attempts have written checkpoints that took so many seconds."""
    state = RunState()
    for number, seconds in enumerate(attempts, start=1):
        saved = [events.Checkpoint(step=10 * i, seconds=s) for i, s in enumerate(seconds)]
        fold(state, Source("rank", number, 0), saved)
        fold(state, Source("rank", number, 1), [events.Phase(rank=1, name="train")])
    return state


def test_without_a_measure_it_follows_from_the_size_of_the_model() -> None:
    assert grace.grace_s(None, SMALL, RunState()) == 40.0
    # 14.5 GB at 200 MB/s are 72.5 s.
    assert round(grace.grace_s(None, BIG, RunState()), 1) == 155.0


def test_where_nothing_is_known_it_is_the_least() -> None:
    assert grace.grace_s(None, {}, RunState()) == 40.0
    assert grace.grace_s(None, {"model": {"built": None}}, RunState()) == 40.0


def test_the_last_measure_of_the_run_counts() -> None:
    assert grace.grace_s(None, BIG, measured([100.0, 30.0])) == 70.0
    assert grace.grace_s(None, BIG, measured([100.0, 30.0], [1.0])) == 40.0
    assert grace.grace_s(None, BIG, measured([100.0], [], [])) == 210.0


def test_what_the_configuration_says_overrides_it() -> None:
    assert grace.grace_s(1.0, BIG, measured([100.0])) == 1.0


def test_a_stop_is_given_what_has_been_measured_when_it_is_asked(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "test")
    rundir.new_attempt(run)
    given_s = [0.0]
    escalation = Escalation(run, 1, lambda: given_s[0], JournalWriter(run.journal))
    given_s[0] = 1000.0
    stopping.ask(run, 1, "test")
    assert not escalation.look(None)
    assert escalation.forced == ""
    hasty = Escalation(run, 1, lambda: 0.0, JournalWriter(run.journal))
    assert not hasty.look(None)
    assert "did not answer within the grace" in hasty.forced
