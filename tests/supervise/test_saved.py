"""The end of an attempt whose ranks could not write a last word, by its checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bitwatch.record import events, rundir, stops
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import view
from bitwatch.supervise import ending, stopping
from bitwatch.supervise.reaper import Exit

ZERO = Exit(5, 5, 0, None)
UNKNOWN = Exit(5, 5, None, None)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """Its one rank has told of step 2102, of 9000, and then of nothing more."""
    made = rundir.create(tmp_path, "test")
    rundir.new_attempt(made)
    journal = JournalWriter(made.journal)
    folder = str(made.checkpoints())
    journal.write(events.AttemptStarted(attempt=1, steps=9000, checkpoints=folder, t=100.0))
    journal.write(events.Action(name="stop", on="attempt 1", t=200.0))
    JournalWriter(made.rank(1, 0)).write(events.Step(step=2102, t=150.0))
    return made


def save(run: RunDir, step: int, t: float) -> None:
    folder = run.checkpoints() / f"step-{step}"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"created": t}))


def judged(run: RunDir, agent: Exit | None) -> tuple[str, str]:
    follower = Follower(run)
    follower.poll()
    return ending.judge(follower.state, 1, 1, agent, run.logs(1), "")


def test_a_whole_checkpoint_after_the_stop_means_stopped(run: RunDir) -> None:
    (run.checkpoints() / "step-9").mkdir(parents=True)  # wreckage
    assert judged(run, ZERO)[0] == "lost"
    save(run, 50, t=50.0)  # of an earlier attempt
    assert judged(run, ZERO)[0] == "lost"
    save(run, 4000, t=190.0)
    assert judged(run, ZERO)[0] == "stopped"  # all have left without a failure
    assert judged(run, UNKNOWN)[0] == judged(run, None)[0] == "lost"
    save(run, 4649, t=201.0)
    for agent in (ZERO, UNKNOWN, None):
        assert judged(run, agent) == (
            "stopped",
            "no rank could write how it ended; "
            + (
                "they left at step 4,649, with a checkpoint"
                if agent is ZERO
                else "step 4,649 was saved after it was asked to stop"
            ),
        )
    assert judged(run, Exit(5, 5, 1, None))[0] == "failed"
    save(run, 9000, t=202.0)
    assert judged(run, ZERO)[0] == "done"


def test_all_that_left_without_a_failure_have_lost_nothing(run: RunDir) -> None:
    """So the attempt can be relaunched, and bitwatch ends with 0. Who was only asked to may have
    been ended after it had saved."""
    save(run, 4649, t=201.0)
    assert stops.lost_nothing(*judged(run, ZERO))
    assert not stops.lost_nothing(*judged(run, UNKNOWN))


@pytest.mark.parametrize("damaged", ['{"created": 50.0}', "{", "[]", "1" + 400 * "0"])
def test_a_checkpoint_of_a_higher_step_may_be_of_before(run: RunDir, damaged: str) -> None:
    """It was passed over, and the attempt went on from an earlier one."""
    save(run, 5000, t=0.0)
    (run.checkpoints() / "step-5000/manifest.json").write_text(damaged)
    save(run, 4649, t=201.0)
    assert judged(run, ZERO)[1].endswith("step 4,649, with a checkpoint")


def test_checkpoints_that_cannot_be_looked_at_keep_nobody_from_writing_the_end(
    run: RunDir, tmp_path: Path
) -> None:
    journal = JournalWriter(run.journal)
    away = str(tmp_path / ("x" * 300))  # as a file system that is away: an error other than none
    journal.write(events.AttemptStarted(attempt=1, steps=9000, checkpoints=away, t=100.0))
    follower = Follower(run)
    follower.poll()
    assert ending.close_dead(run, follower, 1, "me")[0] == "lost"
    follower.poll()
    assert ending.is_over(follower.state, 1)


def test_who_closes_the_record_later_finds_it_too_and_its_step_is_shown(run: RunDir) -> None:
    run.journal.write_bytes(run.journal.read_bytes().splitlines(keepends=True)[0])  # no action
    stopping.ask(run, 1, "me")
    asked = stopping.read(run, 1)
    assert asked
    save(run, 4649, t=asked.t + 1.0)
    follower = Follower(run)
    follower.poll()
    assert ending.close_dead(run, follower, 1, "me")[0] == "stopped"
    follower.poll()
    seen = view(follower.state, asked.t + 9.0, follower.liveness())
    assert (seen.state, seen.step) == ("stopped", 4649)
    assert json.loads(run.exit(1).read_bytes())["step"] == 4649
