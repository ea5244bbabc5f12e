"""How trainings end: stopped and resumed, failed with a cause, or killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bitwatch.record import events, kernel
from bitwatch.record.follow import Follower
from bitwatch.record.view import verdict
from trainer import checkpoint

pytestmark = pytest.mark.slow
DISTURBED = Path(__file__).with_name("disturbed.py")


def alive(starts: list[events.ProcessStart]) -> list[int]:
    return [start.pid for start in starts if kernel.starttime(start.pid) == start.starttime]


def processes(launched: Any, ranks: int) -> list[events.ProcessStart]:
    """All ranks and workers that have said they exist."""
    records = [record for rank in range(ranks) for record in launched.rank(rank)]
    records += [record for records in launched.reader_files().values() for record in records]
    return [record for record in records if isinstance(record, events.ProcessStart)]


# ---------------------------------------------------------------------------------------
# Stop and resume


@pytest.fixture(scope="module")
def stopped(small: Callable[..., Any], launch: Callable[..., Any]) -> Any:
    """2 ranks x 2 workers on 2 shards, stopped while they train."""
    launched = launch(
        small(
            data={"workers": 2, "validation": "validation"},
            parallel={"ranks": 2},
            train={"steps": 100_000, "eval_every": 2},
        ),
        torchrun=True,
    )
    launched.await_that(lambda: len(launched.of(events.Step)) >= 3)
    launched.run.stop(1).write_text("{}")
    assert launched.wait() == 0, launched.log()
    return launched


@pytest.fixture(scope="module")
def resumed(stopped: Any, small: Callable[..., Any], launch: Callable[..., Any]) -> Any:
    """The same run on one rank, two steps further."""
    steps = stopped.last().step + 2
    launched = launch(small(train={"steps": steps}), run=stopped.run, resume="new-epoch")
    assert launched.wait() == 0, launched.log()
    return launched


def test_a_stop_file_stops_all_ranks_at_one_step(stopped: Any) -> None:
    steps = {stopped.last(rank).step for rank in range(2)}
    assert len(steps) == 1
    assert steps.pop() >= 3
    for rank in range(2):
        assert (stopped.last(rank).state, stopped.last(rank).cause) == ("stopped", "")
        assert [phase.name for phase in stopped.of(events.Phase, rank)][-2:] == [
            "stop",
            "checkpoint",
        ]


def test_a_stop_leaves_a_whole_checkpoint(stopped: Any, resumed: Any) -> None:
    step = stopped.last().step
    (saved,) = stopped.of(events.Checkpoint)
    assert saved.step == step
    assert Path(saved.path) == stopped.run.checkpoints() / f"step-{step}"
    assert saved.path in map(str, checkpoint.whole(stopped.run.checkpoints()))
    assert saved.bytes > 0


def test_resume_continues_from_the_step_on_other_ranks(stopped: Any, resumed: Any) -> None:
    step = stopped.last().step
    assert [record.step for record in resumed.of(events.Step)] == [step + 1, step + 2]
    assert resumed.of(events.Step)[0].tokens == (step + 1) * 4 * 64
    (epoch,) = resumed.of(events.Epoch)
    assert epoch.epoch == 1
    assert "seen again" in epoch.text
    # The weights are those that were learned: a new model would start from guessing.
    assert resumed.of(events.Step)[0].bits_per_byte < 7.9


def test_validation_is_scored_when_due(stopped: Any) -> None:
    scored = stopped.of(events.Evaluation)
    assert scored[0].step == 2
    assert scored[0].scored_bytes == 2 * 2 * 2 * 8  # ranks, steps, sequences, bytes
    assert 0 < scored[0].bits_per_byte < 8.5
    assert not stopped.of(events.Evaluation, rank=1)


def test_idle_readers_say_so(stopped: Any) -> None:
    readers = stopped.readers()
    for rank in range(2):
        assert readers[rank, "train", 0, "0"].shards == [rank]
        assert readers[rank, "train", 0, "0"].samples > 0
        assert readers[rank, "train", 1, "0"].state == "idle"
        assert readers[rank, "validation", 0, "0"].state == "done"


def test_nothing_lives_after_the_end(stopped: Any) -> None:
    assert len(processes(stopped, 2)) == 2 + 4
    stopped.await_that(lambda: not alive(processes(stopped, 2)), running=False)


def test_a_sigterm_to_one_rank_stops_all_with_a_checkpoint_and_is_named(
    small: Callable[..., Any], launch: Callable[..., Any]
) -> None:
    launched = launch(small(parallel={"ranks": 2}, train={"steps": 100_000}))
    launched.await_that(lambda: launched.of(events.Step, 0) and launched.of(events.Step, 1))
    os.kill(launched.of(events.ProcessStart, 1)[0].pid, signal.SIGTERM)
    assert launched.wait() == 0, launched.log(1)
    first, second = launched.last(0), launched.last(1)
    assert (first.state, first.cause) == ("stopped", "")
    assert (second.state, second.cause) == ("stopped", "SIGTERM")
    whole = checkpoint.whole(launched.run.checkpoints())
    assert [path.name for path in whole] == [f"step-{first.step}"] and first.step == second.step
    follower = Follower(launched.run)
    follower.poll()
    said = verdict(follower.state, launched.attempt, 2)
    assert said == ("stopped", "stopped by SIGTERM to rank 1, with a checkpoint")


# ---------------------------------------------------------------------------------------
# Failures


def test_another_number_of_parameters_is_refused(
    small: Callable[..., Any], launch: Callable[..., Any]
) -> None:
    launched = launch(small(model={"expected_parameters": 1_208_606_722}, parallel={"ranks": 2}))
    assert launched.wait() == 1
    for rank in range(2):
        assert launched.last(rank).state == "failed"
        assert "1,208,606,722" in launched.last(rank).cause
        assert not launched.of(events.Step, rank)


def test_a_data_error_on_one_rank_ends_all_with_its_cause(
    small: Callable[..., Any], launch: Callable[..., Any], tmp_path: Path
) -> None:
    good = [json.dumps({"text": "some text of a row"})] * 40
    (tmp_path / "0.jsonl").write_text("\n".join(good * 10))
    (tmp_path / "1.jsonl").write_text("\n".join([*good, '{"text": ', *good]))
    launched = launch(
        small(
            data={"source": str(tmp_path / "*.jsonl"), "workers": 1},
            parallel={"ranks": 2},
            train={"steps": 1000},
        ),
        torchrun=True,
    )
    assert launched.wait() == 1
    causes = [launched.last(rank).cause for rank in range(2)]
    assert causes[0] == causes[1]
    assert causes[0].startswith("rank 1: data: ")
    assert launched.last(0).step == launched.last(1).step
    failed = launched.readers()[1, "train", 0, "0"]
    assert failed.state == "failed"
    assert failed.error in causes[0]


@pytest.fixture
def poison(small: Callable[..., Any], launch: Callable[..., Any]) -> Callable[[str], Any]:
    def start(on_not_finite: str) -> Any:
        config = small(
            parallel={"ranks": 2},
            train={"steps": 6, "on_not_finite": on_not_finite},
            checkpoint={"every": 2},
        )
        return launch(config, script=DISTURBED, POISON_RANK="1", POISON_STEP="3")

    return start


def test_a_loss_that_is_not_finite_stops_all_ranks(poison: Callable[[str], Any]) -> None:
    launched = poison("stop")
    assert launched.wait() == 1
    for rank in range(2):
        last = launched.last(rank)
        assert last.cause.startswith("step 3: the loss of rank 1 is not finite")
        assert last.step == 2
        assert [step.step for step in launched.of(events.Step, rank)] == [1, 2, 3]
        assert launched.of(events.Step, rank)[-1].loss != launched.of(events.Step, rank)[-1].loss
    # A save that was under way is of a time when all was well: it was brought to its end.
    (saved,) = launched.of(events.Checkpoint)
    assert saved.step == 2
    assert [path.name for path in checkpoint.whole(launched.run.checkpoints())] == ["step-2"]


def test_a_step_that_is_not_finite_is_skipped_when_asked(poison: Callable[[str], Any]) -> None:
    launched = poison("skip")
    assert launched.wait() == 0, launched.log()
    steps = launched.of(events.Step)
    assert [step.skipped for step in steps] == [0, 0, 1, 1, 1, 1]
    assert all(step.loss == step.loss for step in steps if step.step != 3)


def test_a_checkpoint_that_cannot_be_written_fails_the_run(
    small: Callable[..., Any], launch: Callable[..., Any], tmp_path: Path
) -> None:
    """In the midst of it, for all ranks at one step: nobody learns it from a collective."""
    (tmp_path / "file").write_text("in the way")
    launched = launch(
        small(
            parallel={"ranks": 2},
            train={"steps": 100_000},
            checkpoint={"folder": str(tmp_path / "file"), "every": 2},
        )
    )
    assert launched.wait() == 1
    first, other = launched.last(0), launched.last(1)
    assert (first.state, other.state) == ("failed", "failed")
    assert first.cause.startswith(f"checkpoint: {tmp_path}/file")
    assert "rank 0: NotADirectoryError" in first.cause
    assert (first.cause, first.step) == (other.cause, other.step)
    assert 2 <= first.step < 100_000
    assert not launched.of(events.Checkpoint)


@pytest.mark.parametrize(("start_method", "workers"), [("fork", 2), ("spawn", 1)])
def test_ranks_and_workers_die_with_the_agent(
    small: Callable[..., Any], launch: Callable[..., Any], start_method: str, workers: int
) -> None:
    """Of two workers of a rank one is idle; a spawned one loads torch for itself first."""
    launched = launch(
        small(
            data={"workers": workers, "start_method": start_method},
            parallel={"ranks": 2},
            train={"steps": 100_000},
        ),
        torchrun=True,
    )
    launched.await_that(lambda: launched.of(events.Step, 0) and launched.of(events.Step, 1))
    launched.await_that(lambda: len(processes(launched, 2)) == 2 + 2 * workers)
    started = processes(launched, 2)
    busy = [start.pid for start in started if start.worker in (None, 0)]
    assert all(os.getpgid(pid) == pid for pid in busy)  # each in a group of its own
    assert len(alive(started)) >= 4  # an idle worker may have left
    os.kill(launched.process.pid, signal.SIGKILL)
    launched.await_that(lambda: not alive(started), running=False)


def test_without_a_run_directory_nothing_starts() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BITWATCH_")}
    script = DISTURBED.parents[2] / "trainer" / "train.py"
    ended = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "bitwatch run" in ended.stderr
