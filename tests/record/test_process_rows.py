"""The process rows of a view: a sample joined with what the journal and the clock say."""

from __future__ import annotations

import itertools

from bitwatch.record import events
from bitwatch.record.follow import Liveness
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, Source, fold
from bitwatch.record.view import view

START = events.ProcessStart(
    pid=7, starttime=9000, ppid=1, role="rank", rank=0, command="python train.py", t=1000.3, m=90.3
)
SAMPLE = events.Processes(
    processes=[
        events.Process(pid=7, starttime=9000, ppid=1, role="rank", state="R", rank=0),
        events.Process(pid=8, starttime=9500, ppid=7, role="worker", state="S"),
    ],
    t=1010.0,
    m=100.0,
)
STEP = events.Step(rank=1, step=5, t=1005.0)


def test_rows_know_their_command_and_their_start_in_any_order_of_files() -> None:
    parts = [(JOURNAL, START), (SAMPLES, SAMPLE), (Source("rank", 1, 1), STEP)]
    seen = []
    for order in itertools.permutations(parts):
        state = RunState()
        for source, record in order:
            fold(state, source, [record])
        seen.append(view(state, 1011.0, Liveness(supervisor=True)))
    assert all(found == seen[0] for found in seen)
    rank, worker = seen[0].processes
    assert (rank.command, rank.started) == ("python train.py", 1000.0)
    assert (worker.command, worker.started) == ("", 1005.0)
    assert worker.key == (8, 9500)
    assert seen[0].sampled == 1010.0
    assert seen[0].rank_steps == {1: STEP}


def test_the_same_pid_with_another_start_is_another_process() -> None:
    state = RunState()
    fold(state, JOURNAL, [START])
    other = events.Process(pid=7, starttime=9900, ppid=1, role="other", state="S")
    fold(state, SAMPLES, [events.Processes(processes=[other], t=1010.0, m=100.0)])
    (row,) = view(state, 1011.0, Liveness(supervisor=True)).processes
    assert row.command == "" and row.started == 1009.0


def test_a_machine_that_slept_makes_no_process_younger_than_its_record() -> None:
    """The monotonic clock stands still meanwhile, and the start in ticks does not."""
    state = RunState()
    fold(state, JOURNAL, [START])
    fold(state, SAMPLES, [events.Processes(processes=SAMPLE.processes, t=9000.0, m=80.0)])
    rank, worker = view(state, 9001.0, Liveness(supervisor=True)).processes
    assert rank.started == 1000.3
    assert worker.started == 9000.0
