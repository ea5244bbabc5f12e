"""Starts trainings that know nothing of bitwatch, and ends all of each of them.

All that a program starts is known by a variable in its environment that nothing else has: its
launcher may be gone by then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bitwatch.sense import processes
from bitwatch.sense.processes import Stat
from tests.conftest import PATIENCE_S, until

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-u", "-m", "torch.distributed.run", "--standalone"]


class Mark:
    """A name in the environment of a program and of all that it starts."""

    def __init__(self) -> None:
        self.text = f"PROGRAM_OF_A_TEST={uuid.uuid4().hex}"
        name, _, value = self.text.partition("=")
        self.environment = {name: value}

    def bearers(self) -> list[Stat]:
        """The processes that have it, alive."""
        found = []
        for stat in processes.scan().values():
            with contextlib.suppress(OSError):
                environment = Path(f"/proc/{stat.pid}/environ").read_bytes()
                if self.text.encode() in environment.split(b"\0"):
                    found.append(stat)
        return found

    def end_all(self) -> None:
        def ended() -> bool:
            bearers = self.bearers()
            for stat in bearers:
                processes.send_signal(*stat.key, signal.SIGKILL)
            return not bearers

        until(ended, "the end of all that a program has started")


class Running(NamedTuple):
    """`process` is the launcher, or the program itself. `tee` writes `log` where one does."""

    process: subprocess.Popen[bytes]
    log: Path
    mark: Mark
    tee: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def reach(self, text: str, limit_s: float = PATIENCE_S) -> None:
        """Waits until its log has this."""

        def reached() -> bool:
            said = self.log.read_text(errors="replace")
            assert text in said or self.process.poll() is None, said[-3000:]
            return text in said

        until(reached, f"{text!r} in {self.log}", limit_s)


@contextlib.contextmanager
def running(command: list[str], log: Path, *, through_tee: bool = False) -> Iterator[Running]:
    """Starts it with its output in `log`, and ends all of it at the end; it may not have said
    anything yet."""
    mark = Mark()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("BITWATCH_")},
        **mark.environment,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    tee = None
    log.touch()
    if through_tee:
        tee = subprocess.Popen(
            ["tee", str(log)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
        )
        output = tee.stdin
    else:
        output = log.open("ab")
    assert output
    with output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        yield Running(process, log, mark, tee)
    finally:
        mark.end_all()
        process.wait()
        if tee is not None:
            tee.wait()


def nanogpt(
    folder: Path, *options: str, ranks: int = 2, through_tee: bool = False
) -> contextlib.AbstractContextManager[Running]:
    """Under torchrun; it trains when it has said "iter 3:". Options as in nanogpt_style.py."""
    program = str(HERE / "nanogpt_style.py")
    command = [*TORCHRUN, "--nproc-per-node", str(ranks), program, *options]
    return running(command, folder / "nanogpt.log", through_tee=through_tee)


def hf_trainer(
    folder: Path, *options: str, through_tee: bool = False
) -> contextlib.AbstractContextManager[Running]:
    """One process; it trains when it has said "'loss'"."""
    command = [sys.executable, "-u", str(HERE / "hf_trainer.py"), str(folder), *options]
    return running(command, folder / "trainer.log", through_tee=through_tee)
