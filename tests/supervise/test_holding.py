"""Who only writes into a record is waited for; a supervisor is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.record import rundir
from bitwatch.record.rundir import LockHeld, RunDir
from bitwatch.supervise import holding
from tests.supervise.standins import made, supervised


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
    monkeypatch.setattr(holding, "WRITING_S", 0.3)
    lock = rundir.Lock(run)
    with pytest.raises(LockHeld, match="another process"):
        holding.lock(run)
    lock.release()
    assert len(tries) > 1


@pytest.mark.usefixtures("supervisor")
def test_a_supervisor_is_not_waited_for(run: RunDir, tries: list[RunDir]) -> None:
    assert holding.task_of_supervisor(run) == (1, "adopt")
    with pytest.raises(LockHeld):
        holding.lock(run)
    assert len(tries) == 1
