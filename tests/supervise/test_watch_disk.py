"""The alert that a disk is almost full."""

from __future__ import annotations

from pathlib import Path

from bitwatch import config as configuration
from bitwatch.record import events
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.supervise import disks
from bitwatch.supervise.disks import CACHE, CHECKPOINTS, LOOKBACK_S, RUN, Disks, Room
from bitwatch.supervise.watch_disk import Low, at_once
from tests.conftest import until
from tests.trainer.conftest import make_small

GIB = 1 << 30
SAVED = [events.Checkpoint(step=step, bytes=14 * GIB) for step in (100, 200)]


def view(**fields: object) -> View:
    return View(**{"attempt": 1, "checkpoints": SAVED} | fields)


def room(gib: float, what: str = CHECKPOINTS) -> list[Room]:
    return [Room(what, "/place", int(gib * GIB))]


def test_the_next_checkpoint_that_does_not_fit_is_an_error_until_there_is_room() -> None:
    low = Low()
    assert low.look(view(), room(14.5), 3) == []
    (alert,) = low.look(view(), room(9.2), 3)
    assert (alert.id, alert.severity) == ("disk-low", "error")
    assert alert.text == (
        "less than 16 GiB left on the disk of the checkpoints; the next checkpoint (step 200 took "
        "14.0 GiB) needs 14.0 GiB"
    )
    assert "/place: 9.2 GiB free" in alert.evidence[0]
    assert "checkpoint.folder" in alert.next
    (again,) = low.look(view(), room(16.5), 3)  # not more than it hovers
    assert again.text == alert.text
    assert low.look(view(), room(18), 3) == []


def test_until_as_many_as_are_kept_are_there_none_goes() -> None:
    low = Low()
    one = view(checkpoints=SAVED[:1])
    (alert,) = low.look(one, room(20), 3)
    assert alert.severity == "warning" and "2 more checkpoints" in alert.text
    assert low.look(view(), room(20), 3) == []


def test_before_the_first_the_size_of_the_model_says_what_it_takes() -> None:
    big = view(checkpoints=[], built=1_208_606_722)
    (alert,) = Low().look(big, room(10), 1)
    assert "by the size of the model, 13.5 GiB" in alert.text
    assert Low().look(view(checkpoints=[]), room(0.001), 1) == []


def test_the_other_disks_have_limits_of_their_own() -> None:
    (alert,) = Low().look(view(), room(0.2, RUN), 3)
    assert "the disk of the run's record" in alert.text and alert.severity == "error"
    assert Low().look(view(), room(0.3, RUN), 3) == []
    assert Low().look(view(phase="train"), room(0.3, CACHE), 3) == []
    assert Low().look(view(phase="prepare"), room(0.3, CACHE), 3)


def test_without_regular_checkpoints_there_is_one_at_the_end() -> None:
    assert at_once(configuration.Checkpoint(every=0, keep=5)) == 1
    assert at_once(configuration.Checkpoint(every=10, keep=2)) == 3


def test_what_is_used_for_a_moment_is_not_missed() -> None:
    """A checkpoint takes room until the one that it replaces is gone."""
    looked = Disks({RUN: Path("/")})
    seen = looked._seen[RUN]
    seen.extend([(0.0, 9 * GIB), (60.0, 2 * GIB), (119.0, 2 * GIB)])
    assert looked.rooms(119.0) == ()  # not for long enough yet
    assert [one.free_bytes for one in looked.rooms(LOOKBACK_S)] == [9 * GIB]
    seen.append((LOOKBACK_S + 60.0, 3 * GIB))
    assert [one.free_bytes for one in looked.rooms(LOOKBACK_S + 61.0)] == [3 * GIB]
    assert looked.rooms(9 * LOOKBACK_S) == ()  # no answer any more


def test_a_slow_checkpoint_takes_room_only_while_it_is_written() -> None:
    """Whether it is the first one or not: the room of before is what the next one has."""
    for before in ([], [events.Checkpoint(step=1, bytes=14 * GIB, seconds=500.0)]):
        looked = Disks({CHECKPOINTS: Path("/")})
        times = [5.0 * n for n in range(400)]  # it is written from 300 to 900
        for now in times:
            saving = 300.0 <= now < 900.0
            free = 20 * GIB if not saving else 6 * GIB
            looked._seen[CHECKPOINTS].append((now, free))
            looked.note(view(checkpoints=before, phase="checkpoint" if saving else "train"), now)
            for one in looked.rooms(now):
                assert one.free_bytes == 20 * GIB, now
        assert len(looked._seen[CHECKPOINTS]) < 250
        looked._seen[CHECKPOINTS].extend([(2000.0, 6 * GIB), (3100.0, 6 * GIB), (3200.0, 6 * GIB)])
        assert [one.free_bytes for one in looked.rooms(3200.0)] == [6 * GIB]


def test_who_comes_while_a_checkpoint_is_written_waits_for_its_end() -> None:
    looked = Disks({CHECKPOINTS: Path("/")})
    for now in (0.0, 1.0, 100.0, 200.0, 300.0):
        looked.note(view(phase="checkpoint"), now)
        looked._seen[CHECKPOINTS].append((now + 0.5, 6 * GIB))
        assert looked.rooms(now + 0.5) == ()
    looked._seen[CHECKPOINTS].append((310.0, 20 * GIB))
    looked.note(view(phase="train"), 310.0)
    assert [one.free_bytes for one in looked.rooms(310.0)] == [20 * GIB]


def test_an_error_that_hovers_stays_one() -> None:
    low = Low()
    one = view(checkpoints=SAVED[:1])
    said = [low.look(one, room(gib), 3)[0].severity for gib in (20, 13.5, 14.5, 13.5, 20)]
    assert said == ["warning", "error", "error", "error", "warning"]


def test_room_is_that_of_the_nearest_folder_there_is(tmp_path: Path) -> None:
    looked = Disks({RUN: tmp_path, CHECKPOINTS: tmp_path / "not" / "there"})
    looked.look(view())
    until(lambda: len(looked._seen[CHECKPOINTS]) == 1, "the disks to be looked at")
    known = {what: seen[0][1] for what, seen in looked._seen.items()}
    assert known[RUN] > 0 and abs(known[RUN] - known[CHECKPOINTS]) < GIB
    assert disks.free_bytes(Path("/proc/self/nothing")) is not None


def test_the_folders_of_a_run(run: RunDir, tmp_path: Path) -> None:
    config = make_small(
        data={"sharding": "indexed", "cache": str(tmp_path / "texts")},
        checkpoint={"folder": str(tmp_path / "big")},
    )
    found = disks.folders_of(run, config)
    assert found[CHECKPOINTS].is_relative_to(tmp_path / "big")
    assert found[CACHE] == tmp_path / "texts" and RUN in found
