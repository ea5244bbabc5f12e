"""Listings of processes, in the shapes that `ps` prints."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatch.attach.said import Line
from bitwatch.report import processes_text
from bitwatch.report.facts import ListingSeen, ProcessSeen
from bitwatch.report.starts import Around
from tests.report.incident import LISTED, at

SPAWN = "python -c from multiprocessing.spawn import spawn_main"
BESIDE = Around(LISTED, (at("07:14:00"), at("07:16:02")))


def read(text: str, around: Around = BESIDE) -> tuple[ListingSeen, list[ProcessSeen]]:
    lines = [Line(line, number) for number, line in enumerate(text.splitlines(), start=1)]
    return processes_text.read(lines, "ps.txt", around)


@pytest.mark.parametrize(
    ("row", "started", "within_s"),
    [
        (f"13803  Sun Aug 24 07:14:02  {SPAWN}", at("07:14:02"), 1),
        (f"  13803 Sun Aug 24 07:14:02 2025 {SPAWN}", at("07:14:02"), 1),
        (f"13803 1 Sun Aug 24 07:14:02 2025 {SPAWN}", at("07:14:02"), 1),
        (f"root     13803  0.0  0.1 123 678 ?        Sl   07:14   0:01 {SPAWN}", at("07:14:00"), 60),
        (f"root     13803  0.0  0.1 123 678 pts/0    S+   Aug24   0:01 {SPAWN}", at("00:00:00"), 86400),
        (f"root       13803       1  0 07:14 ?        00:00:01 {SPAWN}", at("07:14:00"), 60),
        (f"13803 1 Sl 44:00 {SPAWN}", LISTED - 2640, 2),
        (f"13803 1 Sl 01:00:44:00 {SPAWN}".replace("01:00", "01-00"), LISTED - 2640 - 86400, 2),
        (f"13803 44:00 {SPAWN}", LISTED - 2640, 2),
        (f"13803 pts/1    00:00:01 {SPAWN}", None, 1),
        (f"13803 {SPAWN}", None, 1),
    ],
)  # fmt: skip
def test_a_row_without_a_heading(row: str, started: float | None, within_s: float) -> None:
    lines = [Line("some prose before it", 1), Line(row, 2)]
    assert processes_text.looks_like_one(lines)
    listing, (process,) = processes_text.read(lines, "ps.txt", BESIDE)
    assert (process.pid, process.command, process.role) == (13803, SPAWN, "worker")
    assert (process.started, process.within_s, process.line) == (started, within_s, 2)
    assert [line.text for line in listing.prose] == ["some prose before it"]


def test_a_process_that_began_after_the_clock_of_ps_has_just_begun() -> None:
    """ps takes the one from the other, and has no sign for what comes of it."""
    text = "  PID  PPID STAT     ELAPSED CMD\n    7     1 R    441057603-16:31:15 python train.py"
    lines = [Line(line, number) for number, line in enumerate(text.splitlines(), start=1)]
    _, (found,) = processes_text.read(lines, "ps.txt", Around(1_800_000_000.0))
    assert found.started == 1_800_000_000.0


@pytest.mark.parametrize("options", ["-eo pid,lstart,args", "aux", "-ef", "-eo pid,ppid,stat,etime,cmd",
                                     "-eo args:90,pid,lstart", "-eo user,pid,start,command", "-e"])  # fmt: skip
def test_what_the_ps_of_this_machine_prints_is_read(options: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        before = time.time()
        text = subprocess.run(
            ["ps", *options.split()],
            env={**os.environ, "COLUMNS": "1000"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        lines = [Line(line, number) for number, line in enumerate(text.splitlines(), start=1)]
        assert processes_text.looks_like_one(lines[:40])
        _, found = processes_text.read(lines, "ps.txt", Around(before))
        (ours,) = [process for process in found if process.pid == child.pid]
        if options == "-e":
            assert ours.started is None
        else:
            assert "input()" in ours.command
            assert ours.started is not None
            assert ours.started - 5 <= before <= ours.started + ours.within_s + 5
    finally:
        child.communicate(b"\n")


def test_a_weekday_that_does_not_agree_is_no_start() -> None:
    listing, (process,) = read(f"13803  Mon Aug 24 07:14:02  {SPAWN}")
    assert process.started is None
    assert "no year near it has Aug 24 as a Mon" in process.inferred
    assert any("no year near it" in note for note in listing.notes)
    _, (process,) = read(f"13803  Mon Aug 24 07:14:02 2025  {SPAWN}")
    assert process.started is None and "Aug 24 2025 is no Mon" in process.inferred


def test_a_missing_year_is_taken_from_the_logs_before_the_files_time() -> None:
    row = f"13803  Sun Aug 24 07:14:02  {SPAWN}"
    _, (process,) = read(row, Around(LISTED + 3 * 365 * 86400, (at("07:16:02"),)))
    assert process.started == at("07:14:02")
    assert "taken from the logs beside it, and its weekday agrees" in process.inferred
    _, (process,) = read(row, Around(LISTED))
    assert process.started == at("07:14:02") and "the listing's file" in process.inferred


def test_an_age_in_a_listing_that_was_copied_later_tells_no_start() -> None:
    _, (process,) = read(f"13803 44:00 {SPAWN}", Around(LISTED + 90 * 86400, (at("07:16:02"),)))
    assert process.started is None and "when the listing was taken is not" in process.inferred


def test_what_torchrun_started_is_a_rank_and_an_editor_is_not() -> None:
    _, found = read(
        "  PID  PPID CMD\n"
        "   10     1 python -m torch.distributed.run train.py\n"
        "   11    10 /usr/bin/python3 -u train.py\n"
        f"   12    11 {SPAWN}; spawn_main(tracker_fd=5)\n"
        "   13     1 vim train.py multiprocessing.spawn\n"
    )
    assert [process.role for process in found] == ["agent", "rank", "worker", "other"]


def test_a_log_is_no_listing() -> None:
    log = ["2025-08-24 07:14:00,709 [INFO] Target: 1 parameters", "iter 100: loss 3.1", "12 files"]
    assert not processes_text.looks_like_one([Line(text, 1) for text in log])
    assert not processes_text.looks_like_one([])


@given(st.text(alphabet=st.sampled_from("0123456789 :-AugSunpythondPIDSCMR\t.%?/é"), max_size=120))
def test_no_text_is_too_odd(text: str) -> None:
    listing, found = read(f"  PID STARTED CMD\n{text}\n{text}")
    assert listing.processes == len(found) <= 2
    read(text)
