"""The trainer with its loss taken apart: with POISON_RANK it is not a number, once, on that rank
at step POISON_STEP; with HELD_AT the loss of that number waits until the file HELD_FOR is there.

Launched in place of train.py, before the trainer imports its model.
"""

import os
import runpy
import time
from pathlib import Path

from trainer import lifeline

if __name__ == "__main__":
    lifeline.hold_rank()
    from trainer import model

    genuine = model.nats_per_bit
    here = os.environ["RANK"] == os.environ.get("POISON_RANK")
    poisoned = int(os.environ["POISON_STEP"]) if here else 0
    held, until = int(os.environ.get("HELD_AT", "0")), os.environ.get("HELD_FOR", "")
    calls = 0

    def disturbed(*arguments):  # type: ignore[no-untyped-def]
        global calls
        calls += 1
        while calls == held and not os.path.exists(until):
            time.sleep(0.01)
        loss = genuine(*arguments)
        return loss * float("nan") if calls == poisoned else loss

    model.nats_per_bit = disturbed
    train = Path(model.__file__).with_name("train.py")
    runpy.run_path(str(train), run_name="__main__")
