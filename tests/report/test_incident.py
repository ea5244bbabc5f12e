"""What the report says about the incident's evidence: the right-hand column of its table."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest

from bitwatch.report import model
from bitwatch.report.model import Report
from tests.report.incident import LISTED, LOG, PS, everything, finding, ids, report, write


def coloured(text: str) -> str:
    lines = [f"\x1b[32m{line[:10]}\x1b[0m{line[10:]}" for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def dos(text: str) -> str:
    return text.replace("\n", "\r\n")


def same(text: str) -> str:
    return text


@pytest.fixture(params=[same, coloured, dos], ids=["plain", "colours", "crlf"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Report:
    disguise = request.param
    ps = write(tmp_path, "ps.txt", disguise(PS))
    return report(ps, write(tmp_path, "massive.log", disguise(LOG)))


def lines_of(made: Report, id_: str) -> set[int | None]:
    return {one.line for one in finding(made, id_).evidence if one.source.endswith("massive.log")}


def test_the_attempt_at_1_21_billion_is_matched_with_the_processes_that_began_with_it(
    made: Report,
) -> None:
    assert (
        "Attempt 1 (1,208,606,722 parameters) began at 2025-08-24 07:14:00, and processes 13803 "
        "and 13935 started 1.3 s to 2.3 s after its first line." in made.verdict.shown
    )
    left = finding(made, "leftovers")
    assert [one.source for one in left.evidence if one.source.startswith("process")] == [
        "process 13803",
        "process 13935",
    ]
    assert lines_of(made, "leftovers") == {1, 4}
    assert any("process 20966 started 1.2 s after" in said for said in made.verdict.shown)


def test_the_changed_target_is_loud_and_by_whom_is_not_in_the_evidence(made: Report) -> None:
    lowered = finding(made, "target-lowered")
    assert lowered.severity == "error"
    assert made.findings[0] is lowered
    assert "from 1,208,606,722 to 679,962,626" in lowered.title
    assert "07:15:48; by whom: not in the evidence" in lowered.title
    assert [one.line for one in lowered.evidence] == [1, 4]
    assert any(said.startswith("Who or what changed the target") for said in made.verdict.unknown)


def test_the_printed_count_is_a_flat_shard_and_no_third_model(made: Report) -> None:
    share = finding(made, "count-is-shard")
    assert "169,990,657 parameters is one rank's shard of the 679,962,626 on 4 ranks" in share.title
    assert "flat shard, as FSDP1 prints it" in share.why
    assert "would have printed 302,151,681" in share.why
    assert [one.line for one in share.evidence] == [4, 5, 6]
    assert "parameters-differ" not in ids(made)
    assert ids(made).count("target-lowered") == 1


def test_the_warning_is_explained_with_what_it_does_not_explain(made: Report) -> None:
    workers = finding(made, "workers-exceed-shards")
    assert lines_of(made, "workers-exceed-shards") == {8}
    assert "2 of 4 readers read and 2 idle" in workers.why
    assert "every rank reads everything, 4 copies" in workers.why
    assert "8 of 16 readers idle" in workers.why
    assert "may end at different steps" in workers.why
    assert "alone ends cleanly" in workers.why and "is not shown" in workers.why
    assert "reshard" in workers.next and "indexed" in workers.next
    assert any(said.startswith("Why no step was printed") for said in made.verdict.unknown)


def test_both_remedies_are_refused_with_reasons(made: Report) -> None:
    refused = [one for one in made.findings if one.id == "remedy-refused"]
    by_title = {one.title.removeprefix("Does not help here: "): one for one in refused}
    fewer = by_title["num_workers = min(4, num_shards // world_size)"]
    assert "min(4, 2 // 4) = 0 workers" in fewer.why
    more = by_title["dataset.shard(num_shards=world_size * 4)"]
    assert "TypeError" in more.why and "cannot add any" in more.why
    assert [[one.line for one in remedy.evidence] for remedy in refused] == [[8], [8]]


def test_cleaning_up_by_a_pattern_or_a_reset_is_no_remedy(made: Report) -> None:
    left = finding(made, "leftovers")
    assert "bitwatch clean" in left.next and "by its pid" in left.next
    assert "Neither `pkill -f multiprocessing.spawn` nor a GPU reset is a remedy" in left.next


def test_hundreds_more_in_prose_are_no_processes(made: Report) -> None:
    left = finding(made, "leftovers")
    assert left.title.startswith("2 processes of attempt 1")
    assert '"... hundreds more" is prose: no process is counted from it' in left.why
    assert any(one.source.endswith("ps.txt") and one.line == 4 for one in left.evidence)


def test_the_class_of_cause_is_configuration_and_the_end_is_not_explained(made: Report) -> None:
    cause = finding(made, "class-of-cause")
    assert cause.title == "Class of what is wrong: configuration"
    assert "Nothing points at the architecture" in cause.why and "hardware" in cause.why
    assert "none of it explains" in cause.why
    (end,) = [one for one in made.findings if one.id == "silent-end" and one.severity != "info"]
    assert "07:16:02 (line 8)" in end.title and "no step was ever printed" in end.title


def test_nothing_is_claimed_that_the_evidence_does_not_show(made: Report) -> None:
    said = everything(made)
    assert not re.search(
        r"\bhung\b|scaled (itself|down)|by itself lowered|fell back|deadlock", said, re.IGNORECASE
    )
    assert not any(
        re.search(r"\bhang", sentence) for sentence in made.verdict.shown + made.verdict.likely
    )
    assert "the year 2025 is taken from the logs beside it, and its weekday agrees" in said


def test_every_moment_of_the_timeline_has_its_source(made: Report) -> None:
    times = [entry.t for entry in made.timeline]
    assert times == sorted(times, key=lambda t: t or 0.0)
    assert [entry.source for entry in made.timeline if entry.source.startswith("process")] == [
        "process 13803",
        "process 13935",
        "process 20966",
    ]
    lines = [entry.line for entry in made.timeline if entry.source.endswith("massive.log")]
    assert lines == list(range(1, 9))
    assert all("\x1b" not in entry.text for entry in made.timeline)


def test_neither_the_order_of_words_nor_a_log_cut_in_two_changes_what_is_said(
    tmp_path: Path,
) -> None:
    cut = LOG.splitlines(keepends=True)
    ps = write(tmp_path, "a-ps", PS)
    whole = write(tmp_path, "whole.log", LOG)
    parts = [
        write(tmp_path, "z1.log", "".join(cut[:4])),
        write(tmp_path, "b.out", "".join(cut[4:])),
    ]
    wanted = everything(report(ps, whole)).replace(" (line 8)", "")
    for words in itertools.permutations([ps, *parts]):
        assert everything(report(*words)).replace(" (line 4)", "") == wanted
    assert model.to_json(report(whole, ps)) == model.to_json(report(ps, whole))
    assert finding(report(ps, *parts), "count-is-shard").evidence[-1].line == 2


def test_a_folder_with_a_log_and_processes_and_no_results_is_no_run_that_never_happened(
    tmp_path: Path,
) -> None:
    write(tmp_path, "massive.log", LOG)
    write(tmp_path, "ps.txt", PS)
    (tmp_path / "config.toml").write_text("x = 1")
    made = report(str(tmp_path))
    absent = finding(made, "absence-contradicted")
    assert absent.title.startswith("There is no results file and no checkpoint in ")
    assert "attempt 1 (1,208,606,722 parameters)" in absent.why
    assert "3 processes of a training" in absent.why
    assert "leftovers" in ids(made)
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "checkpoints").mkdir()
    assert "absence-contradicted" not in ids(report(str(tmp_path)))


def test_a_listing_that_was_copied_years_later_says_what_was_inferred(tmp_path: Path) -> None:
    log = write(tmp_path, "massive.log", LOG)
    ps = write(tmp_path, "ps.txt", PS, LISTED + 400 * 86400)
    made = report(log, ps)
    assert finding(made, "leftovers").title.startswith("2 processes of attempt 1")
    assert any("the file's time is far from that of the logs" in note for note in made.notes)


def test_a_listing_alone_says_that_no_log_explains_it(tmp_path: Path) -> None:
    made = report(write(tmp_path, "ps.txt", PS))
    assert ids(made) == ["processes-without-attempt"]
    assert "No log is there" in made.findings[0].why


def test_the_process_list_of_before_the_second_attempt_shows_no_leftovers(tmp_path: Path) -> None:
    early = "".join(PS.splitlines(keepends=True)[:2])
    log = write(tmp_path, "massive.log", LOG)
    assert "leftovers" not in ids(report(log, write(tmp_path, "ps", early, LISTED - 2640)))
    assert "leftovers" in ids(report(log, write(tmp_path, "ps", early, LISTED)))


def test_the_same_file_named_twice_counts_once(tmp_path: Path) -> None:
    log = write(tmp_path, "massive.log", LOG)
    os.symlink(log, tmp_path / "z.log")
    made = report(log, log, str(tmp_path / "z.log"), str(tmp_path))
    assert len(finding(made, "attempts").evidence) == 2
    assert any("is the same file as another" in note for note in made.notes)
