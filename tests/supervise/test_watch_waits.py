"""Alerts about ranks that wait for their text: how much of each step, and what to do."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.follow import Liveness
from bitwatch.record.recent import waiting_levels
from bitwatch.record.state import JOURNAL, RunState, Source, fold
from bitwatch.record.view import View, view
from bitwatch.supervise.watch import alerts

NOW = 1_700_000_000.0


def steps(rank: int, data_s: float, count: int = 6) -> list[events.Step]:
    first = events.Step(rank=rank, step=1, step_s=9.0, data_s=8.9, t=NOW - 15)  # starts workers
    rest = [
        events.Step(rank=rank, step=10 * i, step_s=2.0, data_s=data_s, t=NOW - 10 + i)
        for i in range(1, count)
    ]
    return [first, *rest]


def run_of(*waits: float, count: int = 6) -> View:
    """As the records of its ranks make it: rank r waits waits[r] s of each step of 2 s."""
    state = RunState()
    started = events.AttemptStarted(attempt=1, ranks=len(waits), workers=2, steps=1000, t=NOW - 60)
    fold(state, JOURNAL, [started])
    for rank, data_s in enumerate(waits):
        fold(state, Source("rank", 1, rank), [events.Phase(rank=rank, name="train", t=NOW - 50)])
        fold(state, Source("rank", 1, rank), steps(rank, data_s, count))
    return view(state, NOW, Liveness(supervisor=True, agent=True))


def test_ranks_that_wait_for_data_are_said_with_what_it_costs() -> None:
    assert alerts(run_of(0.1, 0.2), NOW) == []
    (alert,) = alerts(run_of(0.1, 0.8), NOW)
    assert alert.id == "data-starved"
    assert alert.text == (
        "rank 1 waits for about 30 % of each step or more for its text; nothing is computed "
        "meanwhile"
    )
    assert alert.next == ("use --sharding indexed, more workers (data.workers), or a faster disk")
    (alert,) = alerts(run_of(0.8, 1.3, 0.1), NOW)
    assert alert.text.startswith("2 of 3 ranks wait for their text, rank 1 for about 50 %")
    assert len(alert.evidence) == 2


def test_a_share_that_hovers_at_a_level_changes_nothing() -> None:
    levels: dict[int, float] = {}
    said = []
    for share in (0.29, 0.31, 0.26, 0.3, 0.51, 0.46, 0.44, 0.26, 0.24, 0.29):
        levels = waiting_levels({1: share}, levels)
        said.append(levels.get(1))
    assert said == [None, 0.3, 0.3, 0.3, 0.5, 0.5, 0.3, 0.3, None, None]


def test_a_few_first_steps_say_nothing_about_waiting_for_data() -> None:
    assert alerts(run_of(1.9, count=3), NOW) == []


def test_the_remedy_for_waiting_depends_on_how_the_text_is_read() -> None:
    def remedy(workers: int) -> str:
        view = run_of(1.5)
        view.plan, view.workers = {"data": {"mode": "indexed"}}, workers
        return alerts(view, NOW)[0].next

    assert remedy(2) == "put data.cache on a faster disk, or use more workers (data.workers)"
    assert remedy(0) == "read in processes of its own: --set data.workers=2"
