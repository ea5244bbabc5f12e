"""Text of a trained model, while it is made.

    python -m trainer.generate (--checkpoints FOLDER [--step N] | --exported FOLDER) < PROMPT

Answers as `bitwatch.record.answers` says. Imports torch only when it has begun.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bitwatch.record import answers
from trainer import answering
from trainer.failures import NotFound

if TYPE_CHECKING:
    import torch

# Of the memory that the weights take: room for the keys and values of a window.
ROOM = 1.5


def main() -> None:
    parser = answering.parser("trainer.generate")
    parser.add_argument("--exported", type=Path, help="a folder of trainer.export, instead")
    parser.add_argument("--bytes", type=int, default=400)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, help="any, unless given")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parsed = parser.parse_args()

    def work(tell: answering.Tell) -> str:
        from trainer import sampling, weights
        from trainer.window import Window

        prompt = sys.stdin.buffer.read()
        if parsed.exported:
            found = weights.of_export(parsed.exported, parsed.step)
        else:
            found = weights.of_checkpoints(
                parsed.checkpoints, parsed.step, lambda text: tell(answers.Said(text))
            )
        model = found.model
        weights_bytes = 4 * sum(tensor.numel() for tensor in model.parameters())
        device = choose_device(parsed.device, int(ROOM * weights_bytes))
        window = Window(model.to(device))
        used = len(sampling.usable(prompt, window))
        if used < len(prompt):
            text = f"the prompt is longer than the model's window: its last {used} bytes are used"
            tell(answers.Said(text))
        seed = int.from_bytes(os.urandom(4)) if parsed.seed is None else parsed.seed
        text_bytes = sampling.continued(window, prompt, parsed.temperature, random.Random(seed))
        began = time.monotonic()
        for byte in itertools.islice(text_bytes, parsed.bytes):
            tell(answers.Wrote(bytes([byte])))
        seconds = max(time.monotonic() - began, 1e-9)
        return (
            f"{parsed.bytes:,} bytes in {seconds:.1f} s, {parsed.bytes / seconds:.3g} bytes/s on "
            f"{device.type}; step {found.step}, seed {seed}"
        )

    answering.answer(parsed, work)


def choose_device(wanted: str, room_bytes: int) -> torch.device:
    """ "auto" takes a GPU that has the room. Raises NotFound where there is no GPU."""
    import torch

    if wanted == "cuda" and not torch.cuda.is_available():
        raise NotFound("--device cuda: torch sees no GPU here; use --device cpu")
    if wanted == "auto":
        there = torch.cuda.is_available() and torch.cuda.mem_get_info()[0] > room_bytes
        wanted = "cuda" if there else "cpu"
    return torch.device(wanted)


if __name__ == "__main__":
    main()
