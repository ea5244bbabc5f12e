"""A recorded run explains itself from its record: how its attempts ended, and how it is now."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch.record import events, kernel, rundir
from bitwatch.report.facts import Gathered
from tests.report.runs import (
    BEGAN,
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
    says(run, 0, *steps(0, 40), events.Checkpoint(step=40, path="out/ckpt.pt", t=BEGAN + 40))
    found = report(run)
    assert "bitwatch did not start it" in of(found, "foreign").title
    assert not any("resume" in finding.next for finding in found.findings)
    assert not {"checkpoints", "resume-lost", "not-closed"} & set(ids(found))
    gap = of(found, "unwatched")
    assert "1 h 01 m" in gap.title
    assert places(gap) == [("journal.jsonl", 13)]
    assert any(entry.source == "attempts/1/history.jsonl" for entry in found.timeline)


def test_a_namespace_that_is_not_ours_is_said(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started())
    identity = run.identity()
    identity.pid_namespace = kernel.pid_namespace() + 1
    rundir.write_identity(run, identity)
    assert "in another pid namespace" in of(report(run), "elsewhere").title
