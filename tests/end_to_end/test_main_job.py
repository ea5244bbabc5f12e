"""The main job as a person runs it: one command, a whole training, a record, a resume."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.rundir import RunDir
from tests.conftest import Shell, alive

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
        "bits/s",
        "step-60",
        f"bitwatch run --resume {row['run']}",
    ):
        assert word in summary
    assert "reading as-is" in err
    assert "idle" in err


def test_idle_readers_are_told_with_what_to_do(first: tuple[str, str, dict[str, Any]]) -> None:
    out = first[0]
    assert "2 of 4 readers have nothing to read: rank 0 worker 1, rank 1 worker 1" in out
    assert "--set data.workers=1" in out
    assert "this alone does not hang a run" in out


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
    assert [role for key, role in begun.items() if alive(key)] == []
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
    (samples,) = run.samples.iterdir()
    sampled = [r for r in read_all(samples)[0] if isinstance(r, events.Processes)]
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
    assert [attempt.grace_s for attempt in started] == [40.0, 210.0]


def test_stopping_what_has_ended_says_so(shell: Shell, run: RunDir, resumed: object) -> None:
    _, err = shell.run("stop", run.id)
    assert "has ended already (done)" in err
