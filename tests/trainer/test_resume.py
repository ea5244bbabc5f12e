"""A training that was stopped, killed and gone on with is the one that nothing had happened to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bitwatch.record import events, rundir

pytestmark = pytest.mark.slow

STEPS = 140
DISTURBED = Path(__file__).with_name("disturbed.py")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four files; an epoch of 2 ranks is some 35 steps, so resumes fall into later ones."""
    folder = tmp_path_factory.mktemp("text")
    for shard in range(4):
        lines = "".join(f"{shard} {line * line} of some lines\n" for line in range(15))
        (folder / f"{shard}.txt").write_text(lines)
    return str(folder)


@pytest.fixture(scope="module")
def config(small: Callable[..., Any], source: str) -> Callable[..., Any]:
    def made(ranks: int = 2, workers: int = 2, **data: Any) -> Any:
        return small(
            data={"workers": workers, "source": source, **data},
            parallel={"ranks": ranks},
            train={"steps": STEPS, "schedule": "constant", "micro_batch": 1},
            checkpoint={"every": 25, "keep": 2},
        )

    return made


def losses(*attempts: Any) -> dict[int, float]:
    """Loss by step; where steps repeat, the later attempt counts."""
    return {record.step: record.loss for attempt in attempts for record in attempt.of(events.Step)}


def until_step(attempt: Any, step: int) -> None:
    attempt.await_that(lambda: any(s.step >= step for s in attempt.of(events.Step)))


def held_at(step: int, until: Path) -> dict[str, Any]:
    """For a launch whose ranks come no further until that file is there; each takes two
    micro-batches a step."""
    return {"script": DISTURBED, "HELD_AT": str(2 * step), "HELD_FOR": str(until)}


def test_stopped_and_killed_and_gone_on_with_is_as_if_nothing_had_happened(
    config: Callable[..., Any], launch: Callable[..., Any], tmp_path: Path
) -> None:
    """In a stream, on the same ranks and workers: bitwise equal."""
    run = rundir.create(tmp_path / "runs", "test")
    whole, first = launch(config()), launch(config(), run=run, **held_at(45, run.stop(1)))
    until_step(first, 40)
    first.run.stop(1).write_text("{}")
    assert first.wait() == 0, first.log()
    second = launch(config(), run=run, **held_at(40, tmp_path / "never"))
    until_step(second, first.last().step + 35)
    second.process.kill()
    second.process.wait()
    third = launch(config(), run=first.run)
    assert third.wait() == 0, third.log()
    assert whole.wait() == 0, whole.log()

    stopped = first.last().step
    assert second.of(events.Step)[0].step == stopped + 1
    began = third.of(events.Step)[0].step
    assert began > stopped + 1 and (began - 1) % 25 == 0
    expected = losses(whole)
    assert sorted(expected) == list(range(1, STEPS + 1))
    assert losses(first, second, third) == expected
    turns = [record.step for record in whole.of(events.Epoch)]
    assert min(turns) < stopped < max(turns)
    told = list(itertools.chain.from_iterable(a.of(events.Epoch) for a in (first, second, third)))
    assert sorted({record.step for record in told}) == turns


def test_indexed_text_goes_on_under_other_ranks_and_workers(
    config: Callable[..., Any], launch: Callable[..., Any], tmp_path: Path
) -> None:
    """2 ranks x 2 workers, then 1 x 3: the same batches, so the same losses to rounding."""
    indexed = {"sharding": "indexed", "cache": str(tmp_path)}
    whole = launch(config(**indexed))
    run = rundir.create(tmp_path / "runs", "test")
    first = launch(config(**indexed), run=run, **held_at(45, run.stop(1)))
    until_step(first, 40)
    first.run.stop(1).write_text("{}")
    assert first.wait() == 0, first.log()
    second = launch(config(ranks=1, workers=3, **indexed), run=first.run)
    assert second.wait() == 0, second.log()
    assert whole.wait() == 0, whole.log()
    expected, again = losses(whole), losses(first, second)
    assert sorted(again) == list(range(1, STEPS + 1))
    assert [again[step] for step in sorted(again)] == pytest.approx(
        [expected[step] for step in sorted(expected)], abs=1e-4
    )
    turns = [record.step for record in whole.of(events.Epoch)]
    assert min(turns) < first.last().step < max(turns)
    told = [*first.of(events.Epoch), *second.of(events.Epoch)]
    assert [record.step for record in told] == turns
    assert all("sequences are left, less than a batch" in record.text for record in told)
