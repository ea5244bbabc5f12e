"""How much memory a training takes of each GPU, before anything is launched.

Arithmetic over the configuration alone. A step is followed through the moments at which its
memory can be highest; the prediction is the fullest of them, by part. What is counted is what
`trainer.model` and `trainer.parallel` do under FSDP2 (torch 2.13); a test holds every formula
here against torch's own FSDPMemTracker on that code. What torch.compile saves is not counted.

Letters, as in the literature: d channels, f feedforward width, L layers, W ranks. A token is
one bit of a sequence. Everything is in bytes until the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bitwatch import config as configuration
from bitwatch.plan.result import MemoryPlan, PerGpu
from bitwatch.plan.sizes import FLOAT, Sizes, sizes

GIB = 1 << 30

# Beside tensors a training of this kind takes 1.5 to 2.5 GiB of a GPU. The least is what it
# takes however small it is: a CUDA context with its kernels (about 0.5), NCCL's buffers and the
# workspaces of cuBLAS.
OVERHEAD_LEAST_GIB = 1.5
# The rest is memory that the allocator holds and cannot use. It grows with what is allocated,
# but little where segments may grow (`expandable_segments`): a twentieth, at most 1 GiB.
FRAGMENTED_SHARE = 0.05
FRAGMENTED_MOST_GIB = 1.0


class Moment(NamedTuple):
    """What one GPU holds at one point of a step, in bytes.

    gradients: sharded ones, those accumulated, and those just made. activations: what is
    kept for the backward pass, and what is being computed. gathered: whole weights of
    blocks, and the buffers of collectives.
    """

    name: str
    parameters: int
    gradients: int
    optimizer: int
    activations: int
    gathered: int

    @property
    def total(self) -> int:
        return sum(self[1:])


def predict(config: configuration.Config) -> MemoryPlan:
    """GiB on the GPU of the rank that holds most, at the fullest moment of a step."""
    fullest = max(moments(config), key=lambda moment: moment.total)
    overhead = overhead_gib(fullest.total / GIB)
    parts = {name: value / GIB for name, value in fullest._asdict().items() if name != "name"}
    total = fullest.total / GIB + overhead
    return MemoryPlan(
        per_gpu_gib=PerGpu(**parts, overhead=overhead, total=total), fullest_at=fullest.name
    )


def overhead_gib(allocated_gib: float) -> float:
    """What a GPU holds beside tensors, 1.5 to 2.5 GiB: no formula, but the range that was met,
    the larger the more is allocated."""
    return OVERHEAD_LEAST_GIB + min(FRAGMENTED_MOST_GIB, FRAGMENTED_SHARE * allocated_gib)


# ---------------------------------------------------------------------------------------
# The moments of a step


def moments(config: configuration.Config) -> Iterator[Moment]:
    """Every point of a step at which its memory can be highest.

    From block to block everything changes by the same amount, so of the backward passes only
    those of the first two and the last two blocks can be the highest.
    """
    of = sizes(config)
    layers = of.layers
    yield _head_forward(of)
    yield _head_backward(of)
    for block in sorted({layers - 1, max(0, layers - 2), min(1, layers - 1), 0}, reverse=True):
        yield _feedforward_backward(of, block)
        yield _attention_backward(of, block)
        yield _reduce(of, block)
    yield _moment(of, "update of the weights", gradients=FLOAT * of.held)


def _moment(
    of: Sizes, name: str, *, gradients: int = 0, activations: int = 0, gathered: int = 0
) -> Moment:
    """With float32 weights, and AdamW's two float32 moments of each (Loshchilov and Hutter,
    2019): 4 and 8 bytes for each parameter of the rank, always."""
    return Moment(
        name=name,
        parameters=FLOAT * of.held,
        gradients=gradients,
        optimizer=2 * FLOAT * of.held,
        activations=activations,
        gathered=gathered,
    )


def _head_forward(of: Sizes) -> Moment:
    """The last norm is computed: its input as it came and in float32, its output in float32.
    Only the root's forward frees the buffer of the last gather, with several ranks."""
    return _moment(
        of,
        "end of the forward pass",
        gradients=_accumulated(of, of.layers),
        activations=of.layers * of.kept
        + of.outside
        + of.tokens * of.d * (2 * FLOAT + (of.width if of.width < FLOAT else 0)),
        gathered=_staying(of, of.layers) + _gather_buffer(of),
    )


def _head_backward(of: Sizes) -> Moment:
    """The last norm, backwards, all in float32: its input, and the gradients of its output
    and of its input."""
    return _moment(
        of,
        "start of the backward pass",
        gradients=_accumulated(of, of.layers),
        activations=of.layers * of.kept + of.outside + of.tokens * of.d * 3 * FLOAT,
        gathered=_staying(of, of.layers),
    )


def _feedforward_backward(of: Sizes, block: int) -> Moment:
    """GELU, backwards, right after the last product: all that the block needs is there, and
    the gradients of the block's output (d) and of GELU's output and input (2 f), the last of
    which takes the place of what the product needed (f); of the weights, that product's."""
    return _moment(
        of,
        f"backward pass of block {block + 1} of {of.layers}",
        gradients=_gradients(of, block, whole=block + 1) + of.width * of.d * of.f,
        activations=(block + 1) * of.kept
        + of.computed_again
        + of.tokens * of.width * (of.d + of.f)
        + of.outside,
        gathered=_gathered_in_backward(of, block),
    )


def _attention_backward(of: Sizes, block: int) -> Moment:
    """The product that made query, key and value, backwards, when all the block's gradients
    are there and not yet summed over the ranks: its input and the block's (2 d), the gradients
    of its output (3 d), its input and the block's output (2 d)."""
    return _moment(
        of,
        f"backward pass of block {block + 1} of {of.layers}",
        gradients=_gradients(of, block, whole=block + 1) + of.width * of.block,
        activations=block * of.kept + of.never_used + of.tokens * of.width * 7 * of.d + of.outside,
        gathered=_gathered_in_backward(of, block),
    )


def _reduce(of: Sizes, block: int) -> Moment:
    """A block's gradients are copied to a float32 buffer to be summed over the ranks; once they
    are there they go, and this rank's part of the sum is made. The block's whole weights are
    gone."""
    copied = _accumulated(of, 1) - _accumulated(of, 0) or of.width * of.block
    return _moment(
        of,
        f"sum of the gradients of block {block + 1} of {of.layers}",
        gradients=_gradients(of, block, whole=block) + max(copied, FLOAT * of.block_shard),
        activations=block * of.kept + of.tokens * of.width * of.d + of.outside,
        gathered=_staying(of, block) + _prefetched(of, block) + FLOAT * of.padded,
    )


def _gradients(of: Sizes, block: int, whole: int) -> int:
    """While block `block` goes backwards: its rank's part of those after it, in float32, and
    all that was accumulated of the first `whole` ones."""
    done = of.layers - 1 - block
    return FLOAT * of.block_shard * done + _accumulated(of, whole)


def _accumulated(of: Sizes, blocks: int) -> int:
    """Gradients of whole blocks that earlier micro-batches left on this rank.

    FSDP2 without gradient synchronisation keeps them unsharded, in float32: with bf16 weights
    each is cast to the type in which it will be reduced (`to_accumulated_grad_if_needed`), so
    4 bytes a parameter of the whole model on every rank, in either precision.
    """
    return FLOAT * (of.block * blocks + of.root) if of.micro_batches > 1 else 0


def _gathered_in_backward(of: Sizes, block: int) -> int:
    """Whole weights of this block; of the next one, gathered ahead; and the float32 buffer in
    which the gradients of the block before are still being summed (FSDP2 frees it when the
    next sum begins)."""
    summing = FLOAT * of.padded if block < of.layers - 1 else 0
    whole = _staying(of, block + 1) if of.stay_gathered else of.width * of.padded
    return whole + _prefetched(of, block) + summing


def _staying(of: Sizes, blocks: int) -> int:
    """Weights of blocks that stay whole from forward to backward pass (shard "grad")."""
    return of.width * of.padded * blocks if of.stay_gathered else 0


def _prefetched(of: Sizes, block: int) -> int:
    """The buffer of the next block's gather in the backward pass: none for the first block,
    nor where everything stayed gathered."""
    return 0 if of.stay_gathered or not block else _gather_buffer(of)


def _gather_buffer(of: Sizes) -> int:
    """A collective's output before it is dealt out to the parameters; one rank needs none."""
    return of.width * of.padded if of.ranks > 1 else 0
