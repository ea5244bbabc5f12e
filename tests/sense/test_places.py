"""Where a rank waits, from stacks as ranks of FSDP2 wrote them (torch 2.13, two ranks, gloo)."""

from __future__ import annotations

import pytest

from bitwatch.record.view import View
from bitwatch.sense.places import place, wait_of
from bitwatch.sense.stacks import Look, Target, Thread, parse
from bitwatch.supervise import blame

SHARD = "torch/distributed/fsdp/_fully_shard/"
C10D = "torch/distributed/distributed_c10d.py"
LOGGER = "torch/distributed/c10d_logger.py"
FORWARD = [
    f"{SHARD}_fsdp_param_group.py pre_forward",
    f"{SHARD}_fsdp_state.py _pre_forward",
    "torch/nn/modules/module.py _call_impl",
    "trainer/train.py main",
]
GATHER = [
    f"{SHARD}_fsdp_collectives.py __call__",
    f"{SHARD}_fsdp_collectives.py foreach_all_gather",
    "torch/utils/_contextlib.py decorate_context",
    f"{SHARD}_fsdp_param_group.py unshard",
    *FORWARD,
]
BACKWARD = [
    f"{SHARD}_fsdp_param_group.py post_backward",
    f"{SHARD}_fsdp_param_group.py backward",
    "torch/autograd/function.py apply",
    "torch/autograd/graph.py _engine_run_backward",
    "trainer/train.py main",
]
REDUCE = [
    f"{SHARD}_fsdp_collectives.py foreach_reduce",
    "torch/utils/_contextlib.py decorate_context",
    *BACKWARD,
]
COPIES = ("busy", "FSDP's copies of weights and gradients")
ALL_GATHER = ("collective", "FSDP's all-gather")
REDUCE_SCATTER = ("collective", "FSDP's reduce-scatter")


def stack(frames: list[str]) -> tuple[Thread, ...]:
    lines = [f'  File "/lib/{one.split()[0]}", line 9 in {one.split()[1]}' for one in frames]
    return parse("\n".join(["Current thread 0x1 (most recent call first):", *lines]))


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ([f"{C10D} all_gather_single", f"{LOGGER} wrapper", *GATHER], ALL_GATHER),
        ([f"{C10D} all_gather_into_tensor", f"{LOGGER} wrapper", *GATHER], ALL_GATHER),
        ([f"{C10D} reduce_scatter_single", f"{LOGGER} wrapper", *REDUCE], REDUCE_SCATTER),
        ([f"{C10D} all_reduce", f"{LOGGER} wrapper", *REDUCE], ("collective", "all_reduce (FSDP)")),
        (
            [f"{C10D} all_gather_single", *GATHER[:-1], "trainer/evaluate.py loss_of"],
            ("collective", "FSDP's all-gather, in an evaluation"),
        ),
        (
            [f"{C10D} all_gather_into_tensor", "trainer/train.py main"],
            ("collective", "all_gather"),
        ),
        # The same frames of FSDP without a collective: it copies.
        ([f"{LOGGER} wrapper", *GATHER], COPIES),
        (["torch/_ops.py __call__", f"{SHARD}_fsdp_collectives.py copy_in", *GATHER[1:]], COPIES),
        ([f"{SHARD}_fsdp_param_group.py wait_for_unshard", *FORWARD], COPIES),
        ([f"{SHARD}_fsdp_collectives.py chunk_cat", "torch/_ops.py __call__", *REDUCE], COPIES),
        (BACKWARD, COPIES),
        ([f"{SHARD}_fsdp_common.py _cast_fp_tensor", *FORWARD[1:]], COPIES),
        # A computation on what a collective has brought is none.
        (
            ["torch/distributed/_functional_collectives.py __torch_dispatch__", "a/b.py main"],
            ("busy", "__torch_dispatch__ (torch/distributed/_functional_collectives.py:9)"),
        ),
    ],
)
def test_only_who_is_inside_a_collective_waits_in_one(
    frames: list[str], found: tuple[str, str]
) -> None:
    assert place(stack(frames), works=True) == found


def test_a_rank_that_copies_for_a_collective_is_the_one_that_the_others_wait_for() -> None:
    inside = [f"{C10D} reduce_scatter_single", f"{LOGGER} wrapper", *REDUCE]
    waits = [
        wait_of(Look(Target(rank, rank + 1, 1, None), "S", stack(frames)))
        for rank, frames in enumerate([inside, REDUCE])
    ]
    said = blame.sentence(View(ranks=2, state="stalled"), waits, 0.0)
    assert said == (
        "rank 1 is still at work at FSDP's copies of weights and gradients; "
        "rank 0 waits for it in FSDP's reduce-scatter"
    )
