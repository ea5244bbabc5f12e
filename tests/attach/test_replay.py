"""A finished run is played again as it happened, from its record alone."""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitwatch.attach import recording, replay
from bitwatch.attach.playing import LINGER_S, Playing, Scale
from bitwatch.attach.recording import Ends, Recording
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower, Liveness
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, Source, fold
from bitwatch.record.view import view
from tests.attach import played
from tests.attach.played import AGAIN, BEGAN, DONE, FAILED, SAMPLED, SILENCE, Clock
from tests.conftest import until


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short files are read in many pieces, and many states are kept."""
    monkeypatch.setattr(recording, "PIECE_BYTES", 4096)
    monkeypatch.setattr(recording, "KEPT_EVERY", 40)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return played.make(tmp_path / "runs")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def playing(run: RunDir, clock: Clock) -> Playing:
    return Playing(run, 60.0, clock)


def at(playing: Playing, t: float) -> recording.RunState:
    playing.go_to(t)
    playing.paused = True
    while playing.picture().place.reading is not None:
        playing.tick()
    return playing.recording.state


# ---------------------------------------------------------------------------------------
# The fold


def _records(random_: random.Random, source: Source, number: int) -> list[events.Record]:
    """Of all kinds that a file of this source holds, about one a second."""
    made: list[events.Record] = []
    for at in range(number):
        t = 1000.0 + at + random_.choice((0.0, 0.5, 3.0))
        if source == JOURNAL:
            kind = random_.randrange(4)
            alert = events.Alert(id=str(at % 3), cleared=at % 2 == 0, attempt=1, t=t, m=0.0)
            start = events.ProcessStart(pid=at % 7, starttime=at, role="rank", t=t, m=0.0)
            gone = events.ProcessExit(pid=at % 7, starttime=at - 3, role="rank", t=t, m=0.0)
            made.append((alert, start, gone, events.Minute(processes=at, t=t, m=0.0))[kind])
        elif source == SAMPLES:
            made.append(events.Processes(attempt=at, t=t, m=0.0))
        elif source.kind == "reader":
            made.append(events.Reader(rank=source.rank, samples=at, t=t, m=0.0))
        elif at % 9 == 0:
            made.append(events.Checkpoint(step=at, t=t, m=0.0))
        else:
            loss = random_.choice((0.5, 1.5, None))
            made.append(events.Step(step=at, loss=loss, grad_norm=0.25, t=t, m=0.0))
    return made


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_any_way_to_a_moment_gives_the_fold_of_all_that_was_before(seed: int) -> None:
    """However the files are disordered, within them and among each other, and wherever the
    clock has been before."""
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        run = rundir.create(Path(folder), "any")
        rundir.new_attempt(run)
        files = {
            JOURNAL: run.journal,
            SAMPLES: run.samples / "2023-11-14T22.jsonl",
            Source("rank", 1, 0): run.rank(1, 0),
            Source("rank", 1, 1): run.rank(1, 1),
            Source("reader", 1, name="0-train-0"): run.reader(1, 0, "train", 0, "1"),
        }
        order = list(files)
        random_.shuffle(order)
        written = {}
        for source in order:
            written[source] = _records(random_, source, random_.randrange(1, 300))
            for _ in range(10):  # some stand a few places before one that happened earlier
                here = random_.randrange(len(written[source]))
                record = written[source].pop(here)
                written[source].insert(max(0, here - random_.randrange(20)), record)
            played.write(files[source], written[source])
        story = Recording(run)
        for _ in range(12):
            t = random_.uniform(990.0, 1310.0)
            story.seek(t)
            assert story.fold_to(t)
            expected = RunState()
            for source, records in written.items():
                before = sorted((r for r in records if r.t <= t), key=lambda record: record.t)
                if before:
                    fold(expected, source, before)
            assert story.state == expected


def test_a_record_with_an_impossible_time_counts_as_written_with_the_one_before(
    tmp_path: Path,
) -> None:
    run = rundir.create(tmp_path, "odd")
    rundir.new_attempt(run)
    times = (100.0, 101.0, 0.0, 1e300, -5.0, 102.0)
    played.write(run.rank(1, 0), [events.Step(step=n, t=t) for n, t in enumerate(times)])
    story = Recording(run)
    assert (story.begin, story.end) == (100.0, 102.0)
    story.fold_to(101.5)
    assert story.state.ranks[1, 0].step.step == 4
    assert story.fold_to(102.0) and story.state.ranks[1, 0].step.step == 5


def test_a_clock_that_was_set_back_loses_nothing(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "back")
    rundir.new_attempt(run)
    times = [*range(5000, 5500), *range(2000, 2500)]
    played.write(run.rank(1, 0), [events.Step(step=n, t=float(t)) for n, t in enumerate(times)])
    story = Recording(run)
    story.fold_to(6000.0)
    assert story.next_t is None
    assert sum(story.state.ranks[1, 0].curves["t"].counts) == 1000


# ---------------------------------------------------------------------------------------
# The story


def test_states_go_as_they_went(playing: Playing) -> None:
    told = []
    for t in (3, 7, 11, 15, 25, 203, 205.5, 206.5):
        at(playing, BEGAN + t)
        seen = playing.picture().view
        told.append((seen.attempt, seen.state, seen.step))
    assert told == [
        (1, "preparing", 0), (1, "starting", 0), (1, "starting", 0), (1, "starting", 0),
        (1, "running", 1), (1, "running", 19), (1, "running", 19), (1, "failed", 19),
    ]  # fmt: skip
    at(playing, AGAIN + 100)
    assert playing.picture().view.state == "running"
    at(playing, DONE)
    seen = playing.picture()
    assert (seen.view.state, seen.view.step, seen.place.over) == ("done", 39, True)
    assert seen.view.before is not None and seen.view.before.cause == "out of memory"


def test_alerts_are_raised_and_cleared_at_their_times(playing: Playing) -> None:
    found = []
    for t in (49, 51, 119, 121):
        at(playing, BEGAN + t)
        found.append([alert.id for alert in playing.picture().view.alerts])
    assert found == [[], ["idle-reader"], ["idle-reader"], []]


def test_jumps_back_and_forth_give_the_same_pictures(playing: Playing) -> None:
    moments = (BEGAN + 100, DONE, BEGAN + 30, AGAIN + 300, BEGAN + 205, AGAIN + 20)
    first = {}
    for t in moments:
        at(playing, t)
        first[t] = playing.picture()
    for t in (*reversed(moments), *sorted(moments)):
        at(playing, t)
        assert playing.picture() == first[t]


def test_at_its_end_it_is_what_attach_shows(run: RunDir, playing: Playing) -> None:
    at(playing, DONE)
    follower = Follower(run)
    follower.poll()
    assert playing.recording.state == follower.state
    expected = view(follower.state, DONE, Liveness())
    assert playing.picture().view.state == expected.state == "done"
    assert playing.picture().view.loss == expected.loss


def test_the_clock_runs_so_many_times_as_fast_and_stands_still_at_the_end(
    playing: Playing, clock: Clock
) -> None:
    playing.tick()
    assert playing.at == BEGAN
    clock.now += 0.5
    playing.tick()
    assert playing.at == BEGAN + 30
    playing.pause()
    clock.now += 100
    playing.tick()
    assert playing.at == BEGAN + 30 and playing.picture().place.paused
    playing.pause()
    playing.faster(2)
    clock.now += 1
    playing.tick()
    assert playing.at == BEGAN + 150 and playing.picture().place.speed == 120
    playing.to_end()
    playing.tick()
    clock.now += 1000
    playing.tick()
    seen = playing.picture()
    assert seen.now == DONE and seen.place.over and seen.place.share == 1.0
    playing.home()
    playing.tick()
    assert playing.picture().now == BEGAN and playing.picture().view.attempt == 1


def test_hours_without_a_record_are_jumped_over_and_said(playing: Playing, clock: Clock) -> None:
    at(playing, FAILED)
    playing.paused = False
    clock.now += LINGER_S - 0.5  # the end of the attempt stays to be seen
    playing.tick()
    assert playing.picture().view.state == "failed" and playing.picture().place.said == ""
    clock.now += 1.0
    playing.tick()
    seen = playing.picture()
    assert seen.now == AGAIN and seen.view.attempt == 2 and seen.place.said == SILENCE
    clock.now += 10.0
    playing.tick()
    assert playing.picture().place.said == ""


def test_who_goes_back_into_the_silence_sees_what_was_before_it(
    playing: Playing, clock: Clock
) -> None:
    at(playing, AGAIN + 5)
    playing.jump(-3600)
    playing.tick()
    assert playing.picture().now == FAILED and playing.picture().view.state == "failed"
    playing.jump(-60)
    playing.tick()
    assert playing.picture().now == FAILED - 60 and playing.picture().view.state == "running"


def test_a_share_counts_only_time_in_which_something_was_recorded() -> None:
    scale = Scale(0.0, 100_000.0, [Ends(0.0, 1000.0), Ends(99_000.0, 100_000.0)])
    assert [scale.share(t) for t in (0, 500, 1000, 50_000, 99_500, 100_000)] == [
        0.0, 0.25, 0.5, 0.5, 0.75, 1.0,
    ]  # fmt: skip
    assert [scale.at(share) for share in (-1.0, 0.25, 0.5, 0.75, 2.0)] == [
        0.0, 500.0, 1000.0, 99_500.0, 100_000.0,
    ]  # fmt: skip
    one = Scale(7.0, 7.0, [])
    assert (one.share(7.0), one.at(0.3)) == (1.0, 7.0)


def test_before_the_samples_that_are_left_processes_are_known_by_start_and_exit(
    playing: Playing,
) -> None:
    at(playing, BEGAN + 100)
    seen = playing.picture().view
    assert [(row.role, row.pid) for row in seen.processes] == [
        ("supervisor", 10), ("agent", 11), ("rank", 12), ("worker", 13),
    ]  # fmt: skip
    assert {(row.state, row.cpu_percent, row.rss_mib) for row in seen.processes} == {
        ("", None, None)
    }
    assert seen.gpus is not None and seen.gpus.gpus[0].memory_used_mib == 1001.0
    assert seen.gpus.gpus[0].temperature_c is None
    at(playing, BEGAN + 205)
    assert [row.role for row in playing.picture().view.processes] in ([], ["supervisor"])
    at(playing, SAMPLED + 10)
    seen = playing.picture().view
    assert {row.rss_mib for row in seen.processes} == {100.0} and len(seen.processes) == 4


def test_a_supervisor_that_missed_its_minutes_was_gone(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "alone")
    rundir.new_attempt(run)
    journal = [
        events.RunStarted(run=run.id, t=BEGAN),
        events.AttemptStarted(ranks=1, t=BEGAN),
        events.Minute(t=BEGAN + 60),
    ]
    steps = [events.Step(step=n, t=BEGAN + 10 * n) for n in range(1, 60)]
    rank = [events.ProcessStart(pid=5, starttime=9, role="rank", t=BEGAN + 5), *steps]
    played.write(run.journal, journal)
    played.write(run.rank(1, 0), rank)
    playing = Playing(run, 60.0, Clock())
    at(playing, BEGAN + 100)
    assert playing.picture().view.supervisor == "alive"
    at(playing, BEGAN + 400)
    seen = playing.picture().view
    assert (seen.supervisor, seen.state) == ("gone", "running")
    at(playing, playing.recording.end)  # nothing says how it ended
    assert playing.picture().view.state == "lost"


# ---------------------------------------------------------------------------------------
# What cannot be played, and what is left alone


def test_nothing_in_the_folder_is_changed_and_nobody_is_started(run: RunDir, clock: Clock) -> None:
    before = _listing(run)
    made = replay.Replay(run, 60.0, clock)
    made.listen(lambda snapshot: None)
    made.start()
    made.go_on()
    clock.now += 3.0
    until(lambda: made.latest is not None and made.latest.now > BEGAN, "a later picture")
    made.wish(lambda playing: playing.to_end())
    until(lambda: made.latest is not None and made.latest.view.state == "done", "its end")
    made.close()
    assert _listing(run) == before
    assert not run.lock_file.exists()
    assert made.latest is not None and made.latest.others == ()


def test_commands_are_refused(run: RunDir) -> None:
    commands = replay.Refusing()
    for ask in (
        lambda: commands.stop(run, 1),
        lambda: commands.clean(run),
        lambda: commands.end_left(run, [(1, 1)]),
        lambda: commands.relaunch(run, 1, "same"),
        lambda: commands.signal(run, [(1, 1)], "TERM"),
    ):
        with pytest.raises(RunDirError, match="this is a replay of what is over"):
            ask()


def test_a_run_is_found_by_its_id_its_beginning_and_its_folder(run: RunDir) -> None:
    home = run.path.parent
    for word in (run.id, run.id[:-2], str(run.path)):
        assert replay.opened(home, word).path == run.path
    with pytest.raises(RunDirError, match="no such run"):
        replay.opened(home, "nothing")
    with pytest.raises(RunDirError, match="is no run"):
        replay.opened(home, str(run.journal))


def test_a_live_run_is_refused_with_what_to_do(run: RunDir) -> None:
    lock = rundir.Lock(run)
    try:
        with pytest.raises(RunDirError, match=f"still going on; `bitwatch attach {run.id}`"):
            replay.opened(run.path.parent, run.id)
    finally:
        lock.release()


def test_a_run_without_records_is_refused(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "empty")
    with pytest.raises(RunDirError, match="it has no records, so there is nothing to replay"):
        replay.Replay(run, 60.0)
    run.journal.write_bytes(b"\x00\xff no record\n{}\n[1]\n")
    with pytest.raises(RunDirError, match="nothing in its files is a record"):
        replay.Replay(run, 60.0)


def test_damaged_lines_are_counted_and_the_rest_is_played(run: RunDir, clock: Clock) -> None:
    text = run.rank(1, 0).read_bytes().splitlines(keepends=True)
    text[10:12] = [b"\x00\x00\xff\n", b'{"kind":"of-the-future","t":1}\n', b'{"kind":"step"']
    run.rank(1, 0).write_bytes(b"".join(text[:-1]) + text[-1][:20])
    playing = Playing(run, 60.0, clock)
    at(playing, FAILED)
    seen = playing.picture()
    assert seen.place.skipped == 3 and seen.view.step == 19


def test_a_record_of_a_newer_version_is_played_and_said(run: RunDir, clock: Clock) -> None:
    identity = json.loads(run.identity_file.read_text())
    run.identity_file.write_text(json.dumps(identity | {"format": 99}))
    playing = Playing(run, 60.0, clock)
    at(playing, DONE)
    seen = playing.picture()
    assert "newer version" in seen.text and seen.view.alerts[0].id == "newer-version"
    assert seen.view.state == "done"


def test_a_folder_that_goes_away_leaves_its_last_picture(
    run: RunDir, playing: Playing, clock: Clock
) -> None:
    at(playing, BEGAN + 100)
    playing.paused = False
    run.path.rename(run.path.with_name("elsewhere"))
    clock.now += 10
    playing.tick()
    seen = playing.picture()
    assert "deleted or moved" in seen.text
    assert (seen.now, seen.view.step) == (BEGAN + 100, 9)


@pytest.mark.parametrize("word", ["0", "-3", "nan", "inf", "fast", "1e999"])
def test_a_speed_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(RunDirError, match="give a number above 0"):
        replay.speed(word)


def test_a_speed_is_sixty_where_none_is_given() -> None:
    assert (replay.speed(None), replay.speed("3600"), replay.speed("0.5")) == (60.0, 3600.0, 0.5)


def _listing(run: RunDir) -> list[tuple[str, int, int]]:
    def walk() -> Iterator[tuple[str, int, int]]:
        for folder, folders, files in os.walk(run.path):
            for name in (*folders, *files):
                found = os.stat(os.path.join(folder, name))
                yield os.path.join(folder, name), found.st_mtime_ns, found.st_size

    return sorted(walk())
