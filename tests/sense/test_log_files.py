"""The files that a training writes are found through its processes, and are not touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bitwatch.sense import training
from tests.conftest import until
from tests.sense.families import Families, families, found

__all__ = ["families"]


def paths(pid: int) -> list[str]:
    return [Path(log.path).name for log in training.of(pid).logs]


def test_what_it_prints_comes_first_then_its_own_logs_then_its_errors(families: Families) -> None:
    folder = families.folder
    with (folder / "printed").open("wb") as out, (folder / "errors").open("wb") as errors:
        alone = families.python("train.py", "1", "--log", stdout=out, stderr=errors)
    until((folder / "printed").read_text, "its first line")
    looked = found(alone.pid, workers=1)

    # A checkpoint is open for writing and an older log for reading: neither is its log.
    assert [(Path(log.path).name, log.how) for log in looked.logs] == [
        ("printed", "standard output of rank 0"),
        ("train.log", "a file that rank 0 writes"),
        ("errors", "standard error of rank 0"),
    ]
    assert Path(looked.logs[0].opened).read_text() == "ready\n"
    assert "it writes a log" in looked.evidence


def test_one_file_for_all_output_is_one_log(families: Families) -> None:
    with (families.folder / "all").open("ab") as out:
        launched = families.torchrun(2, 0, stdout=out, stderr=out)
    looked = found(launched.pid, ranks=2)

    (log,) = looked.logs
    assert log.path == str(families.folder / "all")
    assert log.how in ("standard output of rank 0", "standard output of the launcher")


def test_the_output_of_rank_0_comes_before_that_of_others(families: Families) -> None:
    """Each rank's output in a file of its own; that of rank 1 is written last."""
    program = '"$0" train.py 0 > rank0.log & RANK=1 "$0" train.py 0 > rank1.log & wait'
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": families.port}
    shell = families.start("bash", "-c", program, sys.executable, variables=variables)
    found(shell.pid, ranks=2)
    until((families.folder / "rank1.log").read_text, "its first line")
    os.utime(families.folder / "rank0.log", (0, 0))

    assert paths(shell.pid) == ["rank0.log", "rank1.log"]


def test_output_through_programs_that_copy_it_is_found_behind_them(families: Families) -> None:
    shell = families.start(
        "bash", "-c", '"$0" torchrun 1 0 2>&1 | cat | tee -a one.txt two.txt', sys.executable,
    )  # fmt: skip
    found(shell.pid)

    looked = until(lambda: len((it := training.of(shell.pid)).logs) == 2 and it, "tee's files")

    assert sorted(Path(log.path).name for log in looked.logs) == ["one.txt", "two.txt"]
    assert "through cat" in looked.logs[0].how
    assert "through tee" in looked.logs[0].how
    until(lambda: Path(looked.logs[0].opened).read_text() == "ready\n", "the text behind the pipes")


def test_a_deleted_log_is_read_through_who_writes_it(families: Families) -> None:
    kept = families.folder / "gone (really).log"
    with kept.open("wb") as out:
        alone = families.python("train.py", "1", stdout=out)
    found(alone.pid, workers=1)
    until(kept.read_text, "its first line")
    kept.unlink()

    (log,) = training.of(alone.pid).logs

    assert log.deleted
    assert log.path == str(kept)
    assert Path(log.opened).read_text() == "ready\n"


def test_a_pipe_that_nobody_reads_and_a_terminal_are_no_logs(families: Families) -> None:
    """Opening a named pipe would wait, and let its writer go on."""
    pipe = families.folder / "train.log"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    leader, terminal = os.openpty()
    alone = families.python("train.py", "1", "--log", stdout=subprocess.PIPE, stderr=terminal)
    try:
        assert found(alone.pid, workers=1).logs == ()
    finally:
        for fd in (held, leader, terminal):
            os.close(fd)
