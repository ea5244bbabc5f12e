"""A finished run is played again as it happened, from its record alone."""

from __future__ import annotations

from pathlib import Path

from bitwatch.attach.playing import LINGER_S, Played, Playing, Scale
from bitwatch.attach.recording import Ends
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower, Liveness
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import view
from tests.attach import played
from tests.attach.played import AGAIN, BEGAN, DONE, FAILED, SAMPLED, SILENCE, Clock, at, settled


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


def settled_picture(playing: Playing) -> Played:
    picture = playing.picture()
    picture.view.gpu_history = settled(picture.view.gpu_history)
    return picture


def test_jumps_back_and_forth_give_the_same_pictures(playing: Playing) -> None:
    moments = (BEGAN + 100, DONE, BEGAN + 30, AGAIN + 300, BEGAN + 205, AGAIN + 20)
    first = {}
    for t in moments:
        at(playing, t)
        first[t] = settled_picture(playing)
    for t in (*reversed(moments), *sorted(moments)):
        at(playing, t)
        assert settled_picture(playing) == first[t]


def test_at_its_end_it_is_what_attach_shows(played_run: RunDir, playing: Playing) -> None:
    at(playing, DONE)
    follower = Follower(played_run)
    follower.poll()
    for state in (playing.recording.state, follower.state):
        state.gpu_history = settled(state.gpu_history)
        state.samples.gpus_from = state.samples.processes_from = ""  # which file it was read from
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


def test_a_log_that_began_before_it_was_watched_is_played_from_its_beginning(
    tmp_path: Path,
) -> None:
    run = rundir.create(tmp_path, "log", foreign=True)
    rundir.new_attempt(run)
    played.write(
        run.journal,
        [
            events.RunStarted(run=run.id, foreign=True, t=BEGAN + 600),
            events.AttemptStarted(ranks=1, t=BEGAN + 600),
        ],
    )
    past = [events.Step(step=n, loss=1.0, t=BEGAN + 10 * n, m=0.0) for n in range(60)]
    played.write(run.history(1), past)
    played.write(run.rank(1, 0), [events.Step(step=60, loss=1.0, t=BEGAN + 610)])
    playing = Playing(run, 60.0, Clock())
    at(playing, BEGAN + 300)
    seen = playing.picture().view
    assert (seen.foreign, seen.loss[0][1].last) == (True, (30, 1.0))
    assert seen.state in ("starting", "running")
    at(playing, BEGAN + 610)
    assert playing.picture().view.step == 60
