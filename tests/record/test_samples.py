"""Full-rate samples: an hour a file, the last two hours stay; the journal stays small."""

from __future__ import annotations

import calendar
from pathlib import Path

from bitwatch.record import codec, events
from bitwatch.record.journal import read_all
from bitwatch.record.samples import SampleWriter

MIDNIGHT = calendar.timegm((2026, 1, 1, 0, 0, 0))
WEEK_MINUTES = 7 * 24 * 60
JOURNAL_LIMIT_BYTES = 30_000_000


def test_only_the_last_two_hours_stay(tmp_path: Path) -> None:
    writer = SampleWriter(tmp_path)
    for minute in range(0, 5 * 60, 20):
        writer.write(events.Gpus(t=MIDNIGHT + 60.0 * minute))
    writer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "2026-01-01T03.jsonl",
        "2026-01-01T04.jsonl",
    ]
    records, _ = read_all(tmp_path / "2026-01-01T04.jsonl")
    assert len(records) == 3


def test_when_the_clock_is_set_back_the_latest_file_has_the_latest_sample(tmp_path: Path) -> None:
    for back_h in (0, 5, 6):  # the last by a supervisor that comes later
        writer = SampleWriter(tmp_path)
        writer.write(events.Gpus(t=MIDNIGHT - 3600.0 * back_h, note="before"))
        writer.write(events.Gpus(t=MIDNIGHT - 3600.0 * (back_h + 2), note=f"{back_h}"))
        writer.close()
        (file,) = tmp_path.iterdir()
        last = read_all(file)[0][-1]
        assert isinstance(last, events.Gpus) and last.note == f"{back_h}"


def test_a_missing_folder_costs_samples_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "samples").write_text("a file where the folder should be")
    writer = SampleWriter(tmp_path / "samples")
    writer.write(events.Gpus())
    (tmp_path / "samples").unlink()
    writer.write(events.Gpus(note="there is a place again"))
    writer.close()
    (file,) = (tmp_path / "samples").iterdir()
    assert [r.note for r in read_all(file)[0] if isinstance(r, events.Gpus)] == [
        "there is a place again"
    ]


def test_a_folder_that_cannot_be_looked_at_costs_no_more(tmp_path: Path) -> None:
    """As of a file system that is away, when an hour is over."""
    writer = SampleWriter(tmp_path / ("x" * 300))
    for _ in range(2):
        writer.write(events.Gpus())
    writer.close()
    assert not list(tmp_path.iterdir())


def test_a_week_of_aggregates_is_far_below_the_journals_bound() -> None:
    minute = events.Minute(
        processes=40,
        cpu_percent=1234.5,
        rss_mib=123456.7,
        gpu_memory_mib=[23034.123456] * 8,
        gpu_utilization_percent=[97.0] * 8,
    )
    assert WEEK_MINUTES * len(codec.encode(minute)) < JOURNAL_LIMIT_BYTES / 4
