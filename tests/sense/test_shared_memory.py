"""Names below /dev/shm: known while a process maps them, unlinked when nobody does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

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
    made = f"psm_{os.getpid():08x}"
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


@pytest.fixture
def mapping() -> Iterator[Callable[[Path], processes.Stat]]:
    """Starts processes that map a file."""
    children = []

    def start(path: Path) -> processes.Stat:
        child = subprocess.Popen([sys.executable, "-c", MAPS, str(path)], stdout=subprocess.PIPE)
        children.append(child)
        assert child.stdout and child.stdout.readline()
        stat = processes.read_stat(child.pid)
        assert stat
        return stat

    yield start
    for child in children:
        child.kill()
        child.wait()


def unlink(*names: str) -> list[str]:
    return shared_memory.unlink_unused(names, processes.scan().values())


def test_what_an_innocent_maps_stays_whoever_recorded_its_name(
    name: str, mapping: Callable[[Path], processes.Stat]
) -> None:
    mapping(shared_memory.FOLDER / name)
    assert unlink(name) == []
    assert (shared_memory.FOLDER / name).exists()


@pytest.mark.parametrize("called", ["train.bin", "psm_train.bin", "torch_1_data", "sem.mp-train"])
def test_a_file_that_a_person_has_put_there_stays_whoever_mapped_it(
    called: str, mapping: Callable[[Path], processes.Stat]
) -> None:
    path = shared_memory.FOLDER / f"{called}.{os.getpid()}"
    try:
        stat = mapping(path)
        assert shared_memory.mapped(stat) == {path.name}
        assert shared_memory.unlink_unused([path.name], []) == []
        assert path.exists()
    finally:
        path.unlink()


LEAVES = """
import multiprocessing.shared_memory as shared, multiprocessing as processes, torch
torch.multiprocessing.set_sharing_strategy("file_system")
tensor, block = torch.zeros(4), shared.SharedMemory(create=True, size=8)
lock, array = processes.Lock(), processes.Array("i", 4)
tensor.share_memory_()
print(flush=True); import signal; signal.pause()
"""


def test_what_torch_and_python_generate_is_unlinked() -> None:
    """Their own names, whatever their version calls them."""
    with subprocess.Popen([sys.executable, "-c", LEAVES], stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline()
        stat = processes.read_stat(child.pid)
        assert stat
        names = shared_memory.mapped(stat)
        child.kill()
    try:
        assert {name.split("_")[0] for name in names} >= {"torch", "psm"}
        assert all(shared_memory.GENERATED.fullmatch(name) for name in names)
    finally:
        unlinked = shared_memory.unlink_unused(names, processes.scan().values())
    assert set(unlinked) <= names
    assert not [name for name in names if (shared_memory.FOLDER / name).exists()]


def test_a_file_of_another_folder_that_is_called_so_is_none_of_it(
    tmp_path: Path, mapping: Callable[[Path], processes.Stat]
) -> None:
    elsewhere = tmp_path / "dev" / "shm" / "a name"
    elsewhere.parent.mkdir(parents=True)
    assert shared_memory.mapped(mapping(elsewhere)) == set()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_stays(name: str) -> None:
    path = shared_memory.FOLDER / name
    path.touch()
    os.chown(path, 65534, 65534)
    assert unlink(name) == []
    assert path.exists()


def test_a_link_is_neither_followed_nor_taken_away(name: str, tmp_path: Path) -> None:
    """Nobody maps a link by its own name, so no link was ever recorded."""
    target = tmp_path / "target"
    target.touch()
    link = shared_memory.FOLDER / name
    link.symlink_to(target)
    assert unlink(name) == []
    assert target.exists() and link.is_symlink()


def test_a_name_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    """A record is text that anybody may have written."""
    victim = tmp_path / "victim"
    victim.touch()
    folder = shared_memory.FOLDER / name
    hostile = [str(victim), f"../..{victim}", "..", ".", "", f"{name}/x", f"{name}\0", "\udcff/x"]
    hostile += [f"{name}\n", f"../{name}"]
    assert unlink(*hostile, name) == []
    assert victim.exists() and not folder.exists()
