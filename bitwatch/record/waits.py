"""Where a rank waits: what is found when one is asked, and what a record of a stall is made of."""

from __future__ import annotations

import msgspec


class Wait(msgspec.Struct, omit_defaults=True):
    """Where one rank was when somebody looked. kind: data (for its reader), collective (for the
    other ranks), checkpoint, compile, prepare, stopped (by a signal), kernel (in state D), ended
    (its process is gone), busy (it computes), other, unknown. `where` names the place, as in "DataLoader queue.get" or
    "all_reduce"; `evidence` how that is known: frames, innermost first, or what the kernel says.
    `since_s`: for how long, where somebody knows."""

    rank: int
    kind: str = "unknown"
    where: str = ""
    since_s: float | None = None
    evidence: list[str] = []
