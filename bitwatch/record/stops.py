"""Why a stop came to be that nobody asked for with the attempt's stop file, and which stops have
lost nothing. Pure."""

from __future__ import annotations

from collections.abc import Collection

from bitwatch.record import events

WHOLE = ", with a checkpoint"


def cause(words: Collection[events.RankEnded]) -> str:
    """`words` are the last ones of all ranks of an attempt that has stopped: those that were
    told to by a signal name it. Empty where none was."""
    told = [word for word in words if word.state == "stopped" and word.cause]
    if not told:
        return ""
    ranks = ", ".join(str(rank) for rank in sorted(word.rank for word in told))
    whom = f"rank {ranks}" if len(told) < len(words) or len(told) == 1 else f"all {len(told)} ranks"
    return f"stopped by {told[0].cause} to {whom}{WHOLE}"


def lost_nothing(state: str, cause: str) -> bool:
    """Whether all that an attempt has learned is in a checkpoint. A stop says why in its cause
    when it was none of the ranks' own."""
    return state == "done" or (state == "stopped" and (not cause or cause.endswith(WHOLE)))
