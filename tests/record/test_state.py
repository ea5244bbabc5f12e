"""The fold: any order of files, any cut, any foreign line; and what the view says of it."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bitwatch import headless, lines
from bitwatch.record import codec, events, rundir, stops
from bitwatch.record.follow import Follower, Liveness
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, Source, fold
from bitwatch.record.view import View, view
from bitwatch.supervise.stopping import Stop

NOW = 1000.0
LIVE = Liveness(supervisor=True, agent=True, ranks=frozenset({0, 1}))
DEAD = Liveness()


def started(attempt: int = 1, t: float = 900.0) -> events.AttemptStarted:
    return events.AttemptStarted(attempt=attempt, steps=100, ranks=2, log_every=10, t=t)


def rank_records(rank: int, upto: int = 50) -> list[codec.Any_]:
    return [
        events.ProcessStart(pid=50 + rank, starttime=7, role="rank", rank=rank, t=901.0),
        events.ModelBuilt(built=10, held=[5, 5], ranks=2, t=902.0),
        events.Phase(rank=rank, name="train", t=903.0),
        *(
            events.Step(rank=rank, step=s, loss=1 / s, step_s=0.1, t=900.0 + s)
            for s in range(10, upto + 1, 10)
        ),
    ]


def a_run() -> dict[Source, list[codec.Any_]]:
    reader = events.Reader(rank=1, worker=1, state="idle", t=904.0)
    return {
        JOURNAL: [
            events.RunStarted(run="r", name="demo", t=899.0),
            started(),
            events.Alert(id="idle-reader", text="idle", attempt=1, t=905.0),
        ],
        Source("rank", 1, 0): rank_records(0),
        Source("rank", 1, 1): rank_records(1, 40),
        Source("reader", 1, name="1-train-1-0.jsonl"): [reader],
        SAMPLES: [events.Processes(processes=[], t=950.0)],
    }


def folded(run: dict[Source, list[codec.Any_]]) -> RunState:
    state = RunState()
    for source, records in run.items():
        fold(state, source, records)
    return state


@given(st.randoms(use_true_random=False))
def test_the_order_in_which_files_arrive_does_not_matter(shuffler: random.Random) -> None:
    run = a_run()
    expected = view(folded(run), NOW, LIVE)
    state = RunState()
    left = {source: list(records) for source, records in run.items()}
    while left:
        source = shuffler.choice(sorted(left))
        count = shuffler.randint(1, len(left[source]))
        fold(state, source, left[source][:count])
        left[source] = left[source][count:]
        if not left[source]:
            del left[source]
    assert view(state, NOW, LIVE) == expected


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> rundir.RunDir:
    run = rundir.create(tmp_path_factory.mktemp("recorded"), "demo")
    rundir.new_attempt(run)
    places = {JOURNAL: run.journal, SAMPLES: run.samples / "2026-01-01T00.jsonl"}
    for source, records in a_run().items():
        path = places.get(source)
        if path is None and source.kind == "rank":
            path = run.rank(1, source.rank)
        path = path or run.attempt(1) / "readers" / source.name
        path.write_bytes(b"".join(map(codec.encode, records)))
    return run


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    cut=st.integers(0, 5000),
    foreign=st.binary(max_size=60),
    at=st.integers(0, 5000),
    which=st.sampled_from(["journal", "rank0", "rank1", "reader", "samples"]),
)
def test_a_record_cut_anywhere_with_anything_in_it_folds(
    recorded: rundir.RunDir, cut: int, foreign: bytes, at: int, which: str
) -> None:
    path = {
        "journal": recorded.journal,
        "rank0": recorded.rank(1, 0),
        "rank1": recorded.rank(1, 1),
        "reader": recorded.reader(1, 1, "train", 1, "0"),
        "samples": recorded.samples / "2026-01-01T00.jsonl",
    }[which]
    before = path.read_bytes()
    cut, at = cut % (len(before) + 1), at % (len(before) + 1)
    line_end = before.find(b"\n", at) + 1
    damaged = before[:line_end] + foreign + b'\n{"kind":"from-the-future"}\n' + before[line_end:]
    try:
        path.write_bytes(damaged[:cut])
        follower = Follower(recorded)
        follower.poll()
        view(follower.state, NOW, LIVE)
        path.write_bytes(damaged)  # the rest arrives while we watch
        follower.poll()
        seen = view(follower.state, NOW, LIVE)
    finally:
        path.write_bytes(before)
    assert seen.name == "demo"
    assert seen.step == 50
    assert follower.skipped >= 1


def test_what_a_living_run_shows() -> None:
    seen = view(folded(a_run()), 951.0, LIVE)
    assert (seen.state, seen.step, seen.steps) == ("running", 50, 100)
    assert seen.supervisor == "alive"
    assert seen.built == 10
    assert seen.held == [5, 5]
    assert [alert.id for alert in seen.alerts] == ["idle-reader"]
    assert [reader.state for reader in seen.readers] == ["idle"]
    assert seen.eta_s == pytest.approx(50 * 0.1 - 1)


def test_a_nan_loss_is_a_nan_in_the_view() -> None:
    run = a_run()
    line = codec.encode(events.Step(step=60, loss=math.nan, t=960.0))
    run[Source("rank", 1, 0)].append(codec.decode(line))  # type: ignore[arg-type]
    seen = view(folded(run), NOW, LIVE)
    assert seen.last
    assert math.isnan(seen.last.loss)  # type: ignore[arg-type]
    assert seen.loss[0][1].first_nonfinite == 60


@pytest.mark.parametrize(
    ("record", "newest"),
    [
        (events.Step(step=-5, loss=1.0, t=960.0), 50),
        (events.Step(step=20, loss=1.0, t=920.0), 50),  # told once more
        (events.Step(step=60, loss=1.0, t=940.0), 60),  # by a clock that was set back
        (events.Step(step=3, loss=1.0, t=960.0), 3),  # a bar of progress in its next epoch
    ],
)
def test_a_step_that_cannot_be_of_the_attempt_is_not_its_newest(
    record: events.Step, newest: int
) -> None:
    run = a_run()
    run[Source("rank", 1, 0)].append(record)
    state = folded(run)
    rank = state.ranks[1, 0]
    assert rank.step and (rank.step.step, rank.recent[-1].step) == (newest, newest)
    assert rank.loss.starts[0] == min(newest, 10)
    assert view(state, NOW, LIVE).rank_steps[0].step == newest
    begin = RunState()
    fold(begin, Source("rank", 1, 0), [events.Step(step=-5, t=1.0)])
    assert (begin.ranks[1, 0].first_step, begin.ranks[1, 0].updated) == (None, 0.0)


@pytest.mark.parametrize(
    ("more", "liveness", "now", "state", "supervisor"),
    [
        ([], LIVE, 955.0, "running", "alive"),
        ([], LIVE, 2000.0, "stalled", "alive"),
        ([], Liveness(ranks=frozenset({1})), 955.0, "running", "gone"),
        ([], DEAD, 955.0, "lost", "ended"),
        ([], Liveness(elsewhere=rundir.REBOOTED), 955.0, "lost", "ended"),
        ([events.Action(name="stop", by="me", t=950.0)], LIVE, 955.0, "stopping", "alive"),
        ([events.AttemptEnded(attempt=1, state="failed", t=951.0)], DEAD, 955.0, "failed", "ended"),
        ([started(2, 960.0)], LIVE, 965.0, "starting", "alive"),
        ([started(2, 960.0)], LIVE, 9650.0, "stalled", "alive"),
    ],
)
def test_the_state_comes_from_record_and_liveness(
    more: list[codec.Any_], liveness: Liveness, now: float, state: str, supervisor: str
) -> None:
    run = a_run()
    run[JOURNAL] += more
    seen = view(folded(run), now, liveness)
    assert (seen.state, seen.supervisor) == (state, supervisor)


@pytest.mark.parametrize(
    ("words", "state", "cause"),
    [
        ([("done", "", 10.0), ("done", "", 11.0)], "done", ""),
        ([("stopped", "", 10.0), ("stopped", "", 11.0)], "stopped", ""),
        (
            [("stopped", "", 10.0), ("stopped", "SIGTERM", 11.0)],
            "stopped",
            "stopped by SIGTERM to rank 1, with a checkpoint",
        ),
        (
            [("stopped", "SIGTERM", 10.0), ("stopped", "SIGTERM", 11.0)],
            "stopped",
            "stopped by SIGTERM to all 2 ranks, with a checkpoint",
        ),
        ([("failed", "echo", 12.0), ("failed", "first", 11.0)], "failed", "first"),
        ([("done", "", 10.0)], "lost", "everything of it died at once"),
    ],
)
def test_without_a_supervisor_the_ranks_own_words_say_how_it_ended(
    words: list[tuple[events.EndState, str, float]], state: str, cause: str
) -> None:
    run = a_run()
    for rank, (word, why, t) in enumerate(words):
        run[Source("rank", 1, rank)].append(events.RankEnded(rank=rank, state=word, cause=why, t=t))
    seen = view(folded(run), NOW, DEAD)
    assert seen.state == state
    assert seen.cause.startswith(cause)
    assert seen.supervisor == "ended"


def test_a_stop_for_a_signal_to_a_rank_has_lost_nothing_and_one_by_signals_has() -> None:
    words = [events.RankEnded(rank=rank, state="stopped", cause="SIGTERM") for rank in (0, 1)]
    for whole in ("", stops.cause(words)):
        assert stops.lost_nothing("stopped", whole) and not stops.lost_nothing("failed", whole)
        assert headless.exit_code(View(state="stopped", cause=whole)) == 0
    by_signals = Stop(by="me", now=True).forced()
    assert not stops.lost_nothing("stopped", by_signals) and stops.lost_nothing("done", "")
    assert headless.exit_code(View(state="stopped", cause=by_signals)) == 1


@pytest.mark.parametrize("closed", [951.0, 5_000.0, None])
def test_what_is_written_long_after_the_end_makes_no_attempt_longer(closed: float | None) -> None:
    run = a_run()
    for rank in (0, 1):
        word = events.RankEnded(rank=rank, state="stopped", t=951.0)
        run[Source("rank", 1, rank)].append(word)
    if closed:
        run[JOURNAL].append(events.AttemptEnded(attempt=1, state="stopped", t=closed))
    run[JOURNAL].append(events.Action(name="clean", t=9_000.0))
    seen = view(folded(run), 9_001.0, DEAD)
    assert (seen.state, seen.updated, seen.ended) == ("stopped", 9_000.0, 951.0)
    assert "stopped  step 50 of 100 in 51 s" in list(lines.summary(seen))
    assert view(folded(a_run()), NOW, LIVE).ended is None


def test_an_alert_clears_and_stays_in_the_history() -> None:
    run = a_run()
    run[JOURNAL].append(events.Alert(id="idle-reader", attempt=1, cleared=True, t=956.0))
    state = folded(run)
    assert view(state, NOW, LIVE).alerts == []
    assert [alert.cleared for alert in state.journal.alert_history] == [False, True]


def test_a_resumed_run_counts_a_repeated_step_once() -> None:
    run = a_run()
    for attempt, bits in ((1, 3.0), (2, 2.0)):
        source = Source("rank", attempt, 0)
        evaluation = events.Evaluation(step=20, bits_per_byte=bits, t=950.0 + attempt)
        run.setdefault(source, []).append(evaluation)
    run[JOURNAL].append(started(2, 951.0))
    seen = view(folded(run), NOW, LIVE)
    assert [e.bits_per_byte for e in seen.evaluations] == [2.0]
    assert [attempt for attempt, _ in seen.loss] == [1, 2]


def test_an_attempt_without_a_step_stands_where_it_can_go_on_from() -> None:
    run = a_run()
    run[JOURNAL].append(events.AttemptEnded(attempt=1, state="failed", step=50, t=955.0))
    run[JOURNAL].append(started(2, 960.0))
    assert view(folded(run), NOW, LIVE).step == 0  # nothing was saved
    run[Source("rank", 1, 0)].append(events.Checkpoint(step=40, t=940.0))
    assert view(folded(run), NOW, LIVE).step == 40
    second = Source("rank", 2, 0)
    run[second] = [events.Phase(name="start", t=961.0)]
    assert view(folded(run), NOW, LIVE).step == 40
    run[second].append(events.Note(text="that is damaged: starting anew", step=0, t=962.0))
    assert view(folded(run), NOW, LIVE).step == 0
    run[second].append(events.Step(step=1, t=970.0))
    assert view(folded(run), NOW, LIVE).step == 1


def test_the_view_can_be_written_as_json() -> None:
    assert msgspec.json.encode(view(folded(a_run()), NOW, LIVE))
