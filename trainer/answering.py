"""What `trainer.generate` and `trainer.export` share: a program that answers a command.

Ends with the command that started it, leaves the processors to whoever trains, and keeps
stdout for its answers alone.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from bitwatch.record import answers
from trainer import lifeline
from trainer.failures import NotFound, sentence

NICENESS = 10  # a run that is live may need every processor
FAILED, USAGE = 1, 2

Tell = Callable[[answers.Answer], None]


def parser(program: str) -> argparse.ArgumentParser:
    """With the arguments that both have: where the weights are, and whose work it is."""
    made = argparse.ArgumentParser(prog=f"python -m {program}")
    made.add_argument("--checkpoints", type=Path, help="the folder of a run's checkpoints")
    made.add_argument("--step", type=int, help="instead of the newest")
    made.add_argument("--parent", help="the pid with which this process ends")
    return made


def answer(parsed: argparse.Namespace, work: Callable[[Tell], str]) -> NoReturn:
    """Does `work`, which is given the way to answer and returns the last word. To be called
    before torch is imported, which takes seconds."""
    if parsed.parent:
        lifeline.die_with(parsed.parent)
    # As an exception, so that what is half made is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.nice(NICENESS)
    out = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers

    def tell(one: answers.Answer) -> None:
        os.write(out, answers.encode(one))

    try:
        ended = answers.Ended(work(tell))
    except Exception as error:
        ended = answers.Ended(sentence(error), USAGE if isinstance(error, NotFound) else FAILED)
    tell(ended)
    sys.stderr.flush()
    os._exit(ended.code)  # torch's exit handlers take a while and have nothing to do
