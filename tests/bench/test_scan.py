"""The bench of looking at processes leaves none behind, however it ends."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bitwatch.sense import processes
from bitwatch.sense.processes import Facts
from tests.bench.test_benches import BENCH, run
from tests.conftest import until

pytestmark = pytest.mark.slow
MARK = {"BITWATCH_RUN": "the-crowd-of-a-bench"}


def crowd() -> list[int]:
    """Cats with the mark of this test in their environment."""
    known = Facts()
    cats = [stat for stat in processes.scan().values() if stat.name == "cat"]
    return [
        stat.pid for stat in cats if (tags := known.tags(stat)) and tags.run == MARK["BITWATCH_RUN"]
    ]


def test_every_way_of_looking_is_measured_beside_ours(tmp_path: Path) -> None:
    figures, printed = run("scan.py", tmp_path, "--processes", "150", "--seconds", "2")
    assert figures["processes"] >= 140
    for ratio in ("all, for the first time", "all, again", "command lines and users too"):
        assert figures[f"{ratio}: psutil / ours"] > 1
    assert 0 < figures["a supervisor's second, % of a core"] < 100
    if importlib.util.find_spec("nvitop") is None:
        assert "left out: nvitop is not installed here" in printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_its_crowd_ends_with_it(number: signal.Signals) -> None:
    bench = subprocess.Popen(
        [sys.executable, str(BENCH / "scan.py"), "--processes", "300"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | MARK,
    )
    try:
        until(lambda: len(crowd()) > 30, "the beginning of a crowd")
        bench.send_signal(number)
        assert bench.wait(60) != 0
        until(lambda: not crowd(), "the end of the crowd")
    finally:
        bench.kill()
        bench.wait()
