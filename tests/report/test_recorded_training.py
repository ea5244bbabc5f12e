"""What a recorded run trained and on what: models, readers, losses, stalls, checkpoints."""

from __future__ import annotations

import math
from pathlib import Path

from bitwatch.record import events
from tests.report.runs import (
    BEGAN,
    BUILT,
    LOWER,
    ended,
    ids,
    journal,
    made,
    of,
    places,
    report,
    says,
    started,
    steps,
)
from tests.tui import recorded as demo


def test_another_model_than_asked_and_a_smaller_one_than_before_are_told_apart(
    tmp_path: Path,
) -> None:
    run = made(tmp_path, attempts=2)
    journal(
        run,
        started(),
        ended("failed", "KeyError: 'x' (a.py:1)"),
        started(2, BEGAN + 600, by="a person"),
    )
    held = [302_153_729, 302_153_729, 302_149_632, 302_149_632]
    says(run, 0, events.ModelBuilt(asked=BUILT, built=BUILT, held=held, ranks=4, t=BEGAN + 9))
    says(run, 0, events.ModelBuilt(asked=BUILT, built=LOWER, ranks=4, t=BEGAN + 609), attempt=2)
    found = report(run)
    differ, lowered = of(found, "parameters-differ"), of(found, "target-lowered")
    assert differ.severity == "error"
    assert f"attempt 2 built {LOWER:,} parameters, and {BUILT:,} were asked for" in differ.title
    assert places(differ) == [("attempts/2/rank0.jsonl", 1)]
    assert "by a person" in lowered.why
    assert "nothing of bitwatch lowers" in lowered.why
    assert any("302,149,632 to 302,153,729 held by a rank" in said for said in found.shown)


def test_a_model_as_it_was_asked_for_is_no_finding(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started(), ended("done"))
    says(run, 0, events.ModelBuilt(asked=BUILT, built=BUILT, held=[302_153_729], ranks=4))
    found = report(run)
    assert not {"parameters-differ", "target-lowered", "count-is-shard"} & set(ids(found))
    assert any("as asked" in said for said in found.shown)


def test_readers_that_had_nothing_say_so_themselves(tmp_path: Path) -> None:
    run = demo.make(tmp_path, ended=True)
    found = report(run)
    finding = of(found, "idle-reader")
    assert "2 of 4 readers had nothing to read: rank 0 worker 1, rank 1 worker 1" in finding.title
    assert ("attempts/1/readers/0-train-1-0.jsonl", 1) in places(finding)
    assert "nothing hangs" in finding.why
    assert "done at step 400 of 800" in found.shown[0]


def test_losses_that_are_no_numbers_are_found_among_thousands(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started(), ended("failed", "the loss is not finite at step 5,000"))
    records = steps(0, 9000, 1)
    for record in records[4999:5002]:
        assert isinstance(record, events.Step)
        record.loss = math.nan
    says(run, 0, *records)
    finding = of(report(run), "loss-not-finite")
    assert "step 5,000: the loss is nan, the first of 3 step records" in finding.title
    assert places(finding) == [("attempts/1/rank0.jsonl", 5000)]


def test_who_waited_for_whom_is_the_finding_of_a_stall(tmp_path: Path) -> None:
    run = made(tmp_path)
    said = "rank 2 waits in DataLoader queue.get for 94 s; ranks 0, 1, 3 wait for it in all_reduce"
    waits = [
        events.Wait(rank=2, kind="data", where="DataLoader queue.get", evidence=["queue.py:180"]),
        events.Wait(rank=0, kind="collective", where="all_reduce"),
    ]
    journal(
        run,
        started(),
        events.Alert(id="stalled", text="no step since step 40", attempt=1, t=BEGAN + 90),
        events.Stuck(attempt=1, text=said, waits=waits, t=BEGAN + 95),
        ended("stopped", "stopped by somebody"),
    )
    finding = of(report(run), "stalled")
    assert said in finding.title
    assert finding.evidence[0].line == 3
    assert "data: DataLoader queue.get (queue.py:180)" in finding.evidence[1].text
    assert "source" in finding.next


def test_a_resume_goes_on_from_what_is_whole_on_the_disk(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started(checkpoints=str(run.checkpoints())), ended("stopped"))
    saved = [
        events.Checkpoint(step=step, path=str(run.checkpoints() / f"step-{step}"), t=BEGAN + step)
        for step in (100, 200)
    ]
    says(run, 0, *steps(0, 210), *saved)
    assert "was written and is not there now" in of(report(run), "resume-lost").title
    for step, name in ((100, "manifest.json"), (200, "half")):
        folder = run.checkpoints() / f"step-{step}"
        folder.mkdir(parents=True)
        (folder / name).write_text("{}")
    finding = of(report(run), "checkpoints")
    assert "go on from step 100; 110 steps after it" in finding.title
    assert ("attempts/1/rank0.jsonl", 22) in places(finding)


def test_alerts_say_whether_their_cause_went_before_the_end(tmp_path: Path) -> None:
    run = made(tmp_path)
    starved = events.Alert(id="data-starved", text="rank 1 waits", attempt=1, t=BEGAN + 50)
    low = events.Alert(id="shm-low", text="little is left", attempt=1, t=BEGAN + 60)
    journal(
        run,
        started(),
        starved,
        low,
        events.Alert(id="data-starved", attempt=1, cleared=True, t=BEGAN + 80),
        events.Alert(id="shm-low", attempt=1, cleared=True, t=BEGAN + 499),
        ended("stopped"),
    )
    found = report(run)
    assert of(found, "data-starved").title == "rank 1 waits (cleared after 30 s)"
    assert of(found, "data-starved").severity == "info"
    assert of(found, "shm-low").title == "little is left (in attempt 1, until its end)"
    assert of(found, "shm-low").severity == "warning"
    assert places(of(found, "shm-low")) == [("journal.jsonl", 3)]
