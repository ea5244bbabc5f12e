"""Ranks with unequal shares: nobody hangs, all take the same steps, and what is left is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bitwatch import config as configuration
from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.supervise.watch_readers import uneven
from trainer.data import remainder
from trainer.data.remainder import Share

ROW = '{"text": "seventy"}\n'  # 8 bytes with its newline: one sequence of 64 bits


def unequal_files(folder: Path, rows: list[int]) -> str:
    for number, count in enumerate(rows):
        (folder / f"part-{number}.jsonl").write_text(ROW * count)
    return str(folder / "*.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "planned", "workers"),
    [
        pytest.param([300, 101], [309, 99], 1, marks=pytest.mark.long, id="2 ranks"),
        pytest.param([120, 90, 41, 80], [118, 91, 44, 82], 0, id="4 ranks"),
    ],
)
def test_an_epoch_of_unequal_files_ends_on_all_ranks_at_once_and_says_what_is_left(
    tmp_path: Path,
    small: Callable[..., configuration.Config],
    launch: Callable[..., Any],
    rows: list[int],
    planned: list[int],
    workers: int,
) -> None:
    """As-is, each rank has a file of its own; two sequences a step of each. Where there are
    workers, they are spawned."""
    ranks = len(rows)
    shortest = min(range(ranks), key=rows.__getitem__)
    last = rows[shortest] // 2
    config = small(
        data={
            "source": unequal_files(tmp_path, rows),
            "sharding": "as-is",
            "workers": workers,
            "start_method": "spawn",
        },
        parallel={"ranks": ranks},
        train={"batch": 2 * ranks, "steps": last + 3},
    )
    launched = launch(config, plan={"sequences_per_rank": planned})
    assert launched.wait() == 0, launched.log()

    if workers:
        files = launched.reader_files()
        starts = {key: found[0] for key, found in files.items() if key[1] == "train"}
        assert set(starts) == {(r, "train", 0, epoch) for r in range(ranks) for epoch in "01"}
        assert {start.role for start in starts.values()} == {"worker"}

    told: dict[int, events.Epoch] = {}
    for rank in range(ranks):
        assert (launched.last(rank).state, launched.last(rank).step) == ("done", last + 3)
        steps = launched.of(events.Step, rank)
        assert [step.step for step in steps] == list(range(1, last + 4))
        # The same sum over all ranks: no collective was paired with another one.
        assert [step.loss for step in steps] == [step.loss for step in launched.of(events.Step, 0)]
        (told[rank],) = launched.of(events.Epoch, rank)
    assert {(one.epoch, one.step) for one in told.values()} == {(0, last)}
    (text,) = {one.text for one in told.values()}  # all have the same to say

    for rank, one in told.items():
        assert one.share == pytest.approx(rows[rank], rel=0.05)
        assert one.unread == pytest.approx(rows[rank] - 2 * last, abs=0.05 * rows[rank])
    assert (told[shortest].share, told[shortest].unread) == (rows[shortest], 1)  # it knows
    most = planned[0] - 2 * last
    assert text.startswith(
        f"epoch 0 ended at step {last} on all ranks: rank {shortest} had no more data for a whole "
        f"batch; about {most} of rank 0's {planned[0]} sequences stay unread"
    )
    (alert,) = uneven(View(rank_epochs=told))
    assert f"of rank 0's text unread (about {most} of {planned[0]}" in alert.text


def test_what_is_left_is_exact_for_who_ended_and_else_the_plans_estimate() -> None:
    assert remainder.of_rank(100, 140, 3) == Share(103, 3, True)
    assert remainder.of_rank(100, 140, None) == Share(140, 40, False)
    assert remainder.of_rank(100, 90, None) == Share(100, 0, False)  # the plan was wrong
    assert remainder.of_rank(100, None, None) == Share(None, None, False)


def test_the_end_of_an_epoch_is_said_for_any_number_of_ranks() -> None:
    short, unknown = Share(100, 1, True), Share()
    said = "had no more data for a whole batch"
    assert remainder.words([short]) == f"rank 0 {said}"
    assert remainder.words([short, unknown]) == f"rank 0 {said}"
    assert remainder.words([short, short]) == f"no rank {said.replace('no more', 'more')}"
    assert remainder.words([short, Share(3100, 1200), short]) == (
        f"2 of 3 ranks {said}; about 1,200 of rank 1's 3,100 sequences stay unread"
    )
    assert remainder.words([Share(3100, 1200), short, Share(2000, 100)]).endswith(
        "; about 1,200 of rank 0's 3,100 sequences stay unread, 1,300 of all ranks together"
    )
