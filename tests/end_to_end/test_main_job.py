"""The main job as a person runs it: one command, a whole training, a record, a resume."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.rundir import Lock, RunDir
from tests.conftest import PATIENCE_S, Shell, alive, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def first(shell: Shell) -> tuple[str, str, dict[str, Any]]:
    """stdout, stderr and listing of a run to its end, from a folder that would shadow the
    trainer and its libraries."""
    for name in ("trainer.py", "datasets.py", "msgspec.py"):
        (shell.folder / name).write_text("raise SystemExit('picked up from the folder')\n")
    out, err = shell.run("run", str(shell.config))
    return out, err, shell.one()


@pytest.fixture(scope="module")
def run(shell: Shell, first: tuple[str, str, dict[str, Any]]) -> RunDir:
    return RunDir(Path(first[2]["dir"]))


@pytest.fixture(scope="module")
def resumed(shell: Shell, run: RunDir) -> tuple[str, dict[str, Any]]:
    """After a first attempt whose last checkpoint took 100 s, as on a slow disk."""
    (saved,) = [r for r in read_all(run.rank(1, 0))[0] if isinstance(r, events.Checkpoint)]
    saved.seconds = 100.0
    journal = JournalWriter(run.rank(1, 0))
    journal.write(saved)
    journal.close()
    out, _ = shell.run("run", "--resume", run.id, "--set", "train.steps=90")
    return out, shell.one()


def loss_series(run: RunDir, attempt: int) -> dict[int, float]:
    records, skipped = read_all(run.rank(attempt, 0))
    assert skipped == 0
    return {r.step: r.loss for r in records if isinstance(r, events.Step) and r.loss is not None}


def test_the_lines_tell_the_whole_story(first: tuple[str, str, dict[str, Any]]) -> None:
    out, err, row = first
    lines = out.splitlines()
    assert lines[0].startswith("bitwatch  tiny")
    assert row["run"] in lines[0]
    assert "8,674 parameters built" in out
    assert "2 ranks x 2 workers = 4 readers · 2 busy, 2 idle" in out
    heading = next(i for i, line in enumerate(lines) if "bits/byte" in line)
    steps = [line for line in lines[heading:] if "/60 " in line]
    assert [line.split("/")[0].strip() for line in steps] == [
        "1",
        "10",
        "20",
        "30",
        "40",
        "50",
        "60",
    ]
    assert len({line.index("/60") for line in steps}) == 1  # aligned
    assert "validation" in out
    summary = out[out.index("\ndone") :]
    for word in (
        "loss",
        "bits per byte",
        "step-60",
        f"bitwatch run --resume {row['run']}",
    ):
        assert word in summary
    assert "data.sharding" not in err  # only where the choice was left open


def test_idle_readers_are_told_once_with_what_to_do(
    first: tuple[str, str, dict[str, Any]], run: RunDir
) -> None:
    out = first[0]
    assert "! warning 2 of 4 readers idle: 2 shards for 2 ranks x 2 workers" in out
    told = [r for r in read_all(run.journal)[0] if isinstance(r, events.Alert) and r.evidence]
    idle = [alert for alert in told if "given no shard" in " ".join(alert.evidence)]
    assert {alert.id for alert in idle} == {"workers-exceed-shards"}
    for rank in (0, 1):
        assert f"rank {rank} worker 1: given no shard (pid " in " ".join(idle[-1].evidence)
    assert "R on the screen relaunches it with sharding indexed" in out
    assert f"bitwatch run --resume {first[2]['run']} --new-epoch --sharding indexed" in out
    assert "This alone does not hang a run" in out


def test_the_listing_says_done(first: tuple[str, str, dict[str, Any]]) -> None:
    row = first[2]
    assert (row["state"], row["supervisor"], row["attempt"]) == ("done", "ended", 1)
    assert (row["step"], row["steps"], row["parameters"]) == (60, 60, 8674)
    assert row["loss"] == pytest.approx(0.55, abs=0.2)
    assert row["name"] == "tiny"
    assert row["host"] == os.uname().nodename


def test_nothing_of_it_is_left(run: RunDir) -> None:
    journal, skipped = read_all(run.journal)
    assert skipped == 0
    begun = {(r.pid, r.starttime): r.role for r in journal if isinstance(r, events.ProcessStart)}
    roles = sorted(role for role in begun.values() if role != "other")
    assert roles.count("rank") == 2
    assert roles.count("worker") == 4
    assert {"supervisor", "agent"} <= set(roles)
    until(lambda: not any(map(alive, begun)), "its supervisor, the last of all, to leave")
    ended = {(r.pid, r.starttime): r for r in journal if isinstance(r, events.ProcessExit)}
    agent = next(key for key, role in begun.items() if role == "agent")
    assert ended[agent].status == 0
    commands = {r.role: r.command for r in journal if isinstance(r, events.ProcessStart)}
    assert "torch.distributed.run" in commands["agent"]
    assert "train.py" in commands["rank"]


def test_the_record_holds_what_the_design_says(run: RunDir) -> None:
    identity = run.identity()
    assert identity.versions["torch"]
    assert identity.command[1:3] == ["run", str(Path(identity.command[2]))]
    plan = json.loads(run.plan(1).read_bytes())
    assert plan["data"]["readers_idle"] == 2
    assert json.loads(run.exit(1).read_bytes())["state"] == "done"
    kinds = {type(record) for record in read_all(run.journal)[0]}
    assert {
        events.RunStarted, events.AttemptStarted, events.DataPlanned, events.Alert,
        events.ProcessStart, events.ProcessExit, events.AttemptEnded, events.RunEnded,
    } <= kinds  # fmt: skip
    samples = sorted(run.samples.iterdir())  # one an hour
    sampled = [r for one in samples for r in read_all(one)[0] if isinstance(r, events.Processes)]
    ranks = [p for r in sampled for p in r.processes if p.role == "rank"]
    assert {p.rank for p in ranks} == {0, 1}
    assert max(p.rss_mib or 0 for p in ranks) > 50
    assert max(p.cpu_percent or 0 for p in ranks) > 1


def test_the_readers_speak_for_themselves(run: RunDir) -> None:
    files = sorted(path.name for path in (run.attempt(1) / "readers").iterdir())
    accounts = {}
    for name in files:
        last = read_all(run.attempt(1) / "readers" / name)[0][-1]
        assert isinstance(last, events.Reader)
        if last.loader == "train":
            accounts[last.rank, last.worker] = last
    assert set(accounts) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    for rank in (0, 1):
        assert accounts[rank, 1].state == "idle"
        assert accounts[rank, 1].shards == []
        assert accounts[rank, 0].shards
        assert accounts[rank, 0].samples > 0


def test_a_whole_checkpoint_is_left(run: RunDir) -> None:
    manifest = json.loads((run.checkpoints() / "step-60" / "manifest.json").read_bytes())
    assert manifest


def test_what_it_has_learned_can_be_asked_and_exported(shell: Shell, run: RunDir) -> None:
    """Also while somebody holds the run, as a supervisor does."""
    lock = Lock(run)
    words = ["--bytes", "40", "--seed", "7"]
    text, err = shell.run("generate", "tiny", "It is a truth", *words)
    lock.release()
    assert len(text) > 20 and text.endswith("\n")
    assert "40 bytes in" in err and "bytes/s on cpu; step 60, seed 7" in err
    shell.run("export", run.id, "learned")
    assert sorted(os.listdir(shell.folder / "learned")) == ["config.json", "model.safetensors"]
    done = subprocess.run(
        [*shell.command, "generate", "learned", "-", *words],
        env=shell.environment,
        cwd=shell.folder,
        input="to the letter: It is a truth",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "its last 15 bytes are used" in done.stderr
    assert done.stdout != text  # the prompt fills the window
    _, err = shell.run("export", run.id, "learned", code=2)
    assert "learned: is not empty" in err


def test_a_checkpoint_that_cannot_be_asked_is_a_sentence(
    shell: Shell, run: RunDir, tmp_path: Path
) -> None:
    _, err = shell.run("generate", run.id, "--step", "61", code=2)
    assert "no whole checkpoint of step 61, only of 60" in err
    other = Shell(tmp_path)
    copy = RunDir(other.home / run.id)
    shutil.copytree(run.path, copy.path)
    with open(copy.checkpoints() / "step-60" / "__1_0.distcp", "r+b") as file:
        file.write(b"X")
    out, err = other.run("generate", run.id, "It is", code=1)
    assert out == ""
    assert "step-60 is damaged (__1_0.distcp has changed)" in err
    assert len(err.splitlines()) == 1


def test_ctrl_c_ends_a_text_and_its_process(shell: Shell, run: RunDir) -> None:
    process = shell.start("generate", run.id, "--bytes", "1000000")
    assert process.stdout is not None
    assert process.stdout.read(1)
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert err.strip() == ""
    assert not Path(f"/proc/{child}").exists()


def test_logs_are_shown_literally(shell: Shell, run: RunDir) -> None:
    with open(run.logs(1) / "rank0.log", "ab") as log:
        log.write(b"\x1b[31mred\x1b]0;title\x07 [b]bold[/b] \xff\r\n")
    out, _ = shell.run("logs", run.id, "--rank", "0")
    assert "\x1b" not in out
    assert "\\x1b[31mred" in out
    assert "[b]bold[/b]" in out
    merged, _ = shell.run("logs", run.id)
    assert any(line.startswith("rank0 ") for line in merged.splitlines())
    shell.run("logs", run.id, "--rank", "9", code=2)


def test_resume_goes_on_from_the_checkpoint(
    run: RunDir, resumed: tuple[str, dict[str, Any]]
) -> None:
    out, row = resumed
    assert (row["state"], row["attempt"], row["step"], row["steps"]) == ("done", 2, 90, 90)
    assert "attempt 2" in out.splitlines()[0]
    before, after = loss_series(run, 1), loss_series(run, 2)
    assert sorted(after) == [70, 80, 90]
    assert after[70] == pytest.approx(before[60], rel=0.05)
    assert "resumed after step 60, at the same place of the text" in out
    assert "step 60" not in next(line for line in out.splitlines() if "checkpoint" in line)
    started = [r for r in read_all(run.journal)[0] if isinstance(r, events.AttemptStarted)]
    first, second = (attempt.grace_s for attempt in started)
    assert first == 40.0
    assert second is not None and 210.0 < second < 240.0  # and what steps and a score took


def test_stopping_what_has_ended_says_so(shell: Shell, run: RunDir, resumed: object) -> None:
    _, err = shell.run("stop", run.id)
    assert "has ended already (done)" in err
