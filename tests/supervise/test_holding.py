"""Who only writes into a record is waited for; a supervisor is not."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bitwatch.record import events, rundir
from bitwatch.record.rundir import LockHeld, RunDir
from bitwatch.supervise import holding
from tests.supervise.standins import ATTEMPT, ENDED, made, supervised, write


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return made(tmp_path)


@pytest.fixture
def supervisor(run: RunDir) -> Iterator[None]:
    with supervised(run):
        yield


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[RunDir]:
    """To get the lock."""
    made: list[RunDir] = []
    monkeypatch.setattr(holding, "Lock", lambda run: made.append(run) or rundir.Lock(run))
    return made


def test_who_only_writes_into_the_record_is_waited_for(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = [rundir.Lock(run)]

    def second_time_free(run: RunDir) -> rundir.Lock:
        try:
            return rundir.Lock(run)
        except LockHeld:
            writing.pop().release()
            raise

    monkeypatch.setattr(holding, "Lock", second_time_free)
    assert holding.task_of_supervisor(run) is None
    holding.lock(run).release()
    assert writing == []
    assert holding.task_of_supervisor(run) is None  # nobody holds it now


def test_who_writes_for_ever_is_not_waited_for(
    run: RunDir, tries: list[RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = itertools.count(step=holding.WRITING_S / 4)  # later at each look at the clock
    clock = SimpleNamespace(monotonic=lambda: next(now), sleep=lambda _: None)
    monkeypatch.setattr(holding, "time", clock)
    lock = rundir.Lock(run)
    with pytest.raises(LockHeld, match="another process"):
        holding.lock(run)
    lock.release()
    assert 1 < len(tries) < 6


@pytest.mark.usefixtures("supervisor")
def test_a_supervisor_is_not_waited_for(run: RunDir, tries: list[RunDir]) -> None:
    assert holding.task_of_supervisor(run) == (1, "adopt")
    with pytest.raises(LockHeld):
        holding.lock(run)
    assert len(tries) == 1


@pytest.mark.usefixtures("supervisor")
def test_a_supervisor_whose_attempt_goes_on_is_not_waited_for(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding.time, "sleep", lambda _: pytest.fail("it waits"))
    write(run, ATTEMPT)
    assert not holding.is_free(run)
    write(run, ENDED, events.AttemptStarted(attempt=2))  # it makes the next one
    assert not holding.is_free(run)


def test_a_supervisor_that_has_written_down_the_end_is_waited_for(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still ends its sensor, and waits a moment for the user's command."""
    write(run, ATTEMPT, ENDED)
    closing = contextlib.ExitStack()
    closing.enter_context(supervised(run))
    has_ended = holding._has_ended

    def meanwhile(run: RunDir) -> bool:
        closing.close()
        return has_ended(run)

    monkeypatch.setattr(holding, "_has_ended", meanwhile)
    assert holding.is_free(run) and rundir.Lock(run)


def test_a_run_that_cannot_be_looked_at_is_held_by_nobody_known(tmp_path: Path) -> None:
    """As one on a file system that is away, or that somebody has closed to us."""
    run = RunDir(tmp_path / ("x" * 300))
    assert run.holder() is None and holding.task_of_supervisor(run) is None
    assert holding.is_free(run)
