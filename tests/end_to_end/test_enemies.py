"""What careless people and bad luck do to a run's files, and what must not come of it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from tests.conftest import Shell, alive, until

pytestmark = pytest.mark.slow
FOREVER = "train.steps=100000"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def rundir(shell: Shell) -> RunDir:
    return RunDir(Path(shell.one()["dir"]))


def damage(checkpoint: Path) -> None:
    with open(checkpoint / "__0_0.distcp", "r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 400)


def is_whole(checkpoint: Path) -> bool:
    """Whether every file is what the manifest says."""
    try:
        manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    except OSError:
        return False
    return all(
        hashlib.sha256((checkpoint / name).read_bytes()).hexdigest() == facts["sha256"]
        for name, facts in manifest["files"].items()
    )


@pytest.mark.long
def test_a_damaged_checkpoint_is_said_written_anew_and_never_costs_a_good_one(
    shell: Shell,
) -> None:
    changes = ["train.steps=40", "checkpoint.every=20", "parallel.ranks=1", "data.workers=0"]
    words = [word for change in changes for word in ("--set", change)]
    shell.run("run", str(shell.config), *words)
    run = rundir(shell)
    newest = run.checkpoints() / "step-40"
    damage(newest)
    assert not is_whole(newest)
    out, _ = shell.run("run", "--resume", run.id)
    assert "step-40 is damaged" in out
    assert "resumed after step 20" in out
    assert is_whole(newest)

    damage(newest)
    shell.run("run", "--resume", run.id, "--set", "train.steps=30", "--set", "checkpoint.keep=1")
    assert shell.one()["state"] == "done"
    assert is_whole(run.checkpoints() / "step-30")
    assert not is_whole(newest)


@pytest.mark.long
def test_relative_places_mean_the_directory_of_the_command(shell: Shell) -> None:
    """And a run that was stopped before its first checkpoint says that it starts anew."""
    (shell.folder / "texts").mkdir()
    lines = "".join(json.dumps({"text": f"line {i} of a text\n"}) + "\n" for i in range(4000))
    (shell.folder / "texts" / "a.jsonl").write_text(lines)
    places = ["data.source=texts", "data.validation=texts/*.jsonl", "checkpoint.folder=kept"]
    shell.launch(FOREVER, "parallel.ranks=1", "data.workers=0", *places)
    shell.reach(10)
    run = rundir(shell)
    shell.run("stop", run.id, "--now")
    elsewhere = shell.folder / "elsewhere"
    elsewhere.mkdir()
    out, _ = shell.run("run", "--resume", run.id, "--set", "train.steps=20", cwd=elsewhere)
    assert "no whole checkpoint: starting anew at step 0" in out
    row = shell.one()
    assert (row["state"], row["step"]) == ("done", 20)
    assert is_whole(shell.folder / "kept" / run.id / "checkpoints" / "step-20")


@pytest.mark.long
def test_lines_that_cannot_be_written_and_lost_files_do_not_keep_a_run_from_being_stopped(
    shell: Shell,
) -> None:
    with open("/dev/full", "w") as full:
        process = shell.start("run", str(shell.config), "--set", FOREVER, stdout=full)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "No space left" in err
    assert "goes on" in err
    shell.reach(10)
    run = rundir(shell)
    run.identity_file.write_text("xx")
    run.config(1).unlink()
    shell.run("stop", run.id)
    row = shell.one()
    assert row["state"] == "stopped"
    assert is_whole(run.checkpoints() / f"step-{row['step']}")


@pytest.mark.long
def test_a_run_whose_directory_is_deleted_ends(shell: Shell) -> None:
    shell.launch(FOREVER, "watch.grace_s=5")
    shell.reach(10)
    run = rundir(shell)
    journal, _ = read_all(run.journal)
    begun = [(r.pid, r.starttime) for r in journal if isinstance(r, events.ProcessStart)]
    follower = Follower(run)
    follower.poll()
    begun += [(rank.pid, rank.starttime) for rank in follower.state.ranks_of(1).values()]
    assert len(begun) > 4
    shutil.rmtree(run.path)
    until(lambda: not any(map(alive, begun)), "every process of the run to be gone")
