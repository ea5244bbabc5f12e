"""The trainer with a loss that is not a number, once: on POISON_RANK at step POISON_STEP.

Launched in place of train.py; takes the model's loss apart before the trainer imports it.
"""

import os
import runpy
from pathlib import Path

from trainer import lifeline

if __name__ == "__main__":
    lifeline.hold_rank()
    from trainer import model

    genuine = model.nats_per_bit
    calls = 0

    def poisoned(*arguments):  # type: ignore[no-untyped-def]
        global calls
        calls += 1
        loss = genuine(*arguments)
        here = os.environ["RANK"] == os.environ["POISON_RANK"]
        return loss * float("nan") if here and calls == int(os.environ["POISON_STEP"]) else loss

    model.nats_per_bit = poisoned
    train = Path(model.__file__).with_name("train.py")
    runpy.run_path(str(train), run_name="__main__")
