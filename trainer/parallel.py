"""How a model is spread over ranks, and everything in which CUDA and a CPU differ.

The same FSDP2 code runs on NCCL and on gloo; a device's name is asked for nowhere else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from bitwatch import config as configuration
from trainer import model as modelling
from trainer.failures import Failed

# Dense bf16 FLOP/s by what the device calls itself (makers' data sheets). A device that is
# not here has no peak: another chip's would be a lie.
PEAK_FLOPS = {"L4": 121e12, "A100": 312e12, "H100": 989e12, "H200": 989e12}

# What "selective" activation checkpointing keeps: the outputs of matrix products and of the
# kernels that scaled_dot_product_attention may choose. The rest is cheap to compute again.
_aten = torch.ops.aten
KEPT_OPERATIONS = [
    _aten.mm.default,
    _aten.addmm.default,
    _aten.bmm.default,
    _aten._scaled_dot_product_flash_attention.default,
    _aten._scaled_dot_product_efficient_attention.default,
    _aten._scaled_dot_product_cudnn_attention.default,
    _aten._scaled_dot_product_flash_attention_for_cpu.default,
]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a rank stands.

    `control` is a gloo group for small words that must not wait behind the computation;
    `storage` another one for checkpoints, which may take longer than a step ever may.
    """

    rank: int
    ranks: int
    device: torch.device
    mesh: DeviceMesh
    control: dist.ProcessGroup
    storage: dist.ProcessGroup

    @property
    def gpu_name(self) -> str | None:
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else None


def start(wanted: configuration.Parallel) -> Place:
    """Joins the other ranks. Raises Failed when the launch does not fit the configuration."""
    local_rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks != wanted.ranks:
        raise Failed(f"parallel.ranks is {wanted.ranks}, but {ranks} ranks were launched")
    gpus = torch.cuda.device_count() if wanted.device != "cpu" else 0
    if wanted.device == "cuda" and gpus < ranks:
        raise Failed(
            f'parallel.ranks is {ranks} on device "cuda", but this node shows {gpus} GPUs; '
            'use fewer ranks, or device = "cpu"'
        )
    # "auto" takes the GPUs only when every rank gets one of its own.
    kind = "cuda" if gpus >= ranks else "cpu"
    device = torch.device(kind, local_rank) if kind == "cuda" else torch.device(kind)
    timeout = timedelta(seconds=wanted.start_timeout_s)
    if kind == "cuda":
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", timeout=timeout, device_id=device)
    else:
        dist.init_process_group("gloo", timeout=timeout)
    return Place(
        rank=dist.get_rank(),
        ranks=ranks,
        device=device,
        mesh=init_device_mesh(kind, (ranks,)),
        control=dist.new_group(backend="gloo", timeout=timeout),
        storage=dist.new_group(backend="gloo", timeout=timeout),
    )


def expect_steps(place: Place, timeout_s: float) -> None:
    """From now on a collective that takes longer than a step may is an error: while ranks
    start, loading and compiling may rightly keep one of them back for longer."""
    for group in (None, place.control):
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=timeout_s), group)


def meet(place: Place, timeout_s: float) -> None:
    """Waits for all ranks. Raises RuntimeError when one does not come."""
    dist.monitored_barrier(place.control, timeout=timedelta(seconds=timeout_s))


def end() -> None:
    dist.destroy_process_group()


# ---------------------------------------------------------------------------------------
# The model on its ranks


def shard(
    model: modelling.BitTransformerLM, place: Place, wanted: configuration.Parallel, seed: int
) -> None:
    """Spreads a model built on the meta device over the ranks and gives it its first values.

    Weights and optimiser are float32; with precision "bf16" what is gathered and computed is
    bfloat16, and gradients are summed in float32. With shard "grad" the weights of a block,
    once gathered in the forward pass, stay until its backward pass: a gather less, for the
    memory of the whole model.
    """
    policy = MixedPrecisionPolicy()
    if wanted.precision == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    checkpoint_activations(model, wanted.activation_checkpointing)
    again = wanted.shard == "full"
    for block in model.blocks:
        fully_shard(block, mesh=place.mesh, mp_policy=policy, reshard_after_forward=again)
    fully_shard(model, mesh=place.mesh, mp_policy=policy)
    model.to_empty(device=place.device)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Each rank makes the whole parameter, one at a time, and keeps its part: the
            # values then do not depend on the number of ranks, and nothing is sent.
            generator = torch.Generator(place.device)
            generator.manual_seed(zlib.crc32(f"{seed} {name}".encode()))
            whole = modelling.initial_value(
                name, tuple(parameter.shape), model.shape.layers, generator
            )
            assert isinstance(parameter, DTensor)
            parameter.copy_(
                distribute_tensor(whole, place.mesh, parameter.placements, src_data_rank=None)
            )


def compile_blocks(model: modelling.BitTransformerLM, backend: str = "inductor") -> None:
    """Each block by itself: they are alike, so one of them is compiled and the others reuse
    it. Before `shard`, whose hooks stay outside."""
    for block in model.blocks:
        block.compile(fullgraph=True, backend=backend)


def sum_gradients(model: nn.Module, wanted: bool) -> None:
    """Whether the next backward pass sums gradients over the ranks. Until then each rank adds
    up its own, unsharded, in float32: 4 bytes a parameter, for a third less traffic."""
    assert isinstance(model, FSDPModule)
    model.set_requires_gradient_sync(wanted)


def checkpoint_activations(model: modelling.BitTransformerLM, mode: str) -> None:
    """Has each block compute activations a second time, in the backward pass, that it would
    otherwise keep: "full" keeps only the block's input, "selective" also what is dear to
    compute (`KEPT_OPERATIONS`), "none" everything.

    Only the block's `forward` is wrapped, so no parameter gets another name, and checkpoints
    load whatever the mode was. FSDP's hooks stay outside: the weights that the second
    computation needs are those gathered for the backward pass.
    """
    if mode == "none":
        return
    kept: dict[str, Any] = {}
    if mode == "selective":
        kept["context_fn"] = functools.partial(
            create_selective_checkpoint_contexts, KEPT_OPERATIONS
        )

    def wrapped(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
        # A function with a body of its own: the compiler traces frames, and looks into none
        # of a functools.partial.
        def forward_again(*inputs: Any) -> Tensor:
            return checkpoint(
                forward, *inputs, use_reentrant=False, preserve_rng_state=False, **kept
            )

        return forward_again

    for block in model.blocks:
        block.forward = wrapped(block.forward)


def local_part(tensor: Tensor) -> Tensor:
    """What this rank holds of a sharded tensor; it can be empty."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def held_parameters(model: nn.Module, place: Place) -> list[int]:
    """Parameters that each rank holds, in the order of ranks. All ranks must call it."""
    mine = sum(local_part(parameter.detach()).numel() for parameter in model.parameters())
    held = torch.zeros(place.ranks, dtype=torch.int64)
    held[place.rank] = mine
    dist.all_reduce(held, group=place.control)
    return held.tolist()


# ---------------------------------------------------------------------------------------
# The device


def peak_flops(gpu_name: str | None) -> float | None:
    """Dense bf16 peak of one device, or None where it is not known for certain."""
    words = (gpu_name or "").replace("-", " ").split()
    if "MIG" in words or ({"H100", "H200"} & set(words) and {"PCIe", "NVL"} & set(words)):
        return None  # a slice of a chip, and cards that run their chip slower
    return next((peak for word, peak in PEAK_FLOPS.items() if word in words), None)


def memory_mib(device: torch.device) -> tuple[float | None, float | None, float | None]:
    """Allocated, reserved, and the most ever allocated, by the CUDA allocator; None on a CPU."""
    if device.type != "cuda":
        return None, None, None
    told = torch.cuda.memory_stats(device)  # once: it takes a lock and counts all there is
    names = "allocated_bytes.all.current", "reserved_bytes.all.current", "allocated_bytes.all.peak"
    allocated, reserved, peak = (told.get(name, 0) / (1 << 20) for name in names)
    return allocated, reserved, peak


def read_later(tensor: Tensor) -> Callable[[], list[float]]:
    """Starts to bring a small tensor to the host; the call that is returned waits for it.

    Calling it a step later costs nothing: the GPU never stands still for it.
    """
    if tensor.device.type != "cuda":
        kept = tensor.tolist()
        return lambda: kept
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record()

    def read() -> list[float]:
        arrived.synchronize()
        return host.tolist()

    return read


def stager(device: torch.device) -> DefaultStager:
    """Copies states to buffers in host memory that it keeps: the next copy goes into the
    same. From a GPU they are pinned. A copy is whole when `stage` returns."""
    cuda = device.type == "cuda"
    return DefaultStager(
        StagingOptions(
            use_pinned_memory=cuda,
            use_shared_memory=False,
            use_async_staging=False,
            use_non_blocking_copy=cuda,
        )
    )


@contextlib.contextmanager
def beside(device: torch.device) -> Iterator[None]:
    """For a thread that works beside the training: on this rank's GPU, which a new thread is
    not, and never waiting for what the training has queued there."""
    if device.type == "cuda":
        with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device)):
            yield
    else:
        yield


# ---------------------------------------------------------------------------------------
# Chance


def seed_rank(seed: int, place: Place) -> None:
    """Gives torch's generators on this rank a beginning that no other rank has."""
    torch.manual_seed(zlib.crc32(f"{seed} rank {place.rank}".encode()))


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Of torch's generators: uint8 each, "cpu" and, where the rank has a GPU, "cuda"."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(device: torch.device, state: dict[str, Tensor]) -> None:
    """Those that are in `state`; the others go on as they are."""
    if "cpu" in state:
        torch.set_rng_state(state["cpu"])
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
