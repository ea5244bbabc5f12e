"""Cheap processes that look like those of a training: their programs, variables, names and open
files are what real ones have, and torch in their memory is a file that is called so."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bitwatch.sense import processes, training
from bitwatch.sense.processes import Stat
from bitwatch.sense.training import Member, NoTraining, Training
from tests.conftest import until
from tests.foreign.programs import Mark

# Arguments: how many workers it has; then, for each, a copy of itself that is a rank and has
# one connection of its own. SIGUSR1 makes another worker.
TRAIN = """
import ctypes, mmap, os, signal, socket, sys
from pathlib import Path
here = Path(__file__).resolve().parent
if "--no-torch" not in sys.argv:
    file = open(here / "libtorch_cpu.so", "rb")
    library = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
if "--log" in sys.argv:
    Path("read.log").touch()
    kept = [open("train.log", "a"), open("step-10.pt", "wb"), open("read.log")]
def worker(*_):
    if os.fork() == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(15, b"pt_data_worker", 0, 0, 0)
        while True:
            signal.pause()
signal.signal(signal.SIGUSR1, worker)
for _ in range(int(sys.argv[1])):
    worker()
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 0):
    if os.fork() == 0:
        listening = socket.create_server(("127.0.0.1", 0))
        break
print("ready", flush=True)
while True:
    signal.pause()
"""

# Starts as many ranks as its first argument says; the second is for each of them.
TORCHRUN = """
import os, subprocess, sys
from pathlib import Path
size = int(sys.argv[1])
for rank in range(size):
    variables = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["PORT"], "TORCHELASTIC_RUN_ID": "none"}
    program = [sys.executable, str(Path(__file__).with_name("train.py")), sys.argv[2]]
    subprocess.Popen(program, env={**os.environ, **variables})
os.wait()
"""


class Families:
    """Starts families in a folder; all of them end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, Mark()
        self.started: list[subprocess.Popen[bytes]] = []
        # Nobody listens there. Of two tests at once each has its own: it tells whose ranks are whose.
        self.port = str(10_000 + uuid.uuid4().int % 50_000)
        (folder / "train.py").write_text(TRAIN)
        (folder / "ipykernel_launcher.py").write_text(TRAIN)
        (folder / "torchrun").write_text(TORCHRUN)
        (folder / "libtorch_cpu.so").write_bytes(b"torch")

    def start(self, *command: str, **keywords: Any) -> subprocess.Popen[bytes]:
        variables = keywords.pop("variables", {})
        for stream in ("stdin", "stdout", "stderr"):
            keywords.setdefault(stream, subprocess.DEVNULL)
        child = subprocess.Popen(
            command,
            env={**os.environ, "PORT": self.port, **self.mark.environment, **variables},
            cwd=self.folder,
            **keywords,
        )
        self.started.append(child)
        return child

    def python(self, *words: str, **keywords: Any) -> subprocess.Popen[bytes]:
        return self.start(sys.executable, *words, **keywords)

    def torchrun(self, ranks: int, workers: int, **keywords: Any) -> subprocess.Popen[bytes]:
        return self.python("torchrun", str(ranks), str(workers), **keywords)

    def end(self) -> None:
        self.mark.end_all()
        for child in self.started:
            child.wait()


@pytest.fixture
def families(tmp_path: Path) -> Iterator[Families]:
    made = Families(tmp_path)
    yield made
    made.end()


def found(pid: int, ranks: int = 1, workers: int = 0) -> Training:
    """The training of this pid, once it has so many ranks and so many workers."""

    def whole() -> Training | None:
        try:
            looked = training.of(pid)
        except NoTraining:
            return None
        counts = len(of_role(looked, "rank")), len(of_role(looked, "worker"))
        return looked if counts == (ranks, workers) else None

    return until(whole, f"{ranks} ranks and {workers} workers of pid {pid}")


def refusal(pid: int) -> str:
    with pytest.raises(NoTraining) as refused:
        training.of(pid)
    return str(refused.value)


def of_role(found: Training, role: str) -> list[Member]:
    return [member for member in found.members if member.role == role]


def children(pid: int) -> list[Stat]:
    return processes.descendants(processes.scan(), {pid})
