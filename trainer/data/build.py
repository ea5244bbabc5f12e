"""Writing a text into its flat form: parts side by side, then joined in order.

What comes out does not depend on how many processes wrote it. No more of a text is in memory
than a batch for each of them, and on the disk no more than the text itself and the parts
that wait for their turn.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from bitwatch.record.rundir import write_whole
from trainer.data import index, parts
from trainer.data.identity import Identity
from trainer.data.parts import Part
from trainer.data.pool import Pool
from trainer.data.source import Source, SourceError

TELL_S = 0.2  # between two words of a process that writes
JOIN_BYTES = 16 << 20  # copied at once; between two copies the parent looks around
SYNC_BYTES = 64 << 20  # so much may wait for the disk, or the end of the work would
ENDS = 1 << 16  # ends of documents copied at once


class Order(msgspec.Struct, frozen=True):
    """What a process is to write, and where: the file of the text, and beside it a file of
    the documents' ends, counted from the part's beginning."""

    source: Source
    column: str
    part: Part
    text: Path

    @property
    def ends(self) -> Path:
        return self.text.with_suffix(".ends")


class Progress(msgspec.Struct):
    """How far a text is written. `expected` and `fraction` only where something tells."""

    bytes: int
    expected: int | None
    fraction: float | None
    processes: int


def write(
    source: Source,
    column: str,
    identity: Identity,
    folder: Path,
    pool: Pool,
    tell: Callable[[Progress], None],
) -> None:
    """Fills a new folder with the index of a source. Raises Failed, or the OSError of a disk
    that is full or may not be written to."""
    began_m = time.monotonic()
    folder.mkdir(mode=0o700)
    ((source, cut),) = [told.value for told in pool.run(_cut, [(source, column)]) if not told.done]
    orders = [
        Order(source, column, part, folder / f"part-{number:06}") for number, part in enumerate(cut)
    ]
    written = [0] * len(cut)
    whole: set[int] = set()
    joined = 0
    with open(folder / index.TEXT, "wb") as text, open(folder / index.OFFSETS, "wb") as offsets:
        offsets.write(np.zeros(1, "<u8").tobytes())
        for told in pool.run(_write, orders):
            if told.done:
                whole.add(told.task)
            else:
                written[told.task] = told.value
            tell(_progress(cut, written, whole, min(pool.most, len(cut))))
            while joined in whole:
                _join(orders[joined], text, offsets, pool.look)
                joined += 1
        for file in (text, offsets):
            file.flush()
            os.fsync(file.fileno())
    made = {name: index.looks(folder / name) for name in (index.TEXT, index.OFFSETS)}
    if not made[index.TEXT].size:
        raise SourceError(f"{source.key}: its files hold no rows", "Give a source with text")
    about = index.About(
        key=identity.key,
        source=identity.about,
        files=identity.files,
        documents=made[index.OFFSETS].size // 8 - 1,
        bytes=made[index.TEXT].size,
        text=made[index.TEXT],
        offsets=made[index.OFFSETS],
        created=time.time(),
        seconds=round(time.monotonic() - began_m, 3),
    )
    write_whole(folder / index.ABOUT, msgspec.json.format(msgspec.json.encode(about)))


def _cut(task: tuple[Source, str]) -> Iterator[tuple[Source, list[Part]]]:
    """Work of the pool: footers can be many, and the hub far away."""
    yield parts.cut(*task)


def _write(order: Order) -> Iterator[int]:
    """Work of the pool: writes one part, and tells now and then how many bytes it has."""
    size, told_m = 0, 0.0
    with open(order.text, "wb") as text, open(order.ends, "wb") as ends:
        for block, lengths in parts.blocks(order.source, order.column, order.part):
            text.write(block.data)
            ends.write((np.cumsum(lengths, dtype="<u8") + np.uint64(size)).data)
            size += len(block)
            if time.monotonic() - told_m > TELL_S:
                told_m = time.monotonic()
                yield size
    yield size


def _join(order: Order, text: BinaryIO, offsets: BinaryIO, look: Callable[[], None]) -> None:
    """Moves a part to the end of the text, and its ends to the end of the offsets."""
    begin = text.tell()
    with open(order.text, "rb") as part:
        while sent := os.sendfile(text.fileno(), part.fileno(), None, JOIN_BYTES):
            position = text.seek(0, os.SEEK_CUR)
            if position // SYNC_BYTES != (position - sent) // SYNC_BYTES:
                os.fdatasync(text.fileno())
            look()
    with open(order.ends, "rb") as part:
        while raw := part.read(8 * ENDS):
            offsets.write((np.frombuffer(raw, "<u8") + np.uint64(begin)).data)
    order.text.unlink()
    order.ends.unlink()


def _progress(cut: list[Part], written: list[int], whole: set[int], processes: int) -> Progress:
    """Parts that are whole count as such; of the others, what their expected size tells."""
    done = 0.0
    for number, part in enumerate(cut):
        if number in whole:
            done += part.weight
        elif part.expected:
            done += part.weight * min(1.0, written[number] / part.expected)
    known = [part.expected for part in cut if part.expected is not None]
    telling = len(known) == len(cut) or len(cut) > 1
    return Progress(
        bytes=sum(written),
        expected=sum(known) if len(known) == len(cut) else None,
        fraction=done / sum(part.weight for part in cut) if telling else None,
        processes=processes,
    )
