"""A log is followed whatever happens to its file, and nothing that is no log is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bitwatch.attach.log_file import LogError, LogFile, pieces, unfit
from bitwatch.attach.said import Line
from bitwatch.logs import show
from tests.supervise.standins import ended_run


def texts(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "training.log"


def add(path: Path, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def test_lines_come_as_they_are_written_and_a_last_one_when_it_is_asked_for(path: Path) -> None:
    path.write_text("one\ntw")
    log = LogFile(path)
    assert log.new() == [Line("one", 1, None, str(path))]
    assert log.new() == []
    add(path, "o\nthree")
    assert log.new() == [Line("two", 2, None, str(path))]
    assert texts(log.new(final=True)) == ["three"]
    assert log.trouble == ""


def test_a_file_that_is_not_there_yet_is_read_when_it_comes(path: Path) -> None:
    log = LogFile(path)
    assert log.new() == []
    assert "no such file" in log.trouble
    path.write_text("one\n")
    assert texts(log.new()) == ["one"]
    assert log.trouble == ""


def test_a_rotated_log_is_finished_before_the_new_one_begins(path: Path) -> None:
    path.write_text("one\n")
    log = LogFile(path)
    assert texts(log.new()) == ["one"]
    add(path, "two\nhalf")
    path.rename(path.with_suffix(".1"))
    path.write_text("new one\n")
    assert [(line.text, line.number) for line in log.new()] == [
        ("two", 2),
        ("half", 3),
        ("new one", 1),
    ]


def test_a_truncated_log_begins_anew_even_when_it_has_grown_past_where_it_was(path: Path) -> None:
    path.write_text("one\ntwo\n")
    log = LogFile(path)
    log.new()
    path.write_text("1\n")
    assert [(line.text, line.number) for line in log.new()] == [("1", 1)]
    path.write_text("a much longer text than there was\n2\n")
    assert texts(log.new()) == ["a much longer text than there was", "2"]


def test_what_a_writer_leaves_empty_after_a_truncation_is_skipped(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(b"one\n" * 5000)
        file.flush()
        log = LogFile(path)
        assert len(log.new()) == 5000
        os.truncate(path, 0)
        file.write(b"two\n")  # goes on at its old place: zeros stand before it
        file.flush()
        assert texts(log.new()) == ["two"]


def test_a_deleted_log_is_read_on_as_long_as_it_is_written(path: Path) -> None:
    with open(path, "w") as file:
        file.write("one\n")
        file.flush()
        log = LogFile(path)
        assert texts(log.new()) == ["one"]
        path.unlink()
        file.write("two\n")
        file.flush()
        assert texts(log.new()) == ["two"]
        assert "was deleted or moved away" in log.trouble
    path.write_text("three\n")
    assert texts(log.new()) == ["three"]
    assert log.trouble == ""


def test_the_newest_lines_come_first_rightly_numbered_and_the_gap_can_be_read_later(
    path: Path,
) -> None:
    lines = [f"line {number}" for number in range(1, 20_001)]
    path.write_text("\n".join(lines) + "\n")
    log = LogFile(path, newest_bytes=1000)
    newest = log.new()
    assert newest[-1][:2] == ("line 20000", 20_000)
    assert 50 < len(newest) < 100
    assert log.gap is not None
    older = [line for part in pieces(path, *log.gap) for line in part]
    assert [line[:2] for line in older + newest] == [(f"line {n}", n) for n in range(1, 20_001)]
    add(path, "more\n")
    assert [line[:2] for line in log.new()] == [("more", 20_001)]
    begin = len("line 1\nline 2\n")
    (middle,) = pieces(path, begin, begin + 7)
    assert [line[:2] for line in middle] == [("line 3", 3)]


def test_a_small_log_has_no_gap_and_a_bar_has_a_beginning_within(path: Path) -> None:
    path.write_text("one\n")
    small = LogFile(path, newest_bytes=1000)
    assert texts(small.new()) == ["one"]
    assert small.gap is None
    path.write_text("".join(f"\r {step}/9999" for step in range(10_000)))
    assert texts(LogFile(path, newest_bytes=1000).new(final=True))[-1] == " 9999/9999"


def test_utf_16_is_read_from_its_mark(path: Path) -> None:
    path.write_bytes("\ufeffeins ✅\nzwei\n".encode("utf-16-le"))
    log = LogFile(path)
    assert texts(log.new()) == ["eins ✅", "zwei"]
    with open(path, "ab") as file:
        file.write("drei\n".encode("utf-16-le"))
    assert texts(log.new()) == ["drei"]
    assert [line.number for line in LogFile(path, newest_bytes=12).new()] == [3]


def test_no_more_than_asked_for_is_read_at_once(path: Path) -> None:
    path.write_text("four\n" * 1000)
    log = LogFile(path)
    assert len(log.new(most_bytes=50)) == 10
    assert log.offset == 50
    assert len(log.new()) == 990


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("pipe", "is a pipe, not a log file"),
        ("folder", "is a folder, not a log file"),
        ("device", "is a device, not a log file"),
        ("nothing", "no such file"),
        ("binary", "is a binary file, not a log"),
        ("loop", "cannot be read: Too many levels of symbolic links"),
    ],
)
def test_what_is_no_log_is_refused_with_a_sentence_and_without_waiting(
    path: Path, kind: str, words: str
) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "binary":
        path.write_bytes(b"PK\x03\x04\0\0" * 100)
    elif kind == "loop":
        path.symlink_to(path)
    log = LogFile(path)
    assert log.new(final=True) == []
    assert log.trouble == unfit(path) == f"{path}: {words}"
    if kind != "binary":
        with pytest.raises(LogError, match=words):
            list(pieces(path, 0, 100))


def test_an_empty_file_is_said_to_be_empty_and_may_still_become_a_log(path: Path) -> None:
    path.touch()
    assert unfit(path) == f"{path}: is empty"
    log = LogFile(path)
    assert log.new(final=True) == []
    add(path, "one\n")
    assert texts(log.new()) == ["one"]
    assert unfit(path) == ""


def test_raw_lines_show_their_escapes(path: Path) -> None:
    path.write_text("\x1b[31mred\x1b[0m\nplain\r\n")
    log = LogFile(path, 1 << 20, raw=True)
    assert texts(log.new()) == ["\\x1b[31mred\\x1b[0m", "plain"]


def test_the_newest_part_of_a_line_that_has_no_end_is_given_raw(path: Path) -> None:
    path.write_text("one\n" + "é" * 200_000)
    shown = texts(LogFile(path, 100_001, raw=True).new())  # which begins within a character
    assert shown and "".join(shown).strip("é") == ""


def test_the_command_prints_a_log_to_its_very_end_with_its_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ended_run(tmp_path)
    run.logs(1).mkdir(parents=True, exist_ok=True)
    (run.logs(1) / "rank0.log").write_bytes(b"\x1b[31mred \xff\r\n 10%\r 20%")
    assert show(run, 0, follow=False) == 0
    assert capsys.readouterr().out == "\\x1b[31mred \ufffd\n 10%\\r 20%\n"
    assert show(run, None, follow=False) == 0
    assert capsys.readouterr().out.startswith("rank0  \\x1b[31mred")
