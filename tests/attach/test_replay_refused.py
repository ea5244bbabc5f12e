"""What of a replay is refused, what is said instead of a crash, and that nothing is touched."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.attach import replay
from bitwatch.attach.playing import Playing
from bitwatch.record import rundir
from bitwatch.record.rundir import RunDir, RunDirError
from tests.attach.played import BEGAN, DONE, FAILED, Clock, at
from tests.conftest import until


def test_nothing_in_the_folder_is_changed_and_nobody_is_started(
    played_run: RunDir, clock: Clock
) -> None:
    before = _listing(played_run)
    made = replay.Replay(played_run, 60.0, clock)
    made.listen(lambda snapshot: None)
    made.start()
    made.go_on()
    clock.now += 3.0
    until(lambda: made.latest is not None and made.latest.now > BEGAN, "a later picture")
    made.wish(lambda playing: playing.to_end())
    until(lambda: made.latest is not None and made.latest.view.state == "done", "its end")
    made.close()
    assert _listing(played_run) == before
    assert not played_run.lock_file.exists()
    assert made.latest is not None and made.latest.others == ()


def test_commands_are_refused(played_run: RunDir) -> None:
    commands = replay.Refusing()
    for ask in (
        lambda: commands.stop(played_run, 1),
        lambda: commands.clean(played_run),
        lambda: commands.end_left(played_run, [(1, 1)]),
        lambda: commands.relaunch(played_run, 1, "same"),
        lambda: commands.signal(played_run, [(1, 1)], "TERM"),
    ):
        with pytest.raises(RunDirError, match="this is a replay of what is over"):
            ask()


def test_a_run_is_found_by_its_id_its_beginning_and_its_folder(played_run: RunDir) -> None:
    home = played_run.path.parent
    for word in (played_run.id, played_run.id[:-2], str(played_run.path)):
        assert replay.opened(home, word).path == played_run.path
    with pytest.raises(RunDirError, match="no such run"):
        replay.opened(home, "nothing")
    with pytest.raises(RunDirError, match="is no run"):
        replay.opened(home, str(played_run.journal))


def test_a_live_run_is_refused_with_what_to_do(played_run: RunDir) -> None:
    lock = rundir.Lock(played_run)
    try:
        with pytest.raises(RunDirError, match=f"still going on; `bitwatch attach {played_run.id}`"):
            replay.opened(played_run.path.parent, played_run.id)
    finally:
        lock.release()


def test_a_run_without_records_is_refused(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "empty")
    with pytest.raises(RunDirError, match="it has no records, so there is nothing to replay"):
        replay.Replay(run, 60.0)
    run.journal.write_bytes(b"\x00\xff no record\n{}\n[1]\n")
    with pytest.raises(RunDirError, match="nothing in its files is a record"):
        replay.Replay(run, 60.0)


def test_damaged_lines_are_counted_and_the_rest_is_played(played_run: RunDir, clock: Clock) -> None:
    text = played_run.rank(1, 0).read_bytes().splitlines(keepends=True)
    text[10:12] = [b"\x00\x00\xff\n", b'{"kind":"of-the-future","t":1}\n', b'{"kind":"step"']
    played_run.rank(1, 0).write_bytes(b"".join(text[:-1]) + text[-1][:20])
    playing = Playing(played_run, 60.0, clock)
    at(playing, FAILED)
    seen = playing.picture()
    assert seen.place.skipped == 3 and seen.view.step == 19


def test_a_record_of_a_newer_version_is_played_and_said(played_run: RunDir, clock: Clock) -> None:
    identity = json.loads(played_run.identity_file.read_text())
    played_run.identity_file.write_text(json.dumps(identity | {"format": 99}))
    playing = Playing(played_run, 60.0, clock)
    at(playing, DONE)
    seen = playing.picture()
    assert "newer version" in seen.text and seen.view.alerts[0].id == "newer-version"
    assert seen.view.state == "done"


def test_a_folder_that_goes_away_leaves_its_last_picture(
    played_run: RunDir, playing: Playing, clock: Clock
) -> None:
    at(playing, BEGAN + 100)
    playing.paused = False
    played_run.path.rename(played_run.path.with_name("elsewhere"))
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
