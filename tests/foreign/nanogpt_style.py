"""A training that knows nothing of bitwatch: a small GPT and a loop around it, with output of its
own, as people write them. Runs until it is ended.

    torchrun --nproc-per-node 2 nanogpt_style.py [--workers 2] [--step-s 0.05] [--fsdp]
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 32, 64, 2, 2, 4
WARMUP, DECAY, BEST, LEAST = 20, 2000, 1e-3, 1e-4
WORD = torch.arange(CONTEXT + 1) % 7


class Text(IterableDataset[torch.Tensor]):
    """The same word for ever, with noise: there is something to learn."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            noise = torch.rand(CONTEXT + 1) < 0.1
            yield torch.where(noise, torch.randint(VOCABULARY, (CONTEXT + 1,)), WORD)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.full((x.shape[1], x.shape[1]), -math.inf).triu(1)
        y = self.before(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.narrow(functional.gelu(self.wide(self.after(x))))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.blocks(x))


def get_lr(iteration: int) -> float:
    if iteration < WARMUP:
        return BEST * (iteration + 1) / WARMUP
    done = min(1.0, (iteration - WARMUP) / (DECAY - WARMUP))
    return LEAST + 0.5 * (1 + math.cos(math.pi * done)) * (BEST - LEAST)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--step-s", type=float, default=0.05)
    parser.add_argument("--fsdp", action="store_true")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    master = dist.get_rank() == 0
    torch.manual_seed(1337 + dist.get_rank())
    torch.set_num_threads(1)
    tokens_per_iteration = BATCH * CONTEXT * dist.get_world_size()
    if master:
        print(f"tokens per iteration will be: {tokens_per_iteration:,}")
    model: nn.Module = GPT()
    count = sum(parameter.numel() for parameter in model.parameters())
    if master:
        print(f"number of parameters: {count / 1e6:.2f}M")
    if options.fsdp:
        fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),)))
    else:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=BEST)
    batches = iter(DataLoader(Text(), BATCH, num_workers=options.workers))
    iteration, began, mfu = 0, time.time(), -1.0
    while True:
        for group in optimizer.param_groups:
            group["lr"] = get_lr(iteration)
        batch = next(batches)
        logits = model(batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        time.sleep(options.step_s)
        seconds, began = time.time() - began, time.time()
        if master:
            now = 6 * count * tokens_per_iteration / seconds / 312e12
            mfu = now if iteration < 5 else 0.9 * mfu + 0.1 * now
            print(
                f"iter {iteration}: loss {loss.item():.4f}, "
                f"time {seconds * 1000:.2f}ms, mfu {mfu * 100:.2f}%"
            )
            if iteration and iteration % 100 == 0:
                print(f"step {iteration}: train loss {loss.item():.4f}, val loss {loss.item():.4f}")
        iteration += 1


if __name__ == "__main__":
    print(f"process {os.getpid()}: rank {os.environ.get('RANK', '-')}")
    main()
