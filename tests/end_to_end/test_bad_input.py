"""What can be wrong before a launch: one clear sentence, the right exit code, nothing lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from tests.conftest import TINY, Shell, until, without_roots_rights


def refused(shell: Shell, *arguments: str, code: int) -> str:
    """The one sentence on stderr; nothing on stdout, no traceback, no run left behind."""
    out, err = shell.run(*arguments, code=code)
    assert out == ""
    assert "Traceback" not in err
    assert shell.ls() == []
    said = [line for line in err.splitlines() if "looking at the model" not in line]
    assert len(said) == 1, err
    return said[0]


@pytest.fixture(scope="module")
def odd(shell: Shell) -> Path:
    """A folder of files that are no configuration, and of data that cannot be trained on."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = shell.folder / "odd"
    (folder / "empty").mkdir(parents=True)
    (folder / "columns").mkdir()
    pq.write_table(pa.table({"body": ["a"], "n": [1]}), folder / "columns" / "a.parquet")
    (folder / "binary.toml").write_bytes(b"\x7fELF\x00\xff\xfe")
    (folder / "broken.toml").write_text("[train\nsteps = 1")
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "missing.toml"], "missing.toml: no such file"),
        (["plan", "missing.toml"], "missing.toml: no such file"),
        (["run", "odd/binary.toml"], "is not a text file"),
        (["run", "odd/broken.toml"], "is not valid TOML"),
        (["run", "odd"], "is a folder"),
        (["run", "tiny.toml", "--set", "model.heads=5"], "5 heads do not divide d_model 32"),
        (["run", "tiny.toml", "--set", "train.stpes=5"], "did you mean train.steps?"),
        (["run", "tiny.toml", "--sharding", "best"], "data.sharding"),
        (["run", "tiny.toml", "--set", "data.source=nowhere/*.txt"], "nowhere"),
        (["run", "tiny.toml", "--set", "data.source=odd/empty"], "data.source"),
        (
            ["run", "tiny.toml", "--set", "data.source=odd/columns", "--set", "data.validation="],
            "body",
        ),
        (["run", "tiny.toml", "--set", "parallel.device=cuda"], "need 2 GPUs"),
        (["run", "--resume", "nothing"], "no such run"),
        (["stop", "nothing"], "no such run"),
        (["run", "--resume", ""], "the run id is empty"),
        (["stop", ""], "the run id is empty"),
        (["logs", "\x1b[31m"], "\\x1b[31m: no such run"),
        (["logs", "nothing"], "no such run"),
        (["attach", "--replay", "nothing"], "no such run"),
        (["attach", "--replay", "odd"], "odd: is no run"),
        (["attach", "--replay", "nothing", "--speed", "nan"], "--speed nan: give a number above 0"),
        (["generate", "nothing"], "no such run"),
        (["generate", "nothing", "--temperature", "nan"], "--temperature: must be from 0 to 100"),
        (["generate", "odd"], "odd: is a folder, but no exported model"),
        (["export", "nothing", "folder"], "no such run"),
    ],
)
def test_a_wrong_path_or_value_is_one_sentence_and_code_2(
    shell: Shell, odd: Path, arguments: list[str], said: str
) -> None:
    assert said in refused(shell, *arguments, code=2)


def test_a_promise_about_parameters_is_kept_before_the_launch(shell: Shell) -> None:
    changed = ["--set", "model.expected_parameters=7"]
    said = refused(shell, "run", "tiny.toml", *changed, code=3)
    assert "8,674 parameters, not the 7" in said
    shell.run("plan", "tiny.toml", *changed, code=3)


def test_a_hub_that_cannot_be_reached_is_refused(shell: Shell) -> None:
    changed = ["--set", "data.source=Some/dataset", "--set", "data.config=small"]
    assert "Some/dataset" in refused(shell, "run", "tiny.toml", *changed, code=3)


def test_unknown_commands_and_options_are_usage(shell: Shell) -> None:
    for arguments in (
        *(["trian"], ["run", "--fast"], ["stop"], ["run", "a", "b"]),
        *(["attach", "--speed", "3"], ["attach", "a", "--replay", "b"]),
    ):
        _, err = shell.run(*arguments, code=2)
        assert "Traceback" not in err


def test_a_configuration_that_may_not_be_read(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.config.chmod(0)
    _, err = shell.run("run", "tiny.toml", code=2, preexec_fn=without_roots_rights)
    assert "tiny.toml: cannot be read: Permission denied" in err


def test_a_home_that_may_not_be_written(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.home.mkdir(mode=0o555)
    _, err = shell.run("run", "tiny.toml", code=2, preexec_fn=without_roots_rights)
    assert f"{shell.home}: cannot make a run directory: Permission denied" in err
    assert list(shell.home.iterdir()) == []


def fill(disk: Path, but: int) -> None:
    """Leaves `but` bytes of it."""
    facts = os.statvfs(disk)
    with open(disk / "ballast", "wb") as file:
        file.write(b"x" * (facts.f_bavail * facts.f_frsize - but))


def test_a_full_disk_before_the_launch(tmp_path: Path, small_disk: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["BITWATCH_HOME"] = str(small_disk / "runs")
    until(lambda: full(small_disk), "a full disk")
    assert "No space left" in refused(shell, "run", "tiny.toml", code=2)


def test_a_read_only_disk(tmp_path: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    shell = Shell(tmp_path)
    shell.environment["BITWATCH_HOME"] = str(small_disk / "runs")
    assert "Read-only file system" in refused(shell, "run", "tiny.toml", code=2)


@pytest.mark.slow
def test_a_disk_that_is_full_when_the_checkpoint_is_due(tmp_path: Path, small_disk: Path) -> None:
    """The run fails with that cause; what was recorded before stays readable."""
    shell = Shell(tmp_path)
    shell.config.write_text(TINY + f'[checkpoint]\nfolder = "{small_disk}"\n')
    fill(small_disk, but=50 << 10)
    out, _ = shell.run("run", "tiny.toml", code=1)
    row = shell.one()
    assert row["state"] == "failed"
    assert row["step"] == 60
    assert "No space left" in out
    assert not list(small_disk.glob("**/manifest.json"))


@pytest.mark.slow
@pytest.mark.long
def test_a_disk_that_fills_under_the_record(tmp_path: Path, small_disk: Path) -> None:
    """Training goes on without a record, a stop can still be asked, and the last words say
    why no checkpoint could be written."""
    shell = Shell(tmp_path)
    shell.home = small_disk / "runs"
    shell.environment["BITWATCH_HOME"] = str(shell.home)
    name = shell.launch("train.steps=100000")
    shell.reach(10)
    until(lambda: full(small_disk), "a full disk")
    written = shell.one()["step"]
    shell.run("stop", name, code=1)
    row = shell.one()
    assert row["state"] == "failed"
    assert "No space left" in row["note"]
    assert row["step"] > written
    run = RunDir(Path(row["dir"]))
    _, skipped = read_all(run.journal)
    assert skipped <= 1


def full(disk: Path) -> bool:
    """Takes what room has come free, until none has."""
    with open(disk / "ballast", "ab", buffering=0) as file:
        try:
            while file.write(b"x" * 4096) == 4096:
                pass
        except OSError:
            pass
    return not os.statvfs(disk).f_bavail
