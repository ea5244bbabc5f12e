"""Folders and files whose names are not UTF-8: what no record can name is refused in a sentence,
and nothing else is lost for one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bitwatch.record import rundir
from bitwatch.record.journal import read_all
from tests.conftest import Shell

ODD = os.fsdecode(b"d\xff")
SHOWN = r"d\udcff"


@pytest.fixture
def odd(shell: Shell) -> Path:
    folder = shell.folder / ODD
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.slow
def test_a_configuration_of_such_a_name_trains_and_its_folder_is_in_all_lists(
    shell: Shell, odd: Path
) -> None:
    config = shutil.copy(shell.config, odd)
    out, _ = shell.run("run", str(config), "--headless", "--set", "train.steps=2", cwd=odd)
    assert "done  step 2 of 2" in out
    (row,) = shell.ls()
    made = rundir.find(shell.home, row["run"])
    assert f"{SHOWN}/{shell.config.name}" in " ".join(made.identity().command)
    assert read_all(made.journal)[1] == 0, "every line of the journal is a record"
    shutil.copytree(made.path, shell.home / ODD)
    assert sorted(row["run"] for row in shell.ls()) == sorted([made.id, SHOWN])
    shutil.rmtree(shell.home / ODD)


def test_what_could_not_be_named_again_is_refused_with_what_to_do(shell: Shell, odd: Path) -> None:
    (odd / "one.txt").write_text("a b c\n" * 4000)
    (odd / "train.log").write_text("step 1 loss 2.0\n")
    config = odd / "own.toml"
    config.write_text(shell.config.read_text().replace("bundled:austen", "./one.txt"))
    _, err = shell.run("plan", str(config), code=2, cwd=odd)
    assert f"{SHOWN}/one.txt is not UTF-8" in err
    _, err = shell.run("attach", "train.log", code=2, cwd=odd)
    assert f"{SHOWN}/train.log: its name is not UTF-8" in err
    shell.environment["BITWATCH_HOME"] = str(odd)
    _, err = shell.run("ls", code=2)
    shell.environment["BITWATCH_HOME"] = str(shell.home)
    assert f"{SHOWN}: its name is not UTF-8" in err and "set BITWATCH_HOME to another" in err
