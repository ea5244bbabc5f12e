"""What every reader does, judged from its account, the sample of processes and the time."""

from __future__ import annotations

from typing import Any

import pytest

from bitwatch.record import events, readers
from bitwatch.record.view import ProcessRow, View

NOW = 1000.0


def reader(rank: int = 0, worker: int = 0, **fields: Any) -> events.Reader:
    told = {
        "state": "reading",
        "rows": 1,
        "t": NOW - 1,
        "moved": NOW - 1,
        "shards": [rank],
    } | fields
    return events.Reader(rank=rank, worker=worker, pid=100 + 10 * rank + worker, **told)


def sampled(*found: events.Reader, state: str = "S") -> dict[str, Any]:
    rows = [
        ProcessRow(pid=one.pid, starttime=0, ppid=1, role="worker", state=state) for one in found
    ]
    rows.append(ProcessRow(pid=1, starttime=0, ppid=0, role="supervisor", state="S"))
    return {"processes": rows, "sampled": NOW}


def state_of(one: events.Reader, letter: str = "S", now: float = NOW, **fields: Any) -> str:
    found = {"attempt": 1, "ranks": 1, "workers": 1, "state": "running"}
    view = View(**(found | sampled(one, state=letter) | fields), readers=[one])
    return readers.judged(view, now)[0, 0].state


def test_every_reader_that_should_be_is_there_and_no_other() -> None:
    view = View(attempt=1, ranks=2, workers=2, readers=[reader(0, 1), reader(loader="validation")])
    found = readers.judged(view, NOW)
    assert {key: one.state for key, one in found.items()} == {
        (0, 0): "starting",
        (0, 1): "reading",
        (1, 0): "starting",
        (1, 1): "starting",
    }
    assert found[0, 1].since == NOW - 1
    assert found[1, 1].reader is None
    assert readers.judged(View(), NOW) == {}
    alone = readers.judged(View(attempt=1, ranks=2, workers=0), NOW)
    assert set(alone) == {(0, 0), (1, 0)}


@pytest.mark.parametrize("state", ["done", "idle", "failed", "waiting", "starting"])
def test_what_an_account_says_is_what_a_reader_does(state: str) -> None:
    assert state_of(reader(state=state, moved=NOW - 500)) == state


def test_a_reader_that_is_long_in_one_read_is_stuck_and_one_that_waits_is_not() -> None:
    still = reader(moved=NOW - readers.STUCK_S)
    assert state_of(still) == "stuck"
    assert state_of(still, now=NOW - 1) == "reading"
    assert state_of(reader(moved=0.0)) == "reading"  # an account of an older version


def test_where_reads_take_long_only_one_that_takes_longer_is_stuck() -> None:
    slow = reader(moved=NOW - 15, longest_read_s=9.0)
    assert state_of(slow) == "reading"
    assert state_of(slow, now=NOW + 3) == "stuck"
    fast = reader(moved=NOW - readers.STUCK_S, rows=0, longest_read_s=0.0)
    assert state_of(fast) == "stuck"


def test_a_worker_that_an_epochs_end_took_along_is_not_dead() -> None:
    lost = reader(t=NOW - 8, moved=NOW - 8)
    ended = {0: events.Epoch(epoch=0, t=NOW - 5)}
    assert state_of(lost, **sampled(), rank_epochs=ended) == "starting"
    lost.t = NOW - 4  # it has told of itself while the rank was about to end it
    assert state_of(lost, **sampled(), rank_epochs=ended) == "starting"
    assert state_of(lost, **sampled(), rank_epochs=ended, now=NOW + 500) == "starting"
    steps = {0: events.Step(step=9, t=NOW - 6), 1: events.Step(step=10, t=NOW)}
    assert state_of(lost, **sampled(), rank_epochs=ended, rank_steps=steps) == "starting"
    steps[0].t = NOW - 4.5  # the next epoch's workers are at work, and this is one of them
    assert state_of(lost, **sampled(), rank_epochs=ended, rank_steps=steps) == "dead"
    ended[0].t = lost.t - readers.SEAM_S - 1
    assert state_of(lost, **sampled(), rank_epochs=ended) == "dead"


def test_a_process_that_a_signal_has_stopped_is_stuck_whatever_it_did() -> None:
    assert state_of(reader(state="waiting"), letter="T") == "stuck"
    assert state_of(reader(state="done"), letter="T") == "done"


def test_a_reader_without_a_process_is_dead_once_a_sample_could_have_seen_it() -> None:
    def gone(t: float, state: str = "reading") -> str:
        return state_of(reader(t=t, moved=t, state=state), **sampled())

    assert gone(NOW - 3) == gone(NOW - 3, "waiting") == "dead"
    assert gone(NOW - 1) == "reading"  # it may only just have begun
    assert gone(NOW - 3, "done") == "done"
    assert state_of(reader(t=NOW - 1), letter="Z") == "dead"
    assert state_of(reader(t=NOW - 3), processes=[], sampled=None) == "reading"  # nobody looked


def test_a_reader_that_tries_again_is_stuck_only_when_no_pause_is_so_long() -> None:
    assert state_of(reader(error="away", moved=NOW - 60)) == "retrying"
    assert state_of(reader(error="away", moved=NOW - readers.RETRYING_S)) == "stuck"


def test_after_the_end_nobody_reads() -> None:
    view = View(attempt=1, ranks=1, workers=3, state="failed")
    view.readers = [reader(0, 0, state="waiting"), reader(0, 1, state="done")]
    found = readers.judged(view, NOW + 1000)
    assert [one.state for one in found.values()] == ["stopped", "done", readers.NEVER]


def test_what_a_reader_was_doing_is_said_in_words() -> None:
    assert readers.doing(reader(shard=7, shards=[3, 7])) == "reading shard 7"
    assert readers.doing(reader(state="waiting", shards=[3, 7])) == "with shards 3, 7 open"
    assert readers.doing(reader(shards=list(range(6)))) == "reading shards 0, 1, 2, 3 and 2 more"
    assert readers.doing(reader(shards=["index"])) == "reading the index"
    assert readers.doing(reader(state="idle", shards=[])) == "given nothing to read"
    assert readers.doing(reader(shards=[])) == ""
