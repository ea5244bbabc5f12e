"""What a line of a log looks like: its level by its words, its time, and what a bar leaves."""

from __future__ import annotations

import pytest

from bitwatch.attach.log_levels import level, stamp, text_of
from bitwatch.attach.log_search import Troubles


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-08-24 07:14:00,709 [ERROR] the disk is full", "bad"),
        ("CRITICAL:root:nothing works", "bad"),
        ("Traceback (most recent call last):", "bad"),
        ("[rank1]: Traceback (most recent call last):", "bad"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to", "bad"),
        ("[rank0]:[E824 07:14:00.709 ProcessGroupNCCL.cpp:632] timeout", "bad"),
        ("E0824 07:14:00.709000 12 api.py:1003] failed (exitcode: -9)", "bad"),
        ("train.py: rank 0: the loss is nan", "bad"),
        ("/x/dataloader.py:617: UserWarning: This DataLoader will", "warning"),
        ("W0824 07:14:00.709000 12 torch/distributed/run.py:793] ****", "warning"),
        ("Warning: something", "warning"),
        ("Too many dataloader workers: 2 (max is dataset.num_shards=1).", "warning"),
        ("2025-08-24 07:14:00 - DEBUG - cache miss", "quiet"),
        ("val_error: 0.31 error_rate=0.2", ""),
        ("error: 0.31", ""),
        ("no errors were found", ""),
        ('  File "/x/torch/errors.py", line 3, in f', ""),
        ("step 10 loss 0.41", ""),
    ],
)
def test_a_level_is_told_by_the_words(text: str, expected: str) -> None:
    assert level(text) == expected
    is_found = bool(Troubles().rows(f"{text}\n".encode(), 0))
    assert is_found or expected in ("", "quiet")


def test_the_time_of_a_line_is_found_where_it_stands() -> None:
    text = "[rank0] 2025-08-24 07:14:00,709 hello"
    begin, end = stamp(text)
    assert text[begin:end] == "2025-08-24 07:14:00,709"
    assert stamp("hello 12:00") == (0, 0)


@pytest.mark.parametrize(
    ("data", "shown", "raw"),
    [
        (b"\x1b[31mred\x1b[0m [bold]x[/]", "red [bold]x[/]", "\\x1b[31mred\\x1b[0m [bold]x[/]"),
        (b"10%|##  \r100%|####\r", "100%|####", "10%|##  \\r100%|####"),
        (b"abcdef\rxy", "xycdef", "abcdef\\rxy"),
        (b"abcdef\r\x1b[Kxy", "xy", "abcdef\\r\\x1b[Kxy"),
        (b"a\tb\r", "a    b", "a    b"),
        ("\u202eabc \x07é".encode(), "\\u202eabc \\x07é", "\\u202eabc \\x07é"),
        (b"\xff", "\ufffd", "\ufffd"),
    ],
)
def test_a_line_is_shown_as_a_terminal_would_in_the_end_or_raw(
    data: bytes, shown: str, raw: str
) -> None:
    assert text_of(data) == shown
    assert text_of(data, raw=True) == raw
