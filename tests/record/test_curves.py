"""The curves of a run are the same whichever way its records are read."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitwatch.record import codec, curves, events, history, stretch
from bitwatch.record.follow import Follower
from bitwatch.record.history import Past
from bitwatch.record.series import Series
from bitwatch.record.state import RankState, RunState, Source, fold
from tests.tui import recorded

RANK = Source("rank", 1, 0)
REALS = st.one_of(st.none(), st.floats(0, 100, width=32))


@st.composite
def steps(draw: st.DrawFn) -> list[events.Step]:
    """Step records as a rank writes them: now and then something is missing or not finite, and
    now and then the steps go back."""
    found = []
    at = 0
    for _ in range(draw(st.integers(0, 60))):
        at = max(1, at + draw(st.sampled_from([1, 1, 1, 10, 300, -7, -200])))
        odd = draw(st.sampled_from([None, None, {"loss": "nan"}, {"grad_norm": "inf"}]))
        values = {name: draw(REALS) for name in ("loss", "bits_per_byte", "grad_norm", "data_s")}
        values |= {name: None for name in odd or ()}
        found.append(
            events.Step(
                step=at,
                tokens=draw(st.sampled_from([0, at * 64])),
                step_s=draw(st.sampled_from([None, 0.0, 0.5])),
                nonfinite=odd,
                t=1000.0 + len(found),
                m=0.0,
                **values,
            )
        )
    return found


def one_by_one(records: list[events.Step]) -> RankState:
    made = RankState()
    for record in records:
        made.loss.add(record.step, curves.value(record, "loss"))
        for name in curves.NAMES:
            value = curves.value(record, name)
            if value is not None:
                made.curves.setdefault(name, Series()).add(record.step, value)
    return made


def same(one: RankState, other: RankState) -> bool:
    assert set(one.curves) == set(other.curves)
    for name in ("loss", *one.curves):
        first = one.loss if name == "loss" else one.curves[name]
        second = other.loss if name == "loss" else other.curves[name]
        for field in ("width", "starts", "low", "high", "counts", "nonfinite", "nonfinite_count"):
            assert getattr(first, field) == getattr(second, field), (name, field)
        assert first.first_nonfinite == second.first_nonfinite
        assert all(map(math.isclose, first.total, second.total))
    return True


@given(steps(), st.integers(1, 7))
@settings(deadline=None)
def test_a_fold_in_batches_gives_what_one_by_one_gives(
    records: list[events.Step], batch: int
) -> None:
    state = RunState()
    fold(state, RANK, [])
    for at in range(0, len(records), batch):
        fold(state, RANK, records[at : at + batch])
    assert same(state.ranks[1, 0], one_by_one(records))


def test_history_in_pieces_gives_what_one_by_one_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces end in the middle of lines."""

    @given(steps(), st.integers(1, 4000))
    @settings(deadline=None, max_examples=60)
    def agrees(records: list[events.Step], piece_bytes: int) -> None:
        monkeypatch.setattr(history, "PIECE_BYTES", piece_bytes)
        path = tmp_path / "rank0.jsonl"
        lines = [codec.encode(record) for record in records]
        path.write_bytes(b"".join(lines) + b"torn")
        rank = RankState()
        past = Past(path, (0, sum(map(len, lines)) + 4), rank)
        while not past.done:
            past.piece()
        assert same(rank, one_by_one(records))

    agrees()


def test_only_rank_0_draws_curves() -> None:
    state = RunState()
    record = events.Step(step=1, loss=1.0, grad_norm=2.0)
    for rank in (0, 1):
        fold(state, Source("rank", 1, rank), [record])
    assert "grad_norm" in state.ranks[1, 0].curves
    assert state.ranks[1, 1].curves == {} and state.ranks[1, 1].loss.starts == [1]


def test_the_share_of_waiting_is_of_the_step() -> None:
    record = events.Step(step=1, step_s=2.0, data_s=0.5)
    assert curves.value(record, "data_share") == 0.25
    assert curves.value(msgspec.structs.replace(record, step_s=0.0), "data_share") is None
    assert curves.value(msgspec.structs.replace(record, tokens=0), "tokens") is None


def test_the_first_that_is_not_finite_says_what_it_was() -> None:
    series = Series()
    values = [1.0, math.nan, 0.9, math.nan, math.nan, math.inf, 0.8]
    for step, value in enumerate(values, start=1):
        series.add(step, value)
    assert (series.first_nonfinite, series.first_nonfinite_is) == (2, "NaN")
    assert series.starts == [1, 3, 7] and series.nonfinite_count == 4
    series.add(0, -math.inf)
    assert (series.first_nonfinite, series.first_nonfinite_is) == (0, "-inf")


# ---------------------------------------------------------------------------------------
# A stretch, read again


def long_file(path: Path, count: int) -> None:
    """Other records between the steps, and a line that is none."""
    lines = []
    for step in range(1, count + 1):
        lines.append(codec.encode(events.Step(step=step, loss=1 / step, tokens=step * 8, t=9.0)))
        if step % 500 == 0:
            lines.append(codec.encode(events.Checkpoint(step=step)) + b"no record\n")
    path.write_bytes(b"".join(lines))


def test_a_stretch_of_a_long_file_comes_in_full(tmp_path: Path) -> None:
    path = tmp_path / "rank0.jsonl"
    long_file(path, 40_000)
    for first, last in ((1, 10), (20_000, 20_999), (39_990, 60_000), (50_000, 60_000)):
        found = stretch.read(path, 3, first, last)
        told = list(range(first, min(last, 40_000) + 1))
        assert (found.attempt, found.first, found.last) == (3, first, last)
        assert found.told == (told[-1] if told else 0)
        if told:
            assert found.curves["loss"].starts == told
            assert found.curves["tokens"].low == [step * 8 for step in told]


def test_a_stretch_goes_on_with_what_comes_later(tmp_path: Path) -> None:
    path = tmp_path / "rank0.jsonl"
    long_file(path, 1000)
    found = stretch.read(path, 1, 900, 1010)
    newer = [events.Step(step=step, loss=0.5) for step in range(995, 1020)]
    found.add(newer)
    found.add(newer)
    assert found.told == 1010
    assert found.curves["loss"].starts == list(range(900, 1011))
    assert set(found.curves["loss"].counts) == {1}


def test_a_follower_gives_curves_of_a_run_on_record(tmp_path: Path) -> None:
    run = recorded.make(tmp_path)
    follower = Follower(run)
    follower.poll()
    rank = follower.state.ranks[1, 0]
    assert set(rank.curves) == set(curves.NAMES)
    assert all(series.starts == rank.loss.starts for series in rank.curves.values())
