"""A run that stands still: who is named for it, what is said to be done, and when it is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bitwatch.record import events
from bitwatch.record.follow import Liveness
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.recent import Own, behind, own_time
from bitwatch.record.state import JOURNAL, RunState, Source, fold
from bitwatch.record.view import ProcessRow, View, view
from bitwatch.record.waits import Wait
from bitwatch.sense.stacks import Look, Target
from bitwatch.supervise import blame
from bitwatch.supervise.stalls import waits as found_waits
from bitwatch.supervise.watch import Watch, alerts
from bitwatch.supervise.watch_stalls import stalled
from bitwatch.text import clock

NOW = 1000.0
QUEUE = "DataLoader queue.get"
LIVE = Liveness(supervisor=True, agent=True, ranks=frozenset({0, 1}))


def waits(*places: tuple[str, str]) -> list[Wait]:
    return [Wait(rank, kind, where) for rank, (kind, where) in enumerate(places)]


ALL_REDUCE = ("collective", "all_reduce")


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        (
            [ALL_REDUCE, ALL_REDUCE, ("data", QUEUE), ALL_REDUCE],
            f"rank 2 waits in {QUEUE} (worker 1 has been in one read of shard 3 since "
            f"{clock(906)}); ranks 0, 1, 3 wait for it in all_reduce",
        ),
        (
            [ALL_REDUCE, ("data", QUEUE), ("collective", "barrier"), ("stopped", "")],
            f"rank 1 waits in {QUEUE}; rank 3 is stopped by a signal; rank 0 waits for them in "
            "all_reduce; rank 2 waits for them in barrier",
        ),
        (
            [("ended", ""), *[ALL_REDUCE] * 5],
            "rank 0 has ended; ranks 1 to 5 wait for it in all_reduce",
        ),
        (
            [("ended", "not begun"), ALL_REDUCE],
            "rank 0 has not begun; rank 1 waits for it in all_reduce",
        ),
        ([("stopped", "")] * 2, "ranks 0, 1 are stopped by a signal"),
        (
            [("kernel", "nfs_wait"), ALL_REDUCE],
            "rank 0 waits in the kernel (state D, nfs_wait); rank 1 waits for it in all_reduce",
        ),
        (
            [ALL_REDUCE, ("busy", "loop (a.py:3)")],
            "rank 1 is still at work at loop (a.py:3); rank 0 waits for it in all_reduce",
        ),
        (
            [ALL_REDUCE, ("compile", "torch.compile"), ("busy", "")],
            "rank 1 compiles (torch.compile); rank 0 waits for it in all_reduce",
        ),
        (
            [ALL_REDUCE, ("collective", "barrier"), ALL_REDUCE],
            "ranks 0, 2 wait in all_reduce; rank 1 waits in barrier: they wait for each other in "
            "different places, and none of them can go on",
        ),
        (
            [ALL_REDUCE] * 2,
            "ranks 0, 1 wait in all_reduce: all wait for each other, and none of them is late",
        ),
        (
            [("busy", "loop (a.py:3)")] * 2,
            "all ranks are at work at loop (a.py:3): a step that takes long, or never ends",
        ),
        ([], ""),
    ],
)
def test_who_is_waited_for_is_named(places: list[tuple[str, str]], sentence: str) -> None:
    reader = events.Reader(rank=2, worker=1, state="reading", shard=3, moved=906.0, t=906.0)
    seen = View(attempt=1, ranks=len(places), workers=2, readers=[reader])
    found = waits(*places)
    assert blame.sentence(seen, found, NOW) == sentence
    assert all(wait.kind != "collective" for wait in blame.culprits(found))


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (
            [ALL_REDUCE, ("collective", "barrier")],
            "rank 0 waits in all_reduce; rank 1 waits in barrier",
        ),
        ([ALL_REDUCE] * 2, "ranks 0, 1 wait in all_reduce"),
        ([("busy", "loop (a.py:3)")] * 2, "all ranks are at work at loop (a.py:3)"),
    ],
)
def test_a_run_that_takes_its_steps_is_not_called_stuck(
    places: list[tuple[str, str]], said: str
) -> None:
    seen = View(attempt=1, ranks=2, state="running")
    told = blame.sentence(seen, waits(*places), NOW)
    assert told == f"{said}; this was one instant of a run that is not known to stand still"


def test_a_worker_that_was_stopped_is_named_before_one_that_reads() -> None:
    seen = View(attempt=1, ranks=1, workers=2, state="running")
    seen.readers = [
        events.Reader(worker=w, pid=7 + w, starttime=7, state="reading", moved=1.0, t=999.0)
        for w in (0, 1)
    ]
    seen.processes = [
        ProcessRow(pid=7 + w, starttime=7, ppid=1, role="worker", state="TS"[w]) for w in (0, 1)
    ]
    found = waits(("data", QUEUE))
    assert blame.sentence(seen, found, NOW).endswith("(worker 0 is stopped by a signal)")
    seen.state, seen.stuck = "stalled", events.Stuck(waits=found)
    (alert,) = stalled(seen, NOW)
    assert alert.next == "kill -CONT 7 lets worker 0 of rank 0 go on"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (("stopped", ""), "kill -CONT 11 "),
        (("ended", ""), "bitwatch logs RUN --rank 1 "),
        (("kernel", ""), "the disk"),
        (("data", QUEUE), "(key 2)"),
        (("checkpoint", ""), "checkpoint.folder"),
        (("collective", "barrier"), "bitwatch stop RUN"),
    ],
)
def test_what_to_do_depends_on_where_it_waits(place: tuple[str, str], words: str) -> None:
    seen = View(state="stalled", step=7, ranks=2, phase="train", last=events.Step(step=7, t=5.0))
    seen.processes = [
        ProcessRow(pid=10 + rank, starttime=1, ppid=1, role="rank", rank=rank, state="S")
        for rank in (0, 1)
    ]
    seen.rank_steps = {0: events.Step(step=7), 1: events.Step(rank=1, step=6)}
    found = waits(ALL_REDUCE, place)
    found[1].evidence = ["get (queue.py:3)", "main (train.py:9)"]
    seen.stuck = events.Stuck(text="rank 1 waits", waits=found)
    (alert,) = stalled(seen, NOW)
    assert words in alert.next
    assert alert.text == f"no step since {clock(5.0)}: rank 1 waits"
    where = f", {place[1]}" if place[1] else ""
    frames = "get (queue.py:3) < main (train.py:9)"
    assert alert.evidence[2] == f"rank 1: {place[0]}{where}; last step 6; {frames}"


# -- when a run is stalled ----------------------------------------------------------------


def seen_at(now: float, *told: events.Record, stuck: events.Stuck | None = None) -> View:
    """Of a run with stall_s 30 and start_timeout_s 600 whose rank 0 has told this."""
    state = RunState()
    began = events.AttemptStarted(ranks=2, log_every=2, stall_s=30.0, start_timeout_s=600.0, t=1.0)
    fold(state, JOURNAL, [began, *([stuck] if stuck else [])])  # type: ignore[list-item]
    fold(state, Source("rank", 1, 0), told)  # type: ignore[arg-type]
    return view(state, now, LIVE)


def phase(name: Any, t: float) -> events.Phase:
    return events.Phase(name=name, t=t)


STEP = events.Step(step=10, step_s=40 / 6.5, t=100.0)
SAVED = events.Checkpoint(step=10, seconds=200.0, t=100.0)
SCORED = events.Evaluation(step=10, seconds=20.0, t=100.0)
COMPILES = events.Stuck(attempt=1, waits=waits(ALL_REDUCE, ("compile", "torch.compile")), t=141.0)


@pytest.mark.parametrize(
    ("told", "lasts_s"),
    [
        ([phase("start", 100.0)], 600.0),
        ([phase("compile", 100.0)], 600.0),
        ([phase("train", 90.0), STEP], 40.0),  # a step of 1.5 times the usual, then one of 5 times
        ([STEP, phase("checkpoint", 100.0)], 600.0),
        ([STEP, SAVED, phase("checkpoint", 100.0)], 1000.0),
        ([STEP, phase("evaluate", 100.0)], 600.0),
        ([STEP, SCORED, phase("evaluate", 100.0)], 100.0),
    ],
)
def test_each_phase_has_its_own_limit(told: list[events.Record], lasts_s: float) -> None:
    assert seen_at(100.0 + lasts_s - 0.5, *told).state in ("running", "starting")
    assert seen_at(100.0 + lasts_s + 0.5, *told).state == "stalled"


def test_a_first_step_that_compiled_is_no_measure_of_the_others() -> None:
    compiled = events.Step(step=1, step_s=120.0, t=100.0)
    assert seen_at(701.0, phase("train", 90.0), compiled).state == "stalled"
    second = events.Step(step=2, step_s=2.0, t=102.0)
    assert seen_at(133.0, phase("train", 90.0), compiled, second).state == "stalled"


def test_ranks_that_merely_compile_raise_nothing(tmp_path: Path) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    beginning = [phase("compile", 100.0)]
    in_a_step = [phase("train", 90.0), STEP]
    for now in range(100, 700, 10):
        watch.look(seen_at(float(now), *beginning), float(now))
    watch.look(seen_at(141.0, *in_a_step), 141.0)  # they are asked now
    for now in range(142, 700, 10):
        watch.look(seen_at(float(now), *in_a_step, stuck=COMPILES), float(now))
    assert read_all(tmp_path / "journal.jsonl")[0] == []
    late = seen_at(701.0, *in_a_step, stuck=COMPILES)
    assert late.state == "stalled" and late.stuck is not None
    # What was found before the last movement says nothing of a new stall.
    moved = events.Step(step=12, step_s=4.0, t=142.0)
    again = seen_at(200.0, *in_a_step, moved, stuck=COMPILES)
    assert (again.state, again.stuck) == ("stalled", None)


# -- stragglers ---------------------------------------------------------------------------


def test_a_rank_that_waits_for_its_text_keeps_the_others_waiting() -> None:
    state = RunState()
    for rank, (data_s, wait_s) in enumerate([(0.0, 0.1), (0.1, 0.0)]):
        steps = [
            events.Step(rank=rank, step=n, step_s=0.14, data_s=data_s, wait_s=wait_s, t=100.0 + n)
            for n in range(1, 8)
        ]
        fold(state, Source("rank", 1, rank), steps)
    fold(state, JOURNAL, [events.AttemptStarted(ranks=2, t=1.0)])
    seen = view(state, 108.0, LIVE)
    late = behind(seen.own_times, None)
    assert late is not None and (late.rank, late.best, late.is_data) == (1, 0, True)
    (alert,) = [a for a in alerts(seen, 108.0, {}, late=late) if a.id == "straggler"]
    assert alert.text.startswith("rank 1 keeps the others waiting") and "text" in alert.text
    assert own_time(state.ranks_of(1)[0]) == seen.own_times[0]


def test_who_is_behind_stays_so_until_it_clearly_is_not() -> None:
    def owns(slow_s: float) -> dict[int, Own]:
        return {0: Own(slow_s, 0.1, 0.0), 1: Own(slow_s, slow_s, 0.0), 2: Own(slow_s, 0.11, 0.0)}

    assert behind(owns(0.149), None) is None
    late = behind(owns(0.151), None)
    assert late is not None and (late.rank, late.is_data) == (1, False)
    assert behind(owns(0.14), late) is not None
    assert behind(owns(0.125), late) is None
    assert (
        behind({0: Own(1.0, 0.001, 0.0), 1: Own(1.0, 0.1, 0.0)}, None) is None
    )  # not worth a word
    assert behind({0: Own(1.0, 1.0, 0.0)}, None) is None


def test_what_nobody_can_know_is_not_called_work() -> None:
    waits = [events.Wait(rank, "unknown", "hrtimer_nanosleep") for rank in (0, 1)]
    assert blame.sentence(View(), waits, 0.0) == (
        "what the ranks wait for cannot be known; the kernel says hrtimer_nanosleep"
    )


def test_some_ranks_are_not_called_all() -> None:
    seen = View(ranks=4, foreign=True)
    some = [events.Wait(rank, "unknown", "futex_wait") for rank in (0, 1)]
    nothing = "what ranks 0, 1 wait for cannot be known; the kernel says futex_wait"
    assert blame.sentence(seen, some, 0.0) == nothing
    one = events.Wait(2, "busy")
    assert blame.sentence(seen, [*some, one], 0.0) == (
        f"rank 2 is at work: a step that takes long, or never ends; {nothing}"
    )


def test_of_a_watched_training_only_those_have_ended_that_were_seen_to_end() -> None:
    """The others may be on another machine."""
    looks = [Look(Target(rank, 10 + rank, 1, None), "S", wchan="futex_wait") for rank in (0, 1)]
    seen = View(ranks=4, foreign=True)
    assert [wait.rank for wait in found_waits(looks, seen, NOW)] == [0, 1]
    seen.exits = [events.ProcessExit(pid=12, role="rank", rank=rank) for rank in (2, None)]
    found = found_waits(looks, seen, NOW)
    assert [(wait.rank, wait.kind) for wait in found[2:]] == [(2, "ended")]
    assert blame.sentence(seen, found, NOW) == "rank 2 has ended"
    ours = found_waits(looks, View(ranks=3), NOW)
    assert (ours[2].kind, ours[2].where) == ("ended", "not begun")
