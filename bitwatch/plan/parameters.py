"""Parameter counts: of the whole model, and of what each rank holds of it.

Arithmetic over shapes. FSDP2 and FSDP1 count differently, and a number of one printed for
the other is how the incident's 679,962,626 became "a model of 169,990,657".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Shape = Sequence[int]


def built(shapes: Iterable[Shape]) -> int:
    """Parameters of the whole model. A shape () is one number."""
    return sum(math.prod(shape) for shape in shapes)


def held(shapes: Sequence[Shape], ranks: int) -> list[int]:
    """Parameters in each rank's local parts under FSDP2, one entry a rank.

    `fully_shard` cuts every parameter along its first dimension as `torch.chunk` does:
    pieces of ceil(d0 / ranks) rows, the last one shorter, and nothing for the ranks after
    it. A vocabulary of 2 over 4 ranks leaves two of them without an embedding.
    """
    counts = [0] * ranks
    for shape in shapes:
        rows = shape[0] if shape else 1
        numbers_per_row = math.prod(shape[1:])
        chunk_rows = -(-rows // ranks)
        for rank in range(ranks):
            mine = min(chunk_rows, max(0, rows - rank * chunk_rows))
            counts[rank] += mine * numbers_per_row
    return counts


def flat_shard(parameters: int, ranks: int) -> int:
    """What each rank counts after FSDP1 wrapped the model as one flat unit: the flat
    buffer is padded to a multiple of the ranks, so ceil(parameters / ranks)."""
    return -(-parameters // ranks)
