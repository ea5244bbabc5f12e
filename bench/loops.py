"""Trainings that ours is measured against, each run as one rank of several.

    RANK=0 WORLD_SIZE=1 ... python bench/loops.py LOOP CONFIG RESULT

All train the model of CONFIG in its precision on the same batches, held in memory, with the
same optimiser: "plain" as PyTorch's own tutorials do, "sharded" the same over FSDP2 as our
trainer spreads it, "accelerate-fsdp2" and "accelerate-ddp" as the documentation of Hugging
Face accelerate does. Rank 0 writes what a step took, as means of train.log_every steps each,
to RESULT. Only float32 means the same to all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from bitwatch import config as configuration
from trainer import bits, optim, parallel
from trainer import model as modelling
from trainer.data import rowtext, source


class Clock:
    """What a step took and what its loss was, as means of so many steps each.

    cpu_s: of all threads of the process, which hardly depends on what else the machine does.
    """

    def __init__(self, every: int) -> None:
        self.windows: list[dict[str, float]] = []
        self._every = every
        self._loss = torch.zeros(())
        self._began = time.perf_counter(), time.process_time()

    def step(self, step: int, loss: Tensor) -> None:
        self._loss += loss
        if step % self._every == 0:
            loss_told = self._loss.item() / self._every
            now = time.perf_counter(), time.process_time()
            step_s, cpu_s = ((b - a) / self._every for a, b in zip(self._began, now, strict=True))
            self.windows.append({"step_s": step_s, "cpu_s": cpu_s, "loss": loss_told})
            self._loss = torch.zeros(())
            self._began = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loop", choices=LOOPS)
    parser.add_argument("config", type=Path)
    parser.add_argument("result", type=Path)
    arguments = parser.parse_args()
    clock = LOOPS[arguments.loop](configuration.load(arguments.config))
    if int(os.environ["RANK"]) == 0:
        arguments.result.write_text(json.dumps(clock.windows))
    if dist.is_initialized():
        dist.destroy_process_group()


# ---------------------------------------------------------------------------------------
# The loops


def plain(config: configuration.Config) -> Clock:
    return train(config, whole_model(config), lambda _: None)


def sharded(config: configuration.Config) -> Clock:
    place = parallel.start(config.parallel)
    model = sharded_model(config, place)
    return train(config, model, lambda last: parallel.sum_gradients(model, last))


def train(
    config: configuration.Config, model: nn.Module, sum_gradients: Callable[[bool], None]
) -> Clock:
    """What one would write by hand. sum_gradients: told before each micro-batch whether it is
    the last one of its step."""
    wanted = config.train
    optimizer = optim.build(model, wanted)
    accumulation = wanted.batch // (config.parallel.ranks * wanted.micro_batch)
    batches = batches_of_rank(config)
    clock = Clock(wanted.log_every)
    for step in range(1, wanted.steps + 1):
        loss = torch.zeros(())
        for number, block in enumerate(next(batches).split(wanted.micro_batch), 1):
            sum_gradients(number == accumulation)
            share = modelling.nats_per_bit(model, bits.from_bytes(block)) / accumulation
            share.backward()
            loss += share.detach()
        nn.utils.clip_grad_norm_(model.parameters(), wanted.clip)
        optim.set_learning_rate(optimizer, optim.learning_rate(step, wanted))
        optimizer.step()
        optimizer.zero_grad()
        clock.step(step, loss)
    return clock


def accelerated(config: configuration.Config, *, shard: bool) -> Clock:
    """With `shard` accelerate's FSDP2, else what it chooses by itself on a CPU: DDP."""
    from accelerate import Accelerator, DistributedType
    from accelerate.utils import FullyShardedDataParallelPlugin

    wanted = config.train
    accumulation = wanted.batch // (config.parallel.ranks * wanted.micro_batch)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulation)
    if shard:
        # Its constructor takes the plugin on accelerators only. What the plugin then does
        # works on gloo as well, and is what it does on a GPU.
        accelerator.state.distributed_type = DistributedType.FSDP
        accelerator.state.fsdp_plugin = FullyShardedDataParallelPlugin(
            fsdp_version=2,
            auto_wrap_policy="transformer_based_wrap",
            transformer_cls_names_to_wrap=["Block"],
            cpu_ram_efficient_loading=False,
        )
    model = whole_model(config)
    # In memory and in order, dealt out to the ranks by accelerate itself.
    loader = DataLoader(TensorDataset(text(config)), batch_size=wanted.micro_batch)
    model, optimizer, loader = accelerator.prepare(model, optim.build(model, wanted), loader)
    clock, step = Clock(wanted.log_every), 0
    while step < wanted.steps:
        for (block,) in loader:
            with accelerator.accumulate(model):
                loss = modelling.nats_per_bit(model, bits.from_bytes(block))
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), wanted.clip)
                    rate = optim.learning_rate(step + 1, wanted)
                    optim.set_learning_rate(optimizer, rate)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                step += 1
                clock.step(step, loss.detach())
                if step == wanted.steps:
                    break
    return clock


LOOPS: dict[str, Callable[[configuration.Config], Clock]] = {
    "plain": plain,
    "sharded": sharded,
    "accelerate-fsdp2": lambda config: accelerated(config, shard=True),
    "accelerate-ddp": lambda config: accelerated(config, shard=False),
}


# ---------------------------------------------------------------------------------------
# The same model, on the same text


def sharded_model(
    config: configuration.Config, place: parallel.Place
) -> modelling.BitTransformerLM:
    """As trainer/train.py builds it."""
    with torch.device("meta"):
        model = modelling.build_model(config.model)
    if config.parallel.compile:
        parallel.compile_blocks(model)
    parallel.shard(model, place, config.parallel, config.run.seed)
    return model


def whole_model(config: configuration.Config) -> modelling.BitTransformerLM:
    """On a CPU, with the initial values that `parallel.shard` gives."""
    model, seed = modelling.build_model(config.model), config.run.seed
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
            shape = tuple(parameter.shape)
            parameter.copy_(modelling.initial_value(name, shape, config.model.layers, generator))
    return model


def text(config: configuration.Config) -> Tensor:
    """All sequences of the training text, in the order in which one reader reads them as it
    is, uint8 [sequences, sequence_bytes]."""
    rows = source.open_stream(source.training(config.data))
    packed = b"".join(rowtext.text_bytes(row, config.data.text_column) for row in rows)
    size = configuration.bytes_per_sequence(config.model)
    whole = len(packed) // size * size
    return torch.frombuffer(bytearray(packed[:whole]), dtype=torch.uint8).view(-1, size)


def batches_of_rank(config: configuration.Config) -> Iterator[Tensor]:
    """This rank's sequences of each step, for ever."""
    rank, ranks = int(os.environ["RANK"]), config.parallel.ranks
    whole = text(config)
    while True:
        for batch in whole.split(config.train.batch):
            if len(batch) == config.train.batch:
                yield batch.tensor_split(ranks)[rank]


if __name__ == "__main__":
    main()
