"""Two who launch the same run at once: one gets it, and what the other made is all that goes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch import config as configuration
from bitwatch import launching
from bitwatch.plan.facts import Facts
from bitwatch.plan.preflight import make_plan
from bitwatch.record.rundir import LockHeld, RunDir
from tests.supervise.standins import ATTEMPT, ENDED, made, supervised, write


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = made(tmp_path)
    write(run, ATTEMPT, ENDED)
    return run


@pytest.fixture
def held(run: RunDir) -> Iterator[None]:
    """By the supervisor of another launch."""
    with supervised(run):
        yield


def resume(run: RunDir) -> None:
    config = configuration.load(run.config(1))
    plan = make_plan(config, Facts(), launching=True)
    launching.launch(run, run.path.parent, config, Facts(), plan)


@pytest.mark.usefixtures("held")
def test_a_launch_that_comes_too_late_takes_away_what_it_made(run: RunDir) -> None:
    with pytest.raises(LockHeld):
        resume(run)
    assert run.attempts() == [1]


@pytest.mark.usefixtures("held")
def test_a_launch_that_comes_too_late_leaves_the_attempt_of_another_alone(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it another folder of the same name, or its own in which something has begun."""
    start = launching.begin.start_supervisor

    def overtaken(run: RunDir, attempt: int, how: str, by: str, cause: str) -> None:
        os.rename(run.attempt(attempt), run.path / "removed")
        run.logs(attempt).mkdir(parents=True)
        start(run, attempt, how, by, cause)

    def begun(run: RunDir, attempt: int, how: str, by: str, cause: str) -> None:
        (run.logs(attempt) / "agent.log").touch()
        start(run, attempt, how, by, cause)

    for number, meanwhile in enumerate((overtaken, begun), start=2):
        monkeypatch.setattr(launching.begin, "start_supervisor", meanwhile)
        with pytest.raises(LockHeld):
            resume(run)
        assert run.logs(number).is_dir()
