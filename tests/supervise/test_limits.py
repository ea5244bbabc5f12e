"""A supervisor at the limit of its processes and files: it goes on, and tries again."""

from __future__ import annotations

import os
import selectors
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.record.view import View
from bitwatch.supervise import disks, sensor
from bitwatch.supervise.disks import RUN, Disks
from bitwatch.supervise.sensor import Sensor
from tests.conftest import until


@pytest.fixture
def no_thread() -> Iterator[None]:
    """No thread can be started: no process has room for a stack of this size."""
    before = threading.stack_size(1 << 48)
    yield
    threading.stack_size(before)


def test_without_another_thread_the_disks_are_looked_at_later(
    no_thread: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "EVERY_S", 0.0)
    looked = Disks({RUN: tmp_path})
    assert looked.look(View()) == looked.look(View()) == ()
    threading.stack_size(0)
    until(
        lambda: looked.look(View()) == () and looked._seen[RUN],
        "the disks to be looked at after all",
    )


def test_without_another_process_the_sensor_is_started_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sensor, "SILENT_S", 0.0)
    selector = selectors.DefaultSelector()
    sensing = Sensor(60.0)
    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as refused:
        refused.setattr(sys, "executable", "/nowhere/python")
        sensing.start(selector)
        assert sensing.check(selector) == [] and not sensing.pids
    assert os.listdir("/proc/self/fd") == before
    assert sensing.check(selector) == []
    (pid,) = sensing.pids
    sensing.stop()
    os.waitpid(pid, 0)
    sensing._close(selector)
    selector.close()
