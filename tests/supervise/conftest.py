"""A run and stand-ins for its processes, which end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.record.rundir import RunDir
from tests.supervise.standins import Standins, made


@pytest.fixture
def standins() -> Iterator[Standins]:
    started = Standins()
    yield started
    started.end_all()


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return made(tmp_path)
