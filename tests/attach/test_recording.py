"""The files of a finished run as one story in the order in which it happened."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitwatch.attach import recording
from bitwatch.attach.recording import Recording
from bitwatch.record import events, rundir
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, Source, fold
from tests.attach import played


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short files are read in many pieces, and many states are kept."""
    monkeypatch.setattr(recording, "PIECE_BYTES", 4096)
    monkeypatch.setattr(recording, "KEPT_EVERY", 40)


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
            for state in (story.state, expected):
                state.gpu_history = played.settled(state.gpu_history)
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
