"""Real trainings that know nothing of bitwatch are found while they train."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.sense import training
from tests.foreign import programs
from tests.foreign.programs import Running
from tests.sense.families import of_role

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Running]]:
    """One under torchrun whose output goes through tee, and one of a single process."""
    nano_folder, trainer_folder = (tmp_path_factory.mktemp(name) for name in ("nano", "trainer"))
    with (
        programs.hf_trainer(trainer_folder) as trainer,
        programs.nanogpt(nano_folder, through_tee=True) as nano,
    ):
        nano.reach("iter 3:")
        trainer.reach("'loss'")
        yield nano, trainer


def test_a_training_under_torchrun_is_found(trainings: tuple[Running, Running]) -> None:
    nano, _ = trainings
    looked = training.of(nano.pid)

    assert looked.root[0] == nano.pid
    assert looked.ranks == 2
    assert [one.rank for one in of_role(looked, "rank")] == [0, 1]
    assert sorted((one.rank, one.worker) for one in of_role(looked, "worker")) == [
        (0, 0), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip
    assert [Path(log.path) for log in looked.logs] == [nano.log]
    assert nano.tee
    assert all(
        training.of(pid).root == looked.root
        for pid in (nano.tee.pid, *(one.stat.pid for one in looked.members))
    )


def test_a_training_of_one_process_is_found(trainings: tuple[Running, Running]) -> None:
    nano, trainer = trainings
    looked = training.of(trainer.pid)

    assert looked.root[0] == trainer.pid
    assert [(one.role, one.rank, one.worker) for one in looked.members] == [
        ("rank", 0, None),
        ("worker", 0, 0),
        ("worker", 0, 1),
    ]
    assert [Path(log.path) for log in looked.logs] == [trainer.log]
    roots = [one.root[0] for one in training.all_here()]
    assert {nano.pid, trainer.pid} <= set(roots)
    assert len(roots) == len(set(roots))


def test_ranks_are_found_after_their_launcher_was_killed(
    trainings: tuple[Running, Running],
) -> None:
    """The last test here: it ends the launcher."""
    nano, _ = trainings
    before = training.of(nano.pid)
    nano.process.kill()
    nano.process.wait()

    after = training.of(of_role(before, "rank")[1].stat.pid)

    assert {one.stat.key for one in after.members} == {
        one.stat.key for one in before.members if one.role != "agent"
    }
    assert [Path(log.path) for log in after.logs] == [nano.log]
