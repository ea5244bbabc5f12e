"""Steps that a log has after a traceback, and that may be older than it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.incident import errors, finding, ids, report, write
from tests.report.test_attempts import ERROR, OOM, steps
from tests.report.test_causes_of_ends import DONE, KILLED, RETRIED

FAILED = KILLED.replace("-9", "1")
PROGRAM = """\
for step in range(1, 60):
    print(f"step {step} loss 2.5")
raise ValueError("a row without text")
"""


def test_what_waited_in_a_buffer_of_a_real_program_does_not_hide_its_end(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    log = tmp_path / "train.log"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with log.open("wb") as out:
        subprocess.run(
            [sys.executable, "-m", "train"],
            cwd=tmp_path,
            env=buffered,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
    assert log.read_text().endswith("step 59 loss 2.5\n")
    made = report(str(log))
    assert errors(made) == ["exception"] and "handled" not in ids(made)
    threw = finding(made, "exception")
    assert "ValueError: a row without text" in threw.title
    assert "or was handled: the steps after it may have waited in a buffer" in threw.why
    assert "code" in finding(made, "class-of-cause").title


@pytest.mark.parametrize("end", ["", FAILED])
@pytest.mark.parametrize("raised", [ERROR, RETRIED, OOM.replace("[rank1]: ", "")])
def test_the_word_of_a_launcher_after_such_steps_changes_nothing(
    raised: str, end: str, tmp_path: Path
) -> None:
    raised = raised if "Traceback" in raised else RETRIED.rpartition("Conn")[0] + raised
    made = report(write(tmp_path, "train.log", raised + steps(1, 60) + end))
    (failed,) = [one for one in made.findings if one.severity == "error"]
    assert failed.id in ("exception", "out-of-memory")
    assert "may have waited in a buffer" in failed.why


@pytest.mark.parametrize(
    "after",
    [
        steps(31, 60) + DONE,
        steps(31, 60) + KILLED,
        steps(31, 60) + RETRIED.replace("ConnectionError", "KeyError"),
        steps(31, 3000),
        "".join(f"2025-08-24 07:20:{n:02},000 [INFO] step {n} loss 2.5\n" for n in range(31, 60)),
        "".join(f"{n}%|##| {n}/100 [00:10<00:20,  1.00it/s, loss=2.5]\n" for n in range(31, 60)),
    ],
)
def test_what_no_buffer_can_explain_shows_that_it_was_handled(after: str, tmp_path: Path) -> None:
    made = report(write(tmp_path, "train.log", steps(1, 30) + RETRIED + after))
    assert "ConnectionError" in finding(made, "handled").title
    assert not any("ConnectionError" in one.title for one in made.findings if one.id != "handled")
