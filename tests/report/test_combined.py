"""Several words in one report: what is a run and what a path, and what they have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch.record.rundir import RunDirError
from bitwatch.report import combined
from bitwatch.report.facts import Gathered, ListingSeen, LogSeen, ProcessSeen
from tests.report.runs import BEGAN, ended, ids, journal, made, of, process, started

LISTING = "/tmp/ps.txt"


def seen(pid: int, began: float | None, line: int = 2) -> ProcessSeen:
    return ProcessSeen(pid=pid, started=began, source=LISTING, line=line, text="a line")


def report(
    home: Path, words: list[str], taken: float = BEGAN + 100, *found: ProcessSeen
) -> Gathered:
    gathered = Gathered(listings=[ListingSeen(path=LISTING, taken=taken)], processes=list(found))
    runs, paths = combined.sort_out(home, words)
    told = combined.add_runs(gathered, runs, [], alone=not paths)
    combined.cross(gathered, told)
    return gathered


def test_an_existing_path_wins_over_a_run_and_a_runs_folder_is_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path / "home")
    log = tmp_path / run.id
    log.write_text("a log that is called like a run")
    monkeypatch.chdir(tmp_path)
    words = [run.id, str(run.path), f"{run.path}/"]
    runs, paths = combined.sort_out(tmp_path / "home", words)
    assert [one.id for one in runs] == [run.id]
    assert paths == [run.id]
    log.unlink()
    runs, paths = combined.sort_out(tmp_path / "home", [run.id, run.id[:14], "demo"])
    assert ([one.id for one in runs], paths) == ([run.id], [])


@pytest.mark.parametrize("word", ["nothing", "/no/such/path", "", "a/b", "..x", "\x00"])
def test_a_word_that_is_nothing_is_one_sentence(tmp_path: Path, word: str) -> None:
    made(tmp_path)
    with pytest.raises(RunDirError) as error:
        combined.sort_out(tmp_path, [word])
    assert "\n" not in str(error.value)


def test_two_runs_are_one_timeline_and_each_source_names_its_run(tmp_path: Path) -> None:
    early, late = made(tmp_path, "early"), made(tmp_path, "late")
    journal(early, started(t=BEGAN), ended("done", t=BEGAN + 300))
    journal(late, started(t=BEGAN + 100), ended("done", t=BEGAN + 200))
    found = report(tmp_path, ["late", "early"])
    entries = sorted(found.timeline, key=lambda entry: entry.t or 0.0)
    sources = [entry.source.split("/")[0] for entry in entries]
    assert sources == [early.id, late.id, late.id, early.id]


def test_a_listing_is_matched_by_pid_and_start_and_not_by_pid_alone(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started(), process(13803, "worker", 1), process(13935, "worker", 2))
    known = [seen(13803, BEGAN + 2.0, 7), seen(13935, None), seen(13935, BEGAN + 900)]
    found = report(tmp_path, [run.id], BEGAN + 100, *known)
    finding = of(found, "on-record")
    assert f"1 process of {LISTING} is of run {run.id}" in finding.title
    assert [(one.source, one.line) for one in finding.evidence] == [(LISTING, 7)]
    assert "worker of rank 1, attempt 1" in finding.evidence[0].text


def test_a_listing_from_after_the_end_shows_leftovers(tmp_path: Path) -> None:
    run = made(tmp_path)
    journal(run, started(), process(13803, "worker", 1), ended("failed", "KeyError", t=BEGAN + 50))
    before = report(tmp_path, [run.id], BEGAN + 40, seen(13803, BEGAN + 1))
    assert "leftovers" not in ids(before)
    after = report(tmp_path, [run.id], BEGAN + 2700, seen(13803, BEGAN + 1))
    assert "that had ended" in of(after, "leftovers").title


def test_a_log_leads_to_its_run(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.log"
    theirs.write_text("step 1\n")
    own, foreign = made(tmp_path), made(tmp_path, "foreign", foreign=True, logs=[str(theirs)])
    paths = [str(own.logs(1) / "rank0.log"), str(theirs), "/var/log/other.log"]
    gathered = Gathered(logs=[LogSeen(path=path) for path in paths])
    combined.cross(gathered, combined.add_runs(gathered, [foreign], [], alone=False))
    titles = [finding.title for finding in gathered.findings if finding.id == "on-record"]
    assert titles == [
        f"{paths[0]} is a log of run {own.id}, which is on record",
        f"{paths[1]} is a log of run {foreign.id}, which is on record",
    ]
