"""A process whose parent died while it began leaves at once, before it has imported what takes
seconds. That the tie holds afterwards is shown on whole runs (tests/end_to_end/test_deaths.py)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bitwatch.supervise import launch

HEAVY = ("torch", "datasets", "pyarrow", "numpy", "msgspec", "bitwatch.config")
AGAIN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__mp_main__')"


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        ([str(launch.trainer_script())], "BITWATCH_AGENT"),
        ([str(launch.trainer_script("prepare.py"))], "BITWATCH_AGENT"),
        (["-m", "trainer.inspect", "none.toml"], "BITWATCH_PARENT"),
        (["-c", AGAIN, str(launch.trainer_script())], "BITWATCH_PARENT"),
        (["-c", AGAIN, str(launch.trainer_script("prepare.py"))], "BITWATCH_PARENT"),
    ],
    ids=["rank", "prepare", "inspect", "spawned worker", "process of the pool"],
)
def test_an_orphan_leaves_before_it_imports_anything_heavy(words: list[str], variable: str) -> None:
    dead = subprocess.Popen(["/bin/true"])
    dead.wait()
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words],
        env={**os.environ, variable: str(dead.pid)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "trainer.lifeline" in imported
    assert not imported.intersection(HEAVY)
