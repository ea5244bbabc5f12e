"""Listing and helping stay light: nobody waits for torch to see a table."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import Shell

HEAVY = ("torch", "datasets", "numpy", "textual", "rich", "pyarrow", "psutil", "pynvml", "trainer")
# What `ls` loads of ours, and of others: an addition here is a decision, not an accident.
ALLOWED = {
    "bitwatch", "bitwatch.cli", "bitwatch.config", "bitwatch.strict", "bitwatch.text",
    "bitwatch.listing", "bitwatch.record", "bitwatch.record.afterwards", "bitwatch.record.codec",
    # What a state and a view are made of: together 5 ms, and nothing can be folded without them.
    "bitwatch.record.curves", "bitwatch.record.gpu", "bitwatch.record.gpu_history",
    "bitwatch.record.seen", "bitwatch.record.joined", "bitwatch.record.sampled",
    "bitwatch.record.events", "bitwatch.record.follow", "bitwatch.record.journal",
    "bitwatch.record.kernel", "bitwatch.record.recent", "bitwatch.record.rundir",
    "bitwatch.record.series", "bitwatch.record.stalls", "bitwatch.record.state",
    "bitwatch.record.view", "bitwatch.record.waits", "bitwatch.record.watched",
    # What ranks had no room to write, why they stopped, and that a file is one: together 3 ms.
    "bitwatch.record.aside", "bitwatch.record.stops", "bitwatch.record.unwritten",
    "bitwatch.small",
    "bitwatch.utf8",
}  # fmt: skip
OTHERS = {"click", "msgspec", "platformdirs", "typing_extensions"}  # the last by msgspec


def imported(shell: Shell, *arguments: str) -> set[str]:
    """Top-level names of what a command has loaded, and all modules of bitwatch."""
    program = (
        "import atexit, sys\n"
        "before = set(sys.modules)\n"
        "atexit.register(lambda: print('MODULES', *(set(sys.modules) - before)))\n"
        "from bitwatch.cli import main\n"
        f"main({list(arguments)!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("MODULES"))
    return set(line.split()[1:])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["ls"],
        ["ls", "--json"],
        ["run", "--help"],
        ["attach", "--help"],
        ["generate", "-h"],
    ],
)
def test_nothing_heavy_is_imported(shell: Shell, arguments: list[str]) -> None:
    loaded = imported(shell, *arguments)
    tops = {name.partition(".")[0] for name in loaded}
    assert not tops & set(HEAVY)
    assert {name for name in loaded if name.startswith("bitwatch")} <= ALLOWED
    outside = tops - set(sys.stdlib_module_names) - OTHERS - {"bitwatch"}
    assert not {name for name in outside if not name.startswith("_")}


def test_help_names_every_command(shell: Shell) -> None:
    out, _ = shell.run("--help")
    for command in ("run", "attach", "plan", "ls", "stop", "logs", "generate", "export"):
        assert f"  {command} " in out
    assert shell.run("--version")[0].startswith("bitwatch")


def test_no_runs_is_a_sentence_and_an_empty_list(shell: Shell) -> None:
    assert "no runs yet" in shell.run("ls")[0]
    assert shell.ls() == []
