"""Numbers and untrusted text as a terminal shows them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatch import text


@given(st.text())
def test_no_text_can_move_a_cursor_or_reorder_a_line(anything: str) -> None:
    shown = text.literal(anything)
    assert all(c == " " or unicodedata.category(c)[0] not in "CZ" for c in shown)


def test_printable_text_stays_as_it_is() -> None:
    assert text.literal("[b]grün[/b] 水 é") == "[b]grün[/b] 水 é"
    assert text.literal("a\x1b[2Jb\r\u202ec") == "a\\x1b[2Jb\\r\\u202ec"


@given(st.text())
def test_several_lines_keep_newlines_and_tabs_and_nothing_else(anything: str) -> None:
    shown = text.literal_lines(anything)
    assert shown.count("\n") == anything.count("\n")
    assert all(c in "\n\t " or unicodedata.category(c)[0] not in "CZ" for c in shown)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "n/a"),
        (0.0, "0.0 s"),
        (8.24, "8.2 s"),
        (9.99, "10.0 s"),
        (59.7, "1 m 00 s"),
        (130, "2 m 10 s"),
        (3599.9, "1 h 00 m"),
        (7500, "2 h 05 m"),
        (86399.9, "1 d 0 h"),
        (3 * 86400 + 4 * 3600, "3 d 4 h"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float | None, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "n/a"), (7, "7"), (24_100, "24.1k"), (1_208_606_722, "1.21G"), (2.5e6, "2.5M")],
)
def test_short_numbers(value: float | None, shown: str) -> None:
    assert text.short(value) == shown


def test_sizes_percents_and_counts() -> None:
    assert text.size(324.6 * 1024) == "324.6 KiB"
    assert text.size(14.5 * 2**30) == "14.5 GiB"
    assert text.size(12) == "12 B"
    assert text.size(None) == "n/a"
    assert text.percent(0.354) == "35 %"
    assert text.percent(None) == "n/a"
    assert text.number(float("nan"), 3) == "nan"
    assert text.number(None, 3) == "n/a"
    assert text.counted(1, "shard") == "1 shard"
    assert text.counted(1802, "shard") == "1,802 shards"


def test_what_an_error_says_has_no_number_of_the_kernels() -> None:
    assert text.sentence(OSError(30, "Read-only file system", "/a/b")) == (
        "/a/b: Read-only file system"
    )
    assert text.sentence(OSError("no room")) == "no room"
    assert text.sentence(KeyError()) == "KeyError"
