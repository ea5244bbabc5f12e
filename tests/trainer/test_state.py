"""A resume goes on at the same place of the text, or says why not, or refuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bitwatch.plan import resume
from tests.trainer.conftest import make_small
from trainer.data.state import LoaderState, go_on
from trainer.failures import Failed


def order(**sections: Any) -> resume.Order:
    return resume.order(make_small(**sections))


def test_the_same_order_leads_to_the_same_place() -> None:
    saved = LoaderState(epoch=3, position=120, order=order())
    kept = msgspec.json.decode(msgspec.json.encode(saved), type=LoaderState)
    assert go_on(kept, order(), exact=True, new_epoch=False) == (saved, "")


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("data", "workers", 3),
        ("parallel", "ranks", 2),
        ("train", "batch", 8),
        ("data", "sharding", "indexed"),
    ],
)
def test_a_place_is_lost_only_by_leave(section: str, key: str, value: Any) -> None:
    saved = LoaderState(epoch=3, position=120, order=order())
    now = order(**{section: {key: value}})
    with pytest.raises(Failed, match=rf"{section}.{key} was .* and is {value}.*indexed"):
        go_on(saved, now, exact=True, new_epoch=False)
    state, why = go_on(saved, now, exact=True, new_epoch=True)
    assert state == LoaderState(epoch=4, position=0, order=now)
    assert f"{section}.{key}" in why


def test_at_the_start_of_an_epoch_nothing_can_be_lost() -> None:
    saved = LoaderState(epoch=1, position=0, order=order())
    now = order(data={"workers": 5})
    assert go_on(saved, now, exact=True, new_epoch=False) == (LoaderState(1, 0, now), "")


def test_a_shuffle_buffer_loses_the_place_and_says_so() -> None:
    config = make_small(data={"shuffle": 100})
    assert not resume.is_exact(config)
    saved = LoaderState(epoch=0, position=8, order=resume.order(config))
    state, why = go_on(saved, resume.order(config), exact=False, new_epoch=False)
    assert (state.epoch, state.position) == (1, 0)
    assert "shuffle buffer" in why


def test_indexed_text_does_not_mind_ranks_and_workers() -> None:
    one = order(data={"sharding": "indexed", "workers": 2}, parallel={"ranks": 2})
    other = order(data={"sharding": "indexed", "workers": 3}, train={"batch": 12})
    assert one == other
    assert one != order(data={"sharding": "indexed"}, run={"seed": 2})
