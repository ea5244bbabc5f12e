"""Records that are damaged, impossible, endless or empty."""

from __future__ import annotations

import math
from pathlib import Path

from bitwatch.record import events, rundir
from bitwatch.record.aside import Aside
from bitwatch.record.journal import JournalWriter
from tests.report.runs import (
    BEGAN,
    ended,
    exit_of,
    failed,
    journal,
    made,
    of,
    places,
    process,
    report,
    says,
    started,
    steps,
)


def test_lines_that_are_no_records_are_counted_and_cost_nothing_else(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started())
    with open(run.journal, "ab") as file:
        file.write(b"\0\xff garbage\n" + b"{" * 5000 + b"\n\n" + b'{"kind":"from-tomorrow"}\n')
        file.write(b'{"kind":"step","step":"x"}\n')
    journal(run, ended("failed", "KeyError: 'x' (a.py:1)"))
    says(run, 0, *steps(0, 40))
    with open(run.rank(1, 0), "ab") as file:
        file.write(b'{"kind":"step","step":50,"loss')
    run.rank(1, 1).mkdir()
    found = report(run)
    assert "journal.jsonl: 4 lines are no records that this version knows, the first at line 2" in (
        " ".join(found.notes)
    )
    assert any("rank0.jsonl: its last line is torn" in note for note in found.notes)
    assert any("rank1.jsonl: is no plain file" in note for note in found.notes)
    assert places(of(found, "failed")) == [("journal.jsonl", 7)]


def test_what_a_rank_could_not_write_is_said_and_its_last_word_counts(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started())
    says(run, 0, *steps(0, 40))
    place = Aside(run.unwritten(1, 0), 0)
    for step in (41, 42):
        place.hold(events.Step(step=step, t=BEGAN + step), "Disk quota exceeded")
    word = events.RankEnded(state="failed", cause="KeyError: 'x' (a.py:1)", t=BEGAN + 43.0)
    place.hold(word, "Disk quota exceeded")
    found = report(run)
    assert (
        "rank0.jsonl: lacks 3 records that could not be written (Disk quota exceeded)"
        in " ".join(found.notes)
    )
    assert "KeyError: 'x'" in " ".join(finding.title for finding in found.findings)


def test_impossible_values_in_a_record_do_not_stop_a_report(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(
        run,
        started(10**15, 1e300, ranks=10**15, workers=-4, cause="\x1b[2J" * 9000),
        events.DataPlanned(attempt=10**15, plan={"data": {"num_shards": []}, "problems": 7}),
        process(-5, "rank", 10**12, 10**15),
        exit_of(-5, "rank", 4096, -1e300, 10**12),
        events.Alert(id="", text="x" * 100_000, attempt=-1, t=1e300),
        *(events.Alert(id=f"made-up-{n}", attempt=n, t=BEGAN) for n in range(300)),
        ended("failed", "y" * 100_000, 10**15, 1e300),
    )
    odd = events.Step(step=-(2**60), loss=math.inf, step_s=math.nan, t=BEGAN)
    says(run, 0, odd, events.Checkpoint(step=2**62, seconds=1e300, t=1e300))
    found = report(run)
    assert len(found.timeline) < 200
    assert len(found.findings) < 150
    assert all(len(entry.text) < 400 for entry in found.timeline)
    assert all(len(finding.title) < 2500 for finding in found.findings)


def test_a_week_of_every_kind_stays_readable_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=40)
    records: list[events.Record] = [events.RunStarted(run=run.id, name="week", t=BEGAN)]
    for n in range(1, 41):
        at = BEGAN + 1000 * n
        records.append(started(n, at))
        for k in range(10):
            records.append(events.Alert(id="shm-low", text="low", attempt=n, t=at + k))
            records.append(events.Action(name="signal", by="a test", on="pid 9", t=at + k))
            records.append(exit_of(9, "rank", 9, at + k, 0))
            records.append(events.Stuck(attempt=n, text="stuck", t=at + k))
        records.append(ended("failed", "KeyError: 'x' (a.py:1)", n, at + 900))
        own: list[events.Record] = [events.ModelBuilt(built=5, ranks=4, t=at)]
        for k in range(40):
            own.append(events.Phase(name="compile", t=at + k))
            own.append(events.Evaluation(step=k, t=at + k))
            own.append(events.Checkpoint(step=k, t=at + k))
            own.append(events.Epoch(epoch=k, t=at + k))
            own.append(events.Note(text="note", t=at + k))
        says(run, 0, *own, *steps(0, 60, 1, at), failed(0, "KeyError: 'x'", at + 899), attempt=n)
    journal(run, *records)
    found = report(run)
    assert 150 < len(found.timeline) <= 200
    assert any("more alerts raised or cleared" in entry.text for entry in found.timeline)
    assert "40 attempts, 40 of them failed or lost" in of(found, "restarts").title
    assert of(found, "shm-low").title.endswith("raised 400 times")


def test_what_a_supervisor_writes_meanwhile_is_no_torn_line(tmp_path: Path) -> None:
    run = made(tmp_path)
    writer = JournalWriter(run.journal)
    writer.write(started())
    assert report(run).notes == []
    writer.close()


def test_a_run_that_never_began_and_one_without_a_record_are_sentences(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "empty")
    found = report(run)
    assert any("No attempt" in said for said in found.shown)
    run.identity_file.unlink()
    assert any("run.json" in note for note in report(run).notes)
