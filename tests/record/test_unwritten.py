"""What a rank cannot write into its record is told beside it, and changes what the run is called."""

from __future__ import annotations

import errno
import os
import random
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatch.attach.recording import Recording
from bitwatch.listing import row
from bitwatch.record import events, rundir
from bitwatch.record.aside import PLACE_BYTES, Aside, AsideReader
from bitwatch.record.follow import Follower, Liveness
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.state import JOURNAL, RunState, Source, fold
from bitwatch.record.view import View, view
from bitwatch.supervise.watch import Watch, alerts
from trainer.telemetry import Telemetry

FULL = os.strerror(errno.EDQUOT)
LIVE = Liveness(supervisor=True, agent=True, ranks=frozenset({0, 1}))


def told(rank: int, step: int, t: float) -> events.Step:
    return events.Step(rank=rank, step=step, step_s=0.1, t=t)


def a_run() -> dict[Source, list[events.Record]]:
    """Two ranks that trained until 110, and could write nothing from 110 on."""
    run: dict[Source, list[events.Record]] = {
        JOURNAL: [events.AttemptStarted(ranks=2, steps=9000, stall_s=30.0, t=90.0)]
    }
    for rank in (0, 1):
        run[Source("rank", 1, rank)] = [
            events.ProcessStart(pid=50 + rank, starttime=7, role="rank", rank=rank, t=91.0),
            events.Phase(rank=rank, name="train", t=99.0),
            *(told(rank, step, 99.0 + step / 10) for step in range(1, 111)),
        ]
        run[Source("unwritten", 1, rank)] = [
            events.Unwritten(rank=rank, error=FULL, lost=2547, newest=365.0, t=110.0),
            events.Checkpoint(step=2500, path="/c", t=350.0),
            told(rank, 2657, 365.0),
        ]
    return run


def folded(run: dict[Source, list[events.Record]]) -> RunState:
    state = RunState()
    for source, records in run.items():
        fold(state, source, records)  # type: ignore[arg-type]
    return state


def test_ranks_that_train_on_without_a_record_are_not_called_stalled() -> None:
    seen = view(folded(a_run()), 366.0, LIVE)
    assert (seen.state, seen.step) == ("running", 2657)
    assert [saved.step for saved in seen.checkpoints] == [2500]
    for alert in (*seen.alerts, *alerts(seen, 366.0)):  # also where the journal has no room for it
        assert alert.id == "telemetry-stale"
        assert alert.text == f"no rank can write its records ({FULL}); the training goes on"
        assert "rank 1: 2,547 not written since" in alert.evidence[1]
        assert "step 2,657" in alert.evidence[1]
    assert len(seen.alerts) == len(alerts(seen, 366.0)) == 1


def test_ranks_that_say_no_more_beside_their_records_either_are_stalled() -> None:
    seen = view(folded(a_run()), 400.0, LIVE)
    assert seen.state == "stalled"
    assert {alert.id for alert in alerts(seen, 400.0)} == {"stalled", "telemetry-stale"}
    assert seen.alerts[0].text == f"no rank can write its records ({FULL})"


def test_the_last_word_beside_a_record_counts() -> None:
    run = a_run()
    for rank in (0, 1):
        word = events.RankEnded(rank=rank, state="stopped", step=4649, t=370.0)
        run[Source("unwritten", 1, rank)].append(word)
    seen = view(folded(run), 371.0, Liveness())
    assert (seen.state, seen.step) == ("stopped", 4649)


def test_one_rank_alone_is_named() -> None:
    run = a_run()
    del run[Source("unwritten", 1, 0)]
    fold_more = [told(0, step, 99.0 + step / 10) for step in range(111, 2660)]
    run[Source("rank", 1, 0)] += fold_more
    seen = view(folded(run), 366.0, LIVE)
    assert [alert.text for alert in alerts(seen, 366.0)] == [
        f"rank 1 cannot write its records ({FULL}); the training goes on"
    ]
    limited = events.Unwritten(rank=1, error=os.strerror(errno.EFBIG), lost=1, newest=365.0)
    run[Source("unwritten", 1, 1)] = [limited]
    (alert,) = alerts(view(folded(run), 366.0, LIVE), 366.0)
    assert "ulimit -f" in alert.next


def test_the_alert_clears_when_the_record_grows_again(tmp_path: Path) -> None:
    state, watch = folded(a_run()), Watch(JournalWriter(tmp_path / "journal.jsonl"))
    for _ in range(3):
        watch.look(view(state, 366.0, LIVE), 366.0)
    fold(state, Source("unwritten", 1, 0), [events.Unwritten()])
    fold(state, Source("unwritten", 1, 1), [events.Unwritten(rank=1)])
    for rank in (0, 1):
        fold(state, Source("rank", 1, rank), [told(rank, 2658, 366.0)])
    seen = view(state, 366.5, LIVE)
    watch.look(seen, 366.5)
    assert (seen.step, seen.alerts) == (2658, [])
    said = [record for record in read_all(tmp_path / "journal.jsonl")[0]]
    assert [(r.id, r.cleared) for r in said if isinstance(r, events.Alert)] == [
        ("telemetry-stale", False),
        ("telemetry-stale", True),
    ]


@given(st.randoms(use_true_random=False))
def test_the_place_may_be_read_before_the_record_or_after_it(shuffler: random.Random) -> None:
    run = a_run()
    expected = view(folded(run), 366.0, LIVE)
    sources = sorted(run)
    shuffler.shuffle(sources)
    assert view(folded({source: run[source] for source in sources}), 366.0, LIVE) == expected


# -- the files ----------------------------------------------------------------------------


def test_a_place_keeps_its_size_and_the_newest_of_each_kind(tmp_path: Path) -> None:
    place = Aside(tmp_path / "rank0.unwritten", 0)
    reader = AsideReader(place.path)
    assert reader.read() == []
    for step in range(500):
        place.hold(told(0, step, 100.0 + step), FULL)
    place.hold(events.RankEnded(state="failed", cause="\x00 why? " * 2000, t=700.0), FULL)
    word, ended, step_ = reader.read()
    assert isinstance(word, events.Unwritten)
    assert (word.lost, word.error, word.t, word.newest) == (501, FULL, 100.0, 700.0)
    assert isinstance(ended, events.RankEnded) and ended.cause.startswith("\x00 why? ")
    assert isinstance(step_, events.Step) and step_.step == 499
    assert reader.read() == []
    place.clear()
    (word,) = reader.read()
    assert isinstance(word, events.Unwritten) and word.lost == 0
    assert place.path.stat().st_size == PLACE_BYTES
    assert Aside(tmp_path / "no" / "folder", 0).holds is False


def test_what_is_no_file_in_its_place_is_nothing_and_costs_nothing(tmp_path: Path) -> None:
    folder, pipe = tmp_path / "rank0.unwritten", tmp_path / "rank1.unwritten"
    folder.mkdir()
    os.mkfifo(pipe)
    writing = os.open(pipe, os.O_RDWR)  # and has nothing to say yet
    readers = [AsideReader(folder), AsideReader(pipe)]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        assert [reader.read() for reader in readers] == [[], []]
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(writing)


@pytest.fixture
def at_the_limit() -> Iterator[None]:
    """No file grows beyond a place, as if it were the last block of a quota."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (PLACE_BYTES, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def seen_now(run: rundir.RunDir) -> View:
    follower = Follower(run)
    follower.poll()
    return view(follower.state, follower.state.told()[1, 0].updated, LIVE)


def test_a_rank_at_a_limit_says_so_and_tells_all_it_can_when_there_is_room_again(
    tmp_path: Path, at_the_limit: None, capfd: pytest.CaptureFixture[str]
) -> None:
    run = rundir.create(tmp_path, "test")
    run.attempt(1).mkdir(parents=True)
    rank = Telemetry(run, 1, 0)
    for step in range(200):
        rank.write(told(0, step, 100.0 + step))
    rank.write(events.Checkpoint(step=199, path="/c", t=300.0))
    seen = seen_now(run)
    assert (seen.step, seen.state) == (199, "running")
    assert seen.unwritten[0].error == os.strerror(errno.EFBIG)
    assert "of rank 0 could not be written (File too large)" in row(run).note
    assert capfd.readouterr().err.count("what cannot be written from now on is lost") == 1
    lost = seen.unwritten[0].lost
    story = Recording(run)  # a replay shows it as it was seen then
    assert story.fold_to(280.0)
    assert story.state.told()[1, 0].step.step < 199 and story.state.unwritten_of(1)
    assert story.fold_to(story.end)
    assert view(story.state, story.end, LIVE).step == 199

    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    rank.write(told(0, 200, 301.0))
    seen = seen_now(run)
    assert (seen.step, seen.unwritten, seen.checkpoints[-1].step) == (200, {}, 199)
    assert seen.notes[-1].text.startswith(f"rank 0 could not write {lost - 2} records since ")
    (saved,) = [r for r in read_all(run.rank(1, 0))[0] if isinstance(r, events.Checkpoint)]
    assert saved.step == 199

    resource.setrlimit(resource.RLIMIT_FSIZE, (PLACE_BYTES, hard))
    rank.ended("stopped")
    assert seen_now(run).last_words[0].state == "stopped"
