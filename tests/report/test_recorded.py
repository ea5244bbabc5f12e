"""A recorded run explains itself from its record: how it ended, what it trained, who waited."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bitwatch.record import events, kernel, rundir
from bitwatch.record.journal import JournalWriter
from bitwatch.report.facts import Gathered
from tests.report.runs import (
    BEGAN,
    BUILT,
    LOWER,
    another_boot,
    ended,
    exit_of,
    failed,
    ids,
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
from tests.supervise.standins import Standins
from tests.tui import recorded as demo
from tests.tui.recorded import write

ECHO = "DistBackendError: gloo: Connection closed by peer (train.py:200)"


@pytest.fixture
def failed_run(tmp_path: Path) -> Gathered:
    """Rank 2 failed; the others lost it, one of them before it had found its words."""
    run = made(tmp_path)
    journal(
        run,
        events.RunStarted(run=run.id, name="demo", t=BEGAN, m=0.0),
        started(),
        ended("failed", "ValueError: no such bit (bits.py:9)"),
    )
    says(run, 0, *steps(0, 40), failed(0, ECHO, BEGAN + 41))
    says(run, 2, *steps(2, 40), failed(2, "ValueError: no such bit (bits.py:9)", BEGAN + 42))
    says(run, 3, *steps(3, 40), failed(3, ECHO, BEGAN + 43))
    return report(run)


def test_the_first_cause_comes_before_its_echoes_and_has_a_class(failed_run: Gathered) -> None:
    finding = of(failed_run, "failed")
    assert finding.severity == "error"
    assert "ValueError: no such bit" in finding.title
    assert places(finding)[:2] == [("journal.jsonl", 3), ("attempts/1/rank2.jsonl", 5)]
    assert finding.evidence[1].text.startswith("first cause: rank 2")
    assert all("echo: " in one.text for one in finding.evidence[2:])
    assert "2 ranks (0, 3)" in finding.why
    assert "code" in finding.why
    assert "--rank 2" in finding.next
    assert any("is code: " in said for said in failed_run.likely)


def test_each_entry_of_the_timeline_stands_where_it_says(failed_run: Gathered) -> None:
    entries = [(entry.source, entry.line, entry.text) for entry in failed_run.timeline]
    assert entries[0] == ("journal.jsonl", 1, "run demo was made")
    assert entries[1][2] == "attempt 1 began: first launch, asked by a test; 4 ranks x 4 workers"
    assert ("attempts/1/rank0.jsonl", 1) in [entry[:2] for entry in entries]  # the first step
    assert any("(the last of 4 step records)" in text for _, _, text in entries)
    assert entries[-1][:2] == ("journal.jsonl", 3)
    times = [entry.t for entry in failed_run.timeline if entry.t is not None]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("cause", "class_"),
    [
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB (model.py:3)", "configur"),
        ("data.source: /corpus does not exist", "configuration"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (model.py:30)", "architecture"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "hardware"),
        ("OSError: [Errno 5] Input/output error (files.py:2)", "hardware"),
        ("ValueError: a row has no column 'text'; it has body", "data"),
        ("rank 1 was killed by SIGKILL, without a last word", "from outside"),
        ("KeyError: 'x' (train.py:7)", "code"),
    ],
)
def test_a_cause_has_the_class_that_its_words_show(tmp_path: Path, cause: str, class_: str) -> None:
    run = made(tmp_path)
    journal(run, started(), ended("failed", cause))
    assert f"Class of the cause: {class_}" in of(report(run), "failed").why


def test_of_an_echo_alone_nobody_tells_the_class(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started(), ended("failed", ECHO))
    found = report(run)
    assert "cannot be told" in of(found, "failed").why
    assert found.likely == []


def test_a_full_disk_and_want_of_memory_are_findings_of_their_own(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=2)
    journal(
        run,
        started(),
        ended("failed", "OutOfMemoryError: CUDA out of memory (model.py:3)"),
        started(2, BEGAN + 600),
        ended("failed", "OSError: [Errno 28] No space left on device", 2, BEGAN + 900),
    )
    found = report(run)
    assert "out-of-memory" in ids(found)
    assert places(of(found, "disk-full")) == [("journal.jsonl", 4)]
    assert places(of(found, "restarts")) == [("journal.jsonl", n) for n in (1, 2, 3, 4)]


def test_a_silent_end_says_the_last_step_and_not_how(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started())
    says(run, 0, *steps(0, 40))
    found = report(run)
    finding = of(found, "silent-end")
    assert "at step 40" in finding.title
    assert ("attempts/1/rank0.jsonl", 4) in places(finding)
    assert any(said.startswith("How attempt 1") for said in found.unknown)
    assert not found.likely


def test_a_boot_since_then_is_said_and_its_meaning(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started())
    says(run, 0, *steps(0, 40))
    another_boot(run)
    found = report(run)
    assert "ended at reboot" in of(found, "silent-end").title
    assert any("before the machine went down" in said for said in found.unknown)


def test_a_run_of_another_host_may_go_on_there(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started())
    identity = run.identity()
    identity.host = "elsewhere"
    rundir.write_identity(run, identity)
    found = report(run)
    assert of(found, "elsewhere").title == "the run is on another host (elsewhere)"
    assert "silent-end" not in ids(found)
    assert any("Whether" in said and "elsewhere" in said for said in found.unknown)


def test_a_kill_that_nobody_has_on_record_is_likely_want_of_memory_and_no_more(
    tmp_path: Path,
) -> None:
    run = made(tmp_path)
    journal(
        run,
        started(),
        process(102, "rank", 1),
        process(104, "worker", 1),
        exit_of(104, "worker", 9, BEGAN + 100.5, 1),
        exit_of(102, "rank", 9, BEGAN + 100, 1),
        ended("failed", "rank 1 was killed by SIGKILL, without a last word"),
    )
    found = report(run)
    finding = of(found, "killed")
    assert finding.title == "rank 1 (pid 102) was killed by SIGKILL"
    assert places(finding) == [("journal.jsonl", 5)]  # its worker went with it
    assert any("out-of-memory killer" in said for said in found.likely)
    assert not any("memory" in said for said in found.shown)
    assert any(said.startswith("Who sent SIGKILL") for said in found.unknown)


def test_a_signal_that_a_person_sent_from_the_screen_is_theirs(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(
        run,
        started(),
        process(102, "rank", 1),
        events.Action(
            name="signal", by="the screen (pid 7)", on="pid 102", result="KILL", t=BEGAN + 99
        ),
        exit_of(102, "rank", 9, BEGAN + 100, 1),
        ended("failed", "rank 1 was killed by SIGKILL, without a last word"),
    )
    found = report(run)
    finding = of(found, "killed")
    assert finding.severity == "info"
    assert "signal by the screen (pid 7)" in finding.title
    assert ("journal.jsonl", 3) in places(finding)
    assert not any("memory" in said for said in found.likely)


def test_a_stop_after_a_failure_does_not_hide_the_failure(tmp_path: Path) -> None:
    run = made(tmp_path)
    lost = "worker 0 of rank 1 (pid 3352), reading shard 1, was killed by SIGTERM at 04:48:14"
    journal(run, started(), ended("stopped", "stopped by somebody, without a checkpoint"))
    says(run, 1, *steps(1, 10), failed(1, lost, BEGAN + 11, 11))
    found = report(run)
    assert lost in of(found, "failed").title
    assert of(found, "killed").title == "worker 0 of rank 1 was killed by SIGTERM"


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


def test_what_lives_of_an_ended_attempt_is_a_leftover_with_its_proof(
    tmp_path: Path, standins: Standins
) -> None:
    run = made(tmp_path)
    pid, starttime = standins.start()
    journal(
        run,
        started(),
        events.ProcessStart(pid=pid, starttime=starttime, role="worker", rank=1, attempt=1),
        ended("failed", "KeyError: 'x' (a.py:1)"),
    )
    found = report(run)
    finding = of(found, "leftovers")
    assert [one.source for one in finding.evidence] == [f"process {pid}"]
    assert "this pid and start time" in finding.evidence[0].text
    assert f"bitwatch clean {run.id}" in finding.next
    standins.end((pid, starttime))
    assert "leftovers" not in ids(report(run))


def test_a_run_that_lives_goes_on_and_has_no_end(tmp_path: Path, standins: Standins) -> None:
    run = made(tmp_path)
    pid, starttime = standins.start()
    journal(run, started())
    who = events.ProcessStart(pid=pid, starttime=starttime, role="rank", rank=0, t=BEGAN)
    says(run, 0, who, events.Phase(name="train", t=BEGAN), *steps(0, 40))
    found = report(run, BEGAN + 41)
    assert any("goes on (running): step 40 of 800" in said for said in found.shown)
    assert "supervisor-gone" in ids(found)
    assert not {"silent-end", "failed", "leftovers"} & set(ids(found))


def test_a_run_that_never_began_and_one_without_a_record_are_sentences(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "empty")
    found = report(run)
    assert any("No attempt" in said for said in found.shown)
    run.identity_file.unlink()
    assert any("run.json" in note for note in report(run).notes)


def test_a_training_that_was_only_watched_says_so_and_when_nobody_looked(tmp_path: Path) -> None:
    run = made(tmp_path, foreign=True)
    minutes = [*range(0, 600, 60), *range(4200, 4800, 60)]
    journal(
        run,
        events.RunStarted(run=run.id, name="theirs", foreign=True, t=BEGAN),
        started(by=""),
        *(events.Minute(processes=5, t=BEGAN + second) for second in minutes),
        ended("lost", "its processes have ended", t=BEGAN + 5000),
    )
    write(run.history(1), steps(0, 400, t=BEGAN - 500))
    found = report(run)
    assert "bitwatch did not start it" in of(found, "foreign").title
    gap = of(found, "unwatched")
    assert "1 h 01 m" in gap.title
    assert places(gap) == [("journal.jsonl", 13)]
    assert any(entry.source == "attempts/1/history.jsonl" for entry in found.timeline)


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


def test_a_namespace_that_is_not_ours_is_said(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started())
    identity = run.identity()
    identity.pid_namespace = kernel.pid_namespace() + 1
    rundir.write_identity(run, identity)
    assert "in another pid namespace" in of(report(run), "elsewhere").title
