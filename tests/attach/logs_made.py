"""Logs that tests write: of any kind of line, and of lines that say when they were printed."""

from __future__ import annotations

import random

from bitwatch.attach.log_pages import BLOCK_BYTES, PIECE_BYTES

LENGTHS = (0, 1, 40, 200, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES, 5 * PIECE_BYTES)


def clock(second: int) -> str:
    """A time of a day, that many seconds after its beginning."""
    return f"2025-08-24 {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def written(dice: random.Random) -> bytes:
    """Lines of all lengths around those where something is cut, some with carriage returns."""
    lines = []
    for _ in range(300):
        length = dice.choice(LENGTHS[:4]) if dice.random() < 0.9 else dice.choice(LENGTHS)
        length = max(0, length + dice.randint(-2, 2))
        lines.append(bytes(dice.choice(b"ab\r\xc3\xa9 ") for _ in range(min(length, 99))))
        lines[-1] += b"z" * (length - len(lines[-1]))
    lines.append(b"y" * (BLOCK_BYTES + dice.randint(0, PIECE_BYTES)))
    lines += [b"short"] * dice.randint(0, 2)
    return b"\n".join(lines) + dice.choice([b"", b"\n", b"\n\n", b"\nopen"])
