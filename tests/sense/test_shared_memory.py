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
    assert unlink(*hostile, name) == []
    assert victim.exists() and not folder.exists()
