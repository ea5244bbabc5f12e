"""What an epoch leaves unread: it ends for all ranks as soon as one has no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Share(NamedTuple):
    """A rank's part of an epoch, in packed sequences: how many it holds and how many of them
    nobody will train on, None where that is not known. `ended`: whether it is this rank that
    has no more; then both are exact, else the plan's estimate."""

    sequences: int | None = None
    unread: int | None = None
    ended: bool = False


def of_rank(taken: int, planned: int | None, left: int | None) -> Share:
    """taken: that this rank has trained on. left: that came and were too few for a step; None
    when there is more to come."""
    if left is not None:
        return Share(taken + left, left, True)
    if planned is None:
        return Share()
    return Share(max(planned, taken), max(planned - taken, 0), False)


def words(shares: Sequence[Share]) -> str:
    """Why the epoch ended, and what it leaves; one entry a rank."""
    ended = [rank for rank, share in enumerate(shares) if share.ended]
    if len(ended) == 1:
        text = f"rank {ended[0]} had no more data for a whole batch"
    elif len(ended) == len(shares):
        text = "no rank had more data for a whole batch"
    else:
        text = f"{len(ended)} of {len(shares)} ranks had no more data for a whole batch"
    known = [(share.unread or 0, rank) for rank, share in enumerate(shares) if not share.ended]
    most, rank = max(known, default=(0, 0))
    if most:
        text += (
            f"; about {most:,} of rank {rank}'s {shares[rank].sequences:,} sequences stay unread"
        )
        if len(known) > 1:
            text += f", {sum(unread for unread, _ in known):,} of all ranks together"
    return text
