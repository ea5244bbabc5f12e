"""Names below /dev/shm: known while a process maps them, unlinked when nobody does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bitwatch.sense import processes, shared_memory

MAPS = (
    "import mmap, os, signal, sys\n"
    "file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)\n"
    "os.truncate(file, 4096)\n"
    "memory = mmap.mmap(file, 4096)\n"
    "os.close(file)\n"
    "print(flush=True)\n"
    "signal.pause()\n"
)


@pytest.fixture
def name() -> Iterator[str]:
    made = f"bitwatch test {os.getpid()}"
    yield made
    (shared_memory.FOLDER / made).unlink(missing_ok=True)


def test_a_name_is_unlinked_once_nobody_maps_it(name: str) -> None:
    path = shared_memory.FOLDER / name
    child = subprocess.Popen([sys.executable, "-c", MAPS, str(path)], stdout=subprocess.PIPE)
    assert child.stdout and child.stdout.readline()
    stat = processes.read_stat(child.pid)
    assert stat
    assert shared_memory.mapped(stat) == {name}
    everything = list(processes.scan().values())
    assert shared_memory.unlink_unused([name, "never was"], everything) == []
    assert path.exists()
    child.kill()
    child.wait()
    assert shared_memory.mapped(stat) == set()  # and of a dead one nothing is known
    assert shared_memory.unlink_unused([name, "never was"], everything) == [name]
    assert not path.exists()
