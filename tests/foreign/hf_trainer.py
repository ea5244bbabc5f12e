"""A training that knows nothing of bitwatch: the Trainer of Hugging Face on a tiny GPT-2 that is
made from a configuration, with random text. Runs until it is ended.

    python hf_trainer.py FOLDER [--workers 2]
"""

from __future__ import annotations

import argparse
import time

import torch
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

CONTEXT, VOCABULARY = 16, 64


class Text(Dataset[dict[str, torch.Tensor]]):
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = (torch.arange(CONTEXT) * 3 + index) % VOCABULARY
        return {"input_ids": tokens, "labels": tokens}


class Slow(TrainerCallback):
    """A step of a real model takes a while."""

    def on_step_end(self, *arguments: object, **keywords: object) -> None:
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    shape = GPT2Config(
        vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=32, n_layer=1, n_head=2, use_cache=False
    )
    model = GPT2LMHeadModel(shape)
    print(f"Number of trainable parameters = {model.num_parameters():,}")
    arguments = TrainingArguments(
        output_dir=options.folder,
        per_device_train_batch_size=4,
        max_steps=100_000,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        dataloader_num_workers=options.workers,
    )
    Trainer(model=model, args=arguments, train_dataset=Text(), callbacks=[Slow()]).train()


if __name__ == "__main__":
    main()
