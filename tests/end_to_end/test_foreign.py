"""Two trainings that know nothing of bitwatch, attached to while they run: real programs, which
are only looked at until somebody says otherwise. Each is launched once."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.attach import target
from bitwatch.attach.follow import Feed
from bitwatch.attach.telling import Snapshot
from bitwatch.record.follow import lives
from bitwatch.record.rundir import RunDir, list_runs
from bitwatch.sense.processes import Key, read_stat
from tests.conftest import Shell, until
from tests.foreign.programs import Running, hf_trainer, nanogpt
from tests.terminal import Terminal


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One process, with its output through tee."""
    with hf_trainer(tmp_path_factory.mktemp("trainer"), through_tee=True) as program:
        yield program


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Two ranks with two workers each, below torchrun."""
    with nanogpt(tmp_path_factory.mktemp("gpt")) as program:
        yield program


def shown(feed: Feed, condition: object, what: str) -> Snapshot:
    assert callable(condition)

    def met() -> Snapshot | None:
        picture = feed.latest
        return picture if picture is not None and condition(picture) else None

    return until(met, what)


def counted(picture: Snapshot) -> Counter[str]:
    return Counter(row.role for row in picture.view.processes)


def open_feed(run: RunDir) -> Feed:
    feed = Feed(run)
    feed.start()
    feed.go_on()
    return feed


def signals_of(key: Key) -> tuple[str, ...]:
    """What waits for it, and what it has blocked: nobody may have sent anything."""
    text = Path(f"/proc/{key[0]}/status").read_text()
    return tuple(re.findall(r"(?:SigPnd|ShdPnd):\s*(\w+)", text))


def test_torchruns_training_is_watched_and_what_its_launcher_leaves_is_cleaned_when_confirmed(
    shell: Shell, gpt: Running, trainer: Running
) -> None:
    gpt.reach("iter 3:")
    with Terminal(shell, "attach") as screen:  # without a word: it is offered
        screen.see("Which run?", f"pid {gpt.pid}: ", "2 ranks, 4 workers", "launches trainings")
        screen.press("q")
        screen.leave()
    assert f"pid {gpt.pid} (" in shell.run("attach", code=2)[1]
    assert not shell.home.exists() or not list_runs(shell.home)
    worker = next(stat for stat in gpt.mark.bearers() if stat.name.startswith("pt_data"))
    with Terminal(shell, "attach", str(worker.pid), size=(150, 45)) as screen:
        screen.see("RUNNING", "nanogpt_style", "rank 0", "rank 1", "worker 1")
        (run,) = list_runs(shell.home)
        feed = open_feed(run)
        now = shown(
            feed, lambda p: p.view.step >= 20 and counted(p)["worker"] == 4, "twenty steps"
        ).view
        assert now.built == 110_000 and now.ranks == 2 and now.workers == 2
        assert Counter(row.role for row in now.processes) == {"agent": 1, "rank": 2, "worker": 4}
        ((_, curve),) = now.loss
        assert sum(curve.counts) >= 20 and curve.low[0] > now.last.loss  # type: ignore[union-attr]
        assert now.last and now.last.step_s and not now.alerts
        assert feed.watcher is None  # the terminal's viewer has one
        keys = [row.key for row in now.processes]
        found = json.loads(shell.run("clean", "--json", "--dry-run")[0])
        assert not [one for name in ("own", "confirm") for one in found[name]]
        assert "bitwatch did not start it" in shell.run("stop", run.id, code=2)[1]
        assert "iter 3: loss" in shell.run("logs", run.id)[0]
        assert all(lives(*key) and not any(int(s, 16) for s in signals_of(key)) for key in keys)
        later = now.step + 10
        shown(feed, lambda p: p.view.step >= later, "steps to go on")

        os.kill(gpt.pid, signal.SIGKILL)
        screen.see("LOST", "6 of its", "ask first", "6 processes of this training live on")
        left = [key for key in keys if key[0] != gpt.pid]
        found = json.loads(shell.run("clean", "--json", "--yes")[0])  # ends what is proven ours
        assert {one["pid"] for one in found["confirm"]} == {pid for pid, _ in left}
        assert all("bitwatch did not start" in one["why"] for one in found["confirm"])
        assert not found["own"] and not found["killed"] and all(lives(*key) for key in left)
        screen.press("c")
        screen.see("End 6 processes?", "rank 1, pid", "Cancel")
        screen.press("\r")  # where the focus is
        screen.until(lambda text: "End 6 processes?" not in text, "the question to go")
        assert all(lives(*key) for key in left)
        screen.press("c")
        screen.see("End 6 processes?")
        screen.press("\x1b[C", "\r")
        until(lambda: not any(lives(*key) for key in left), "the leftovers to end")
        shown(feed, lambda p: not p.view.alerts, "a picture without them")
        exits = '"kind":"process-exit"'
        until(lambda: run.journal.read_text().count(exits) == 7, "their ends to be on record")
        screen.press("q")
        screen.leave()
        feed.close()
    assert lives(trainer.pid, starttime(trainer.pid))
    until(lambda: '"name":"clean"' in run.journal.read_text(), "the cleanup to be on record")


def test_the_trainer_of_hugging_face_is_watched_through_tee_and_its_end_is_told(
    shell: Shell, trainer: Running
) -> None:
    trainer.reach("'loss'")
    assert trainer.tee is not None
    found = target.meant(shell.home, str(trainer.log))  # the log that a live training has open
    assert not isinstance(found, (Path, RunDir)) and found.root[0] == trainer.pid
    run = target.opened(shell.home, found)
    feeds = [open_feed(run)]
    now = shown(
        feeds[0],
        lambda p: p.view.step >= 5 and p.view.last.loss and counted(p)["worker"] == 2,
        "five steps, and its processes",
    ).view
    assert now.state == "running" and now.last and now.last.learning_rate
    assert sum(row.role == "rank" for row in now.processes) == 1
    ((_, curve),) = now.loss
    assert len(curve.starts) >= 3
    feeds.append(open_feed(run))
    shown(feeds[1], lambda p: p.view.step >= now.step, "the same steps for a second viewer")
    holder = run.holder()
    assert holder and holder.pid == feeds[0].watcher and feeds[1].watcher is None
    os.kill(trainer.pid, signal.SIGKILL)
    ended = shown(feeds[1], lambda p: p.view.state in ("lost", "failed"), "its end").view
    assert "processes have ended" in ended.cause or "is gone" in ended.cause
    for feed in feeds:
        feed.close()


def starttime(pid: int) -> int:
    stat = read_stat(pid)
    assert stat is not None
    return stat.starttime
