"""A signal from outside, taken by a rank as a wish to stop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RANK = """
import os, signal, sys, time
from pathlib import Path
from trainer.leaving import Leaving

leaving = Leaving(Path(sys.argv[1]), [])
before = leaving.cause()
os.kill(os.getpid(), signal.SIGTERM)
while not leaving.asked:
    time.sleep(0.01)
print([before, leaving.cause()], flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("away", [False, True])
def test_a_stop_by_a_signal_is_named_also_where_the_run_cannot_be_looked_at(
    tmp_path: Path, away: bool
) -> None:
    """An error there would end the rank before it has saved what the stop is to keep."""
    stop = tmp_path / ("x" * 300 if away else "stop")
    command = [sys.executable, "-c", RANK, str(stop)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("['', 'SIGTERM']\n", "")
