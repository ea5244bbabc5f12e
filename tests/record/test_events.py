"""Records survive JSON, odd numbers and lines that are no records."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatch.record import codec, events


@given(st.floats(), st.floats() | st.none(), st.integers(0, 2**53))
def test_every_float_comes_back_as_it_was(loss: float, norm: float | None, step: int) -> None:
    written = events.Step(step=step, loss=loss, grad_norm=norm, step_s=0.5)
    read = codec.decode(codec.encode(written))
    assert isinstance(read, events.Step)
    assert read.step == step
    assert read.loss == loss or (math.isnan(loss) and math.isnan(read.loss or 0.0))
    assert (read.grad_norm is None) == (norm is None)
    assert read.t == written.t
    assert read.m == written.m


def test_a_null_and_a_nan_are_told_apart() -> None:
    line = codec.encode(events.Step(loss=math.nan))
    assert b'"nonfinite":{"loss":"nan"}' in line
    assert codec.decode(codec.encode(events.Step(loss=None))).loss is None  # type: ignore[union-attr]
    assert math.isnan(codec.decode(line).loss)  # type: ignore[union-attr, arg-type]


@given(st.binary(max_size=200))
def test_any_line_is_a_record_or_nothing(line: bytes) -> None:
    decoded = codec.decode(line)
    assert decoded is None or isinstance(decoded, events.Record)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b'{"kind":"from-the-future","x":1}',
        b'{"kind":"step","loss":"low"}',
        b'{"kind":"step","nonfinite":{"loss":"far"}}',
        b'{"kind":"step","step":1',
        b"[" * 100_000,
        b'{"kind":"step","step":\xff}',
        b'{"kind":["step"]}',
    ],
)
def test_what_is_no_record_is_none(line: bytes) -> None:
    assert codec.decode(line) is None


def test_unknown_fields_are_ignored() -> None:
    record = codec.decode(b'{"kind":"step","step":4,"entropy":[1,{"a":2}],"t":1,"m":2}')
    assert record == events.Step(step=4, t=1.0, m=2.0)
