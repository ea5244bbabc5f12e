"""What a process that runs for weeks and makes the same things every second asks of Python."""

from __future__ import annotations

import gc

YOUNG = 20_000  # objects that are made before it looks for rings among them; else 700
MIDDLE, OLD = 20, 50  # and how often it looks among those that have lived longer; else 10, 10


def collect_seldom() -> None:
    """Looking for rings costs a part of each second, and hardly any are made: what there is by
    now stays for good and is not looked at again, and what comes is looked at less often."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
