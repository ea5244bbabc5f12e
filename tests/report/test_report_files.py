"""Paths of every kind, and evidence that is none."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bitwatch import cli
from bitwatch.record.rundir import RunDirError
from bitwatch.report import files, make, markdown, model
from bitwatch.report.lines import Face
from tests.report.incident import LOG, PS, everything, finding, ids, report, write


def test_a_word_that_is_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match="no-such: "):
        make.make(tmp_path, ["no-such"])


def test_what_could_wait_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe.log")
    os.symlink("loop.log", tmp_path / "loop.log")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s.log")  # the whole name may be too long for a socket
        named = [str(tmp_path / name) for name in ("pipe.log", "s.log", "loop.log")]
        made = report(*named, "/dev/zero", str(tmp_path))
    said = "\n".join(made.notes)
    for what in ("is a pipe", "is a socket", "is a device", "levels of symbolic links"):
        assert what in said.lower()
    assert made.verdict.unknown == ["Nothing that was looked at tells of a training."]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (bytes(range(256)) * 8, "is a binary file"),
        (b"to whom it may concern\n" * 9, "says nothing of a training"),
        (b'{"kind":"step","t":1.0}\n', "is a part of a run's record"),
    ],
    ids=["empty", "binary", "prose", "record"],
)
def test_a_file_that_tells_nothing_is_a_sentence(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.log"
    path.write_bytes(content)
    made = report(str(path))
    assert [note for note in made.notes if why in note] and made.findings == []


def test_a_packed_log_is_to_be_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    assert any("unpack it first" in note for note in report(str(path)).notes)


def test_a_log_within_a_line_of_many_megabytes_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with open(path, "wb") as file:
        file.write(LOG.encode())
        for _ in range(24):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + LOG.splitlines()[0].replace("07:14", "09:14").encode())
    made = report(str(path))
    assert ids(made).count("target-lowered") == 1 and "target-raised" in ids(made)


def test_a_folder_is_looked_through_without_checkpoints_and_to_a_depth(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c" / "d" / "e"
    deep.mkdir(parents=True)
    write(deep, "deep.log", LOG)
    inside = tmp_path / "checkpoint-100"
    inside.mkdir()
    write(inside, "hidden.log", LOG)
    write(tmp_path, "notes.md", LOG)
    (tmp_path / "core").write_bytes(b"\0\1" * 600)
    os.symlink(tmp_path, tmp_path / "a" / "again")
    write(tmp_path / "a", "train.log", LOG)
    write(tmp_path / "a", "ps", PS)
    made = report(str(tmp_path))
    sources = {one.source for one in made.timeline if one.line}
    assert sources == {str(tmp_path / "a" / "train.log")}
    assert any("deeper than 4 folders" in note for note in made.notes)
    assert not any("core" in note for note in made.notes)


def test_a_folder_without_a_log_says_so(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 10)
    assert any("there is no log in it" in note for note in report(str(tmp_path)).notes)


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    pieces=st.lists(
        st.one_of(
            st.sampled_from([line.encode() + b"\n" for line in (LOG + PS).splitlines()]),
            st.sampled_from([b"\r", b"\n", b"\x1b[31m", b"\xff\xfe", b"Traceback (most recent call last):\n"]),
            st.binary(max_size=30),
        ),
        max_size=20,
    )
)  # fmt: skip
def test_no_garbage_breaks_a_report_or_its_faces(pieces: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "garbage.log"
    path.write_bytes(b"".join(pieces))
    made = report(str(path))
    for line in Face(80).lines(made):
        assert len(line) <= 80 or " " not in line.strip()
        assert line.isprintable()
    assert all("\n" not in line for line in markdown.lines(made))
    json.loads(model.to_json(made))


def test_untrusted_text_is_shown_literally_and_is_no_markup(tmp_path: Path) -> None:
    evil = "x <script> [link](http://e.x) @all | `code` \x1b]0;title\x07 \u202egnp"
    name = "a|b<i>`*.log"
    path = write(tmp_path, name, LOG + f"2025-08-24 07:17:00,000 [ERROR] {evil}\n")
    made = report(path)
    text = "\n".join(markdown.lines(made))
    assert "\u202e" not in text and "\x1b" not in text
    assert "<script>" not in re.sub(r"`[^`\n]*`", "", text.replace("\\`", ""))
    for row in text.split("## Timeline")[1].splitlines():
        if row.startswith("| 2025"):
            assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert all(line.isprintable() for line in Face(80).lines(made))


def test_colours_are_only_there_when_asked_for(tmp_path: Path) -> None:
    made = report(write(tmp_path, "massive.log", LOG))
    assert "\x1b" not in "\n".join(Face(80).lines(made))
    assert "\x1b[31merror" in "\n".join(Face(80, colours=True).lines(made))


def test_the_command_prints_each_form_and_ends_with_0_whatever_it_finds(tmp_path: Path) -> None:
    log, ps = write(tmp_path, "massive.log", LOG), write(tmp_path, "ps.txt", PS)

    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli.commands, ["report", *words], standalone_mode=False)
        assert result.exception is None
        return result.return_value, result.output

    code, text = run(log, ps)
    assert code == 0 and "by whom: not in the evidence" in text and f"{log}:4" in text
    whole = json.loads(run(log, ps, "--json")[1])
    assert {"timeline", "findings", "verdict", "about", "notes"} <= set(whole)
    assert {"t", "source", "text"} <= set(whole["timeline"][0])
    assert run(log, "--markdown")[1].startswith("# Report: ")
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", str(tmp_path / "none")])
    assert ended.value.code == 2
    assert everything(make.make(tmp_path, [log]))


def test_a_log_that_is_nearly_all_warnings_is_heard_where_it_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FLOOD_LINES", 1000)
    flood = "".join(f"2025-08-24 07:15:00,000 [WARNING] odd thing {n}\n" for n in range(30_000))
    first, *rest = LOG.splitlines(keepends=True)
    died = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\n'
    died += "ValueError: the end of it\n"
    path = write(tmp_path, "flood.log", first + flood + "".join(rest) + flood + died)
    made = report(path)
    assert [one.line for one in finding(made, "target-lowered").evidence] == [1, 30_004]
    assert "the end of it" in finding(made, "exception").title
    assert finding(made, "exception").evidence[0].line == 60_011
    assert any("only those at its end were heard" in note for note in made.notes)
    assert len(made.timeline) < 500
