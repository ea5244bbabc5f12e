"""Python's garbage collector, kept out of the steps.

Left to itself it runs whenever it likes, on each rank at another step, and all ranks wait for
the one that it has stopped. So it runs where it is called: briefly every so many steps, at the
same ones everywhere, and thoroughly where the training pauses anyway.
"""

from __future__ import annotations

import gc

EVERY_STEPS = 100
THOROUGHLY_STEPS = 5000


def hold() -> None:
    """From now on nothing is collected but by `collect`. What is there now stays for good."""
    gc.collect()
    gc.freeze()
    gc.disable()


def collect(step: int, *, pausing: bool) -> None:
    """pausing: this step has an evaluation or a checkpoint, which takes longer anyway."""
    if pausing or step % THOROUGHLY_STEPS == 0:
        gc.collect()
    elif step % EVERY_STEPS == 0:
        gc.collect(1)
