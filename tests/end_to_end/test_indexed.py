"""A run over text that is prepared first: written once, resumed under other ranks, refused in a
sentence where the place would be lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from tests.conftest import Shell, alive, until, without_roots_rights

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(shell: Shell) -> RunDir:
    out, err = shell.run(
        *("run", str(shell.config), "--sharding", "auto", "--set", "train.steps=30"),
    )
    assert 'data.sharding = "auto": indexed' in err
    assert "preparing: " in out and "4 busy, 0 idle" in out
    return RunDir(Path(shell.one()["dir"]))


def test_the_text_is_prepared_before_the_ranks_and_told(shell: Shell, run: RunDir) -> None:
    assert shell.one()["state"] == "done"
    phases = [r for r in read_all(run.prepare(1))[0] if isinstance(r, events.Phase)]
    assert phases[-1].text.startswith("the text is there: 3.8 MB")
    first_rank = read_all(run.rank(1, 0))[0][0]
    assert phases[-1].t <= first_rank.t
    assert 'sharding = "indexed"' in run.config(1).read_text()
    assert Path(os.environ.get("HOME", "/")) not in (shell.folder / "cache").parents
    assert list((shell.folder / "cache").rglob("text.bin"))


def test_other_workers_go_on_at_the_same_place(shell: Shell, run: RunDir) -> None:
    changes = ("--set", "train.steps=35", "--set", "data.workers=1")
    out, _ = shell.run("run", "--resume", run.id, "--headless", *changes)
    assert "resumed after step 30, at the same place of the text" in out
    newest = run.attempts()[-1]
    texts = [r.text for r in read_all(run.prepare(newest))[0] if isinstance(r, events.Phase)]
    assert not any(text.startswith("writing") for text in texts)  # it was there


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--sharding", "as-is"], 3, "data.sharding was indexed and is as-is"),
        (["--set", "model.layers=2"], 3, "model.layers was 1 and is 2"),
    ],
)
def test_what_would_lose_the_place_or_the_model_is_refused_before_the_launch(
    shell: Shell, run: RunDir, words: list[str], code: int, says: str
) -> None:
    attempts = run.attempts()
    _, err = shell.run("run", "--resume", run.id, "--set", "train.steps=90", *words, code=code)
    assert says in err
    assert run.attempts() == attempts


def test_a_place_may_be_lost_by_leave_and_the_journal_says_so(shell: Shell, run: RunDir) -> None:
    words = ("--sharding", "as-is", "--new-epoch", "--set", "train.steps=45")
    out, _ = shell.run("run", "--resume", run.id, *words)
    assert "the data starts a new epoch" in out
    raised = [r for r in read_all(run.journal)[0] if isinstance(r, events.Alert)]
    assert any(alert.id == "resume-lost" and "seen again" in alert.text for alert in raised)
    _, err = shell.run("run", str(shell.config), "--new-epoch", code=2)
    assert "--new-epoch goes with --resume" in err


def test_a_cache_that_may_not_be_written_fails_in_a_sentence(shell: Shell) -> None:
    locked = shell.folder / "locked"
    locked.mkdir(mode=0o500)
    words = ("--sharding", "indexed", "--set", f"data.cache={locked}/text")
    out, err = shell.run("run", str(shell.config), *words, code=1, preexec_fn=without_roots_rights)
    assert "data.cache" in out + err and "may write to" in out + err
    (row,) = [row for row in shell.ls() if row["state"] == "failed"]
    assert row["step"] == 0


def test_a_sigterm_from_outside_stops_with_a_checkpoint(shell: Shell) -> None:
    """As a scheduler sends it: to torchrun, which passes it on to the ranks."""
    name = shell.launch("train.steps=100000", 'data.sharding="indexed"')
    run = RunDir(shell.home / name)

    def agent() -> tuple[int, int] | None:
        follower = Follower(run)
        follower.poll()
        state = follower.state
        first = state.ranks_of(1).get(0)
        if first is None or first.step is None or first.step.step < 10:
            return None
        processes = state.journal.processes
        return next(key for key, start in processes.items() if start.role == "agent")

    found = until(agent, "step 10")
    os.kill(found[0], signal.SIGTERM)
    until(lambda: not run.lock_is_held(), "the end of the run")
    (row,) = [row for row in shell.ls() if row["run"] == name]
    assert row["state"] == "stopped", row
    assert row["note"] == "stopped by SIGTERM to all 2 ranks, with a checkpoint"
    assert (run.checkpoints() / f"step-{row['step']}" / "manifest.json").exists()
    assert not alive(found)
