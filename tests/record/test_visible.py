"""CUDA_VISIBLE_DEVICES, held against what PyTorch makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from bitwatch.record.gpu import Gpu
from bitwatch.record.visible import are_whole, in_order, visible

UUIDS = [f"GPU-{i}b2c3d4e-5f60-7182-93a4-b5c6d7e8f90{i}" for i in range(4)]
CARDS = [Gpu(index=index, uuid=uuid) for index, uuid in enumerate(UUIDS)]


def as_pytorch_reads_it(value: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    cuda: Any = pytest.importorskip("torch.cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    named = cuda._parse_visible_devices()
    if named and isinstance(named[0], str):
        return cuda._transform_uuid_to_ordinals(named, UUIDS)
    known = [index < len(UUIDS) for index in named]
    return named[: known.index(False)] if False in known else named


@pytest.mark.parametrize(
    "value",
    [
        "0,1", "3,1", "2", "0,0", "1,2,1", "-1", "", "1,9,0", "9", "0,-1,1", "1gpu2,2x", " 1, 2", "abc",
        "+2", "1 2", "0,,1", ",0", "GPU-1b,GPU-0", "GPU-", "GPU-1b,GPU-1b2", "GPU-1b,0", "0,GPU-1",
        "GPU-0,GPU-9,GPU-1", UUIDS[3], f"{UUIDS[3]},{UUIDS[0]}", "gpu-1b",
    ],
)  # fmt: skip
def test_numbers_and_uuids_as_pytorch_reads_them(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_order(CARDS, value) == as_pytorch_reads_it(value, monkeypatch)


def test_where_it_is_not_set_all_are_visible() -> None:
    assert visible(CARDS, None) == {0, 1, 2, 3}
    assert visible([], None) == visible([], "0") == set()
    assert in_order([CARDS[2], CARDS[0]], None) == [0, 2]
    assert in_order(CARDS, "1," + "9" * 5000 + ",0") == [1]  # at which PyTorch raises
    assert visible([Gpu(index=0)], "GPU-1") == set()  # it does not tell its UUID


def test_mig_instances_show_the_gpus_they_may_be_part_of() -> None:
    cards = [Gpu(index=gpu.index, uuid=gpu.uuid, mig=gpu.index in (1, 2)) for gpu in CARDS]
    assert visible(cards, "MIG-aaaa") == {1, 2}
    assert in_order(cards, f"MIG-{UUIDS[2]}/1/0,MIG-{UUIDS[2]}/2/0") == [2]
    assert visible(cards, f"MIG-{UUIDS[1]}/1/0,0") == {1}  # what is of another kind ends it
    assert visible(CARDS, "MIG-aaaa") == set()  # none is in that mode
    told = [None, "0", "0,3", "0,1", "MIG-aaaa", f"MIG-{UUIDS[0]}/1/0"]
    assert [are_whole(cards, value) for value in told] == [False, True, True, False, False, False]
    assert are_whole(CARDS, None)
