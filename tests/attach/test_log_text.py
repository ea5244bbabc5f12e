"""From bytes to clean lines: colours, bars, times, lengths, encodings."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatch.attach.log_text import LONGEST, Splitter, clean, encoding_of, looks_binary
from bitwatch.attach.log_times import Times
from bitwatch.attach.sieve import Sieve


def texts(data: bytes, final: bool = True) -> list[str]:
    splitter = Splitter()
    lines = splitter.feed(data) + (splitter.end() if final else [])
    return [line.text for line in lines]


def local(*parts: int) -> float:
    return time.mktime((*parts, 0, 0, -1))  # type: ignore[arg-type]


def test_colours_titles_and_links_are_taken_out_and_the_rest_cannot_move_a_cursor() -> None:
    assert (
        clean("\x1b[31mstep:\x1b[0m 1 \x1b]0;title\x07\x1b]8;;http://x\x1b\\link") == "step: 1 link"
    )
    assert clean("a\x1b[2Kb\x08c\td") == "ab\\x08c    d"
    assert clean("x\u202ey") == "x\\u202ey"  # would turn the line around


def test_a_line_is_cut_at_its_longest() -> None:
    assert len(clean("x" * 10_000)) == LONGEST
    assert texts(b"\x1b[32m" + b"y" * 9_000 + b"\nnext\n") == ["y" * LONGEST, "next"]


def test_windows_ends_of_lines_and_indentation() -> None:
    assert texts(b"one\r\n  two\r\n\r\nthree") == ["one", "  two", "", "three"]


def test_of_a_progress_bar_the_last_piece_stands() -> None:
    bar = b"\r  0%| | 0/2\r 50%|#| 1/2\r100%|##| 2/2\nafter\n"
    assert texts(bar) == ["100%|##| 2/2", "after"]
    assert texts(b"\r 50%|#| 1/2\r          \r{'loss': 1}\n") == ["{'loss': 1}"]


def test_a_bar_that_is_being_written_gives_its_newest_whole_piece_once() -> None:
    splitter = Splitter()
    assert splitter.feed(b"before\n\r  0%\r 10%") == [
        *splitter_lines("before", 1),
        *splitter_lines("  0%", 2),
    ]
    assert [line.text for line in splitter.feed(b"\r 20%\r 30%")] == [" 20%"]
    assert [(line.text, line.number) for line in splitter.feed(b"\r\nend\n")] == [
        (" 30%", 2),
        ("end", 3),
    ]


def splitter_lines(text: str, number: int) -> list[tuple[str, int, None, str]]:
    return [(text, number, None, "")]


def test_an_end_of_a_line_that_comes_in_two_parts_is_no_bar() -> None:
    splitter = Splitter()
    assert splitter.feed(b"one\r") == []
    assert [line.text for line in splitter.feed(b"\ntwo\r\n")] == ["one", "two"]


def test_a_long_bar_gives_few_lines_and_they_go_on_to_its_end() -> None:
    bar = b"".join(b"\r%6d/100000 [00:10<00:10, 4.9it/s]" % step for step in range(100_000)) + b"\n"
    found = texts(bar)
    steps = [int(text.split("/")[0]) for text in found]
    assert 100 < len(found) < 400
    assert steps == sorted(steps)
    assert steps[-1] == 99_999


def test_a_line_without_an_end_is_not_kept_in_memory() -> None:
    splitter = Splitter()
    for _ in range(100):
        assert splitter.feed(b"z" * (1 << 20)) == []
        assert len(splitter._rest) <= 1 << 15
    found = splitter.feed(b"\nafter it\n")
    assert [(line.text, line.number) for line in found] == [("z" * LONGEST, 1), ("after it", 2)]


@pytest.mark.parametrize(
    ("text", "t"),
    [
        ("2025-08-24 07:14:00,709 [INFO] x", local(2025, 8, 24, 7, 14, 0) + 0.709),
        ("[2025-08-24 07:14:00.5] x", local(2025, 8, 24, 7, 14, 0) + 0.5),
        ("[titan] 2025-08-24 07:14:00,250 - x", local(2025, 8, 24, 7, 14, 0) + 0.25),
        ("2025-08-24T07:14:00Z x", datetime(2025, 8, 24, 7, 14, tzinfo=UTC).timestamp()),
        ("2025-08-24T07:14:00+02:00 x", datetime(2025, 8, 24, 5, 14, tzinfo=UTC).timestamp()),
        ("08/24/2025 07:14:00 - INFO - x", local(2025, 8, 24, 7, 14, 0)),
        ("[08/24 07:14:00] x", local(2025, 8, 24, 7, 14, 0)),
        ("I0824 07:14:00.709 12 file.py:3] x", local(2025, 8, 24, 7, 14, 0) + 0.709),
        ("[rank1]:[E824 07:14:00.709 ProcessGroup] x", local(2025, 8, 24, 7, 14, 0) + 0.709),
        ("[Sun Aug 24 07:14:00 2025] Out of memory", local(2025, 8, 24, 7, 14, 0)),
        ("Aug 24 07:14:00 host kernel: x", local(2025, 8, 24, 7, 14, 0)),
        ("[12/30 07:14:00] written at new year's", local(2024, 12, 30, 7, 14, 0)),
    ],
)
def test_times_of_loggers(text: str, t: float) -> None:
    near = local(2025, 8, 24, 12, 0, 0)
    assert Times(near).read(text) == pytest.approx(t, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "no time",
        "2025-13-45 07:14:00 x",
        "2025-08-24 99:14:00 x",
        "elapsed 07:14:00",
        "[00:10<1:22:01,  2.83s/it]",
        "Abc 24 07:14:00 x",
        "2025-08-24T07:14:00+99:99 x",
        "x" * 200 + "2025-08-24 07:14:00",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert Times(0.0).read(text) is None


def test_a_stamp_without_a_year_has_the_one_of_the_log_it_stands_in() -> None:
    times = Times(time.mktime((2026, 11, 30, 0, 0, 0, 0, 0, -1)))
    year = lambda text: time.localtime(times.read(text)).tm_year  # noqa: E731
    assert year("I0824 07:20:02.100000 1 api.py:946] x") == 2026
    assert year("[2024-12-31 23:59:59] Starting training") == 2024
    assert year("I1231 23:59:59.900000 1 api.py:946] x") == 2024
    assert year("I0101 00:00:01.100000 1 api.py:946] x") == 2025
    assert year("an article of 2011-01-01 00:00:00 is no stamp") == 2011
    assert year("I0229 00:00:01.100000 1 api.py:946] x") == 2024


def test_binary_files_and_encodings_are_told_by_their_beginning() -> None:
    assert looks_binary(b"PK\x03\x04" + bytes(range(256)))
    assert looks_binary(bytes(range(1, 8)) * 20)
    assert not looks_binary("naïve ✅ \x1b[31mred\x1b[0m\r\n".encode())
    assert not looks_binary(b"\0" * 4096 + b"a log that was truncated under its writer\n")
    line = "naïve ✅ step 1 loss 2.0\n".encode()
    assert not looks_binary(line * 9 + b"\0" * 3000 + line * 400)  # a loss of power
    assert looks_binary(line * 9 + b"\0" * 30 + b"\xff\xfe\x80" * 400)
    assert looks_binary((line + b"\0") * 9)
    assert encoding_of("\ufeffx".encode("utf-16-le")) == "utf-16-le"
    assert not looks_binary("\ufeffx".encode("utf-16-le"))
    assert not looks_binary(b"")


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert texts(b"caf\xe9 1\n") == ["caf\ufffd 1"]


def test_raw_lines_keep_everything_and_show_it_literally() -> None:
    splitter = Splitter(raw=True)
    found = splitter.feed(b"\x1b[31mred\r 10%\tx\n" + b"a" * (3 << 20))
    assert found[0].text == "\\x1b[31mred\\r 10%    x"
    assert sum(len(line.text) for line in found[1:] + splitter.end()) == 3 << 20


def test_a_sieve_passes_what_has_a_word_and_what_stands_below_an_opening() -> None:
    block = b"nothing\nLOSS 1\nTraceback (x\n  a\n" + b"b\n" * 200
    sieve = Sieve(["loss"], ["traceback ("])
    passed = [block[begin:end] for begin, end in sieve.spans(block)]
    assert passed[:3] == [b"LOSS 1", b"Traceback (x", b"  a"]
    assert len(passed) == 2 + Sieve.FOLLOWING
    half = Sieve(["loss"], ["traceback ("])
    first = half.spans(block[:32])
    rest = half.spans(block[32:])
    assert len(first) + len(rest) == len(passed)


def test_sifted_lines_have_the_numbers_and_texts_that_all_lines_have() -> None:
    data = b"".join(b"line %d%s\n" % (n, b" loss" if n % 7 == 0 else b"") for n in range(1, 5000))
    sifted, whole = Splitter(), Splitter()
    sieve = Sieve(["loss"], [])
    some = [
        line for at in range(0, len(data), 999) for line in sifted.feed(data[at : at + 999], sieve)
    ]
    assert some == [line for line in whole.feed(data) if "loss" in line.text]


def test_a_log_of_nothing_but_steps_is_thinned_out_evenly_with_its_last_one() -> None:
    block = b"".join(b"iter %07d: loss 3.1\n" % n for n in range(50_000))
    size = len(block) * 200
    passed = [block[a:b] for a, b in Sieve(["error"], [], ["loss"], size).spans(block)]
    assert len(passed) < 1000
    numbers = [int(line[5:12]) for line in passed]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-1] == 49_999
    assert max(b - a for a, b in pairwise(numbers)) < 2000
    assert len(Sieve(["error"], [], ["loss"], 1 << 20).spans(block)) == 50_000


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes_in_any_parts_give_harmless_lines(data: bytes, part: int) -> None:
    splitter = Splitter()
    found = []
    for at in range(0, len(data), part):
        found += splitter.feed(data[at : at + part])
    for line in found + splitter.end():
        assert line.text.isprintable()
        assert 1 <= line.number <= data.count(b"\n") + 1
