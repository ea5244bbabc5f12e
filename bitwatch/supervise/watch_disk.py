"""The alert that a disk is almost full: above all, that the next checkpoint has no place. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bitwatch.config import Checkpoint
from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.supervise.disks import CACHE, CHECKPOINTS, Room
from bitwatch.supervise.grace import BYTES_A_PARAMETER
from bitwatch.text import size

ID = "disk-low"
RECORD_BYTES = 256 << 20  # for the record and the logs of a run: a week's journal, several times
PREPARE_BYTES = 1 << 30
ENOUGH = 1.25  # times what is needed, once it was low: what hovers at a limit changes nothing


class Need(NamedTuple):
    """Room that `of` will take; `each_bytes` is the first of several."""

    whole_bytes: int
    each_bytes: int
    of: str


def at_once(checkpoint: Checkpoint) -> int:
    """Checkpoints: the oldest goes when a new one is whole. Without `every` there is one, at the
    end."""
    return checkpoint.keep + 1 if checkpoint.every else 1


def low(
    view: View, rooms: Sequence[Room], most: int, before: Mapping[str, int]
) -> dict[str, tuple[Room, Need]]:
    """The disks that are low, by what they are for. `before`: what was low, with the level that
    was said. `most`: how many checkpoints there will be at once (see `at_once`)."""
    found = {}
    for room in rooms:
        need = _need(view, room.what, most)
        if need is None:
            continue
        if room.free_bytes < need.whole_bytes * (ENOUGH if room.what in before else 1.0):
            found[room.what] = room, need
    return found


def _need(view: View, what: str, most: int) -> Need | None:
    if what == CACHE:
        return Need(PREPARE_BYTES, PREPARE_BYTES, "its text") if view.phase == "prepare" else None
    if what != CHECKPOINTS:
        return Need(RECORD_BYTES, RECORD_BYTES, "the record and the logs")
    if view.checkpoints:
        each, said = view.checkpoints[-1].bytes, f"step {view.checkpoints[-1].step:,} took"
    elif view.built:
        each, said = view.built * BYTES_A_PARAMETER, "by the size of the model,"
    else:
        return None
    more = max(1, most - len(view.checkpoints))
    if more == 1:
        return Need(each, each, f"the next checkpoint ({said} {size(each)})")
    return Need(more * each, each, f"{more} more checkpoints ({said} {size(each)} each)")


class Low:
    """What was said of each disk before: how much is left is said in powers of two, for each
    change of the sentence is a line in the record, and only ever downwards until it is over."""

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}
        self._fits = True

    def look(self, view: View, rooms: Sequence[Room], most: int) -> list[events.Alert]:
        found = low(view, rooms, most, self._levels)
        levels = {what: _level(room.free_bytes) for what, (room, _) in found.items()}
        self._levels = {
            what: min(level, self._levels.get(what, level)) for what, level in levels.items()
        }
        alerts = list(alert(view, found, self._levels, ENOUGH if not self._fits else 1.0))
        self._fits = all(one.severity != "error" for one in alerts)
        return alerts


def _level(free_bytes: int) -> int:
    """The next power of two above it, of MiB."""
    level = 1 << 20
    while level <= free_bytes:
        level *= 2
    return level


def alert(
    view: View, found: Mapping[str, tuple[Room, Need]], levels: Mapping[str, int], enough: float
) -> Iterator[events.Alert]:
    """One, of the worst: an error where the very next checkpoint does not fit, `enough` times."""
    if not found:
        return
    what = CHECKPOINTS if CHECKPOINTS in found else next(iter(found))
    room, need = found[what]
    fits = what == CHECKPOINTS and room.free_bytes >= enough * need.each_bytes
    yield events.Alert(
        id=ID,
        severity="warning" if fits else "error",
        text=f"less than {_short(levels[what])} left on the disk of {what}; {need.of} "
        f"{'needs' if need.of.startswith('the next') else 'need'} {size(need.whole_bytes)}",
        evidence=[
            f"{one.folder}: {size(one.free_bytes)} free, {size(wanted.whole_bytes)} needed for {wanted.of}"
            for one, wanted in found.values()
        ],
        next=_next(view, what, room.folder),
    )


def _short(count: int) -> str:
    return f"{count >> 30} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"


def _next(view: View, what: str, folder: str) -> str:
    if what == CHECKPOINTS:
        return (
            f"make room where {folder} is, or stop it with a checkpoint while that has a place and "
            "go on with another checkpoint.folder, or a smaller checkpoint.keep"
        )
    return f"make room where {folder} is: what cannot be written is lost"
