"""The bench of reports measures the whole command on evidence of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.test_benches import run

pytestmark = pytest.mark.slow


def test_a_record_and_a_log_are_reported_of(tmp_path: Path) -> None:
    sizes = ("--steps", "200", "--ranks", "2", "--journal-mb", "0.1", "--log-mb", "0.1")
    figures, printed = run("report.py", tmp_path, *sizes)
    for name in ("the record of a week", "a long log"):
        assert figures[name]["entries"] > 1
        assert figures[name]["mb"] > 0.1
        assert name in printed
