"""Stand-ins for processes, which end with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.supervise.standins import Standins


@pytest.fixture
def standins() -> Iterator[Standins]:
    started = Standins()
    yield started
    started.end_all()
