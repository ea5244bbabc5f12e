"""The face without a screen, on runs that go another way than it was promised."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bitwatch.record import events, rundir
from bitwatch.record.journal import JournalWriter
from tests.conftest import PATIENCE_S

FOLLOW = """
import sys
from pathlib import Path
from bitwatch.headless import Signals, follow
from bitwatch.record.rundir import RunDir
sys.exit(follow(RunDir(Path(sys.argv[1])), int(sys.argv[2]), Signals()))
"""


@pytest.mark.parametrize("before", [0, 1])
def test_who_waits_for_an_attempt_whose_supervisor_died_before_it_began_is_told(
    tmp_path: Path, before: int
) -> None:
    run = rundir.create(tmp_path, "demo")
    journal = JournalWriter(run.journal, run.reserve)
    journal.write(events.RunStarted(run=run.id, name="demo"))
    for attempt in range(1, before + 1):
        journal.write(events.AttemptStarted(attempt=attempt, steps=10, ranks=1))
        journal.write(events.AttemptEnded(attempt=attempt, state="stopped"))
    journal.close()
    done = subprocess.run(
        [sys.executable, "-c", FOLLOW, str(run.path), str(before + 1)],
        check=False, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert f"its supervisor ended before attempt {before + 1} began; see {run.path}" in done.stderr
