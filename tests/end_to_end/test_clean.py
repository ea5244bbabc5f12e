"""Hundreds of leftovers beside hundreds that look the same: all of the ones, none of the others."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bitwatch import config as configuration
from bitwatch.attach import commands
from bitwatch.record import events, kernel, rundir
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes
from tests.conftest import PATIENCE_S, Shell, alive, until, without_roots_rights
from tests.supervise.standins import ended_run, settled, write

pytestmark = pytest.mark.slow
CROWD = str(Path(__file__).parent.parent / "supervise" / "crowd.py")
Key = tuple[int, int]


class Crowd:
    """Processes of the test, ended at its end by what they are."""

    def __init__(self) -> None:
        self.keys: list[Key] = []

    def start(self, number: int, kind: str, **tags: str) -> list[Key]:
        words = [f"{name}={value}" for name, value in tags.items()]
        out = subprocess.run(
            [sys.executable, CROWD, str(number), kind, *words],
            start_new_session=True,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        keys = [(int(pid), kernel.starttime(int(pid)) or 0) for pid in out.split()]
        self.keys += keys
        until(lambda: all(_has_become(pid) for pid, _ in keys), "all of them to be there")
        return keys

    def end(self) -> None:
        for pid, starttime in self.keys:
            processes.send_signal(pid, starttime, signal.SIGKILL)


def _has_become(pid: int) -> bool:
    try:
        return b"crowd.py" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd()
    yield made
    made.end()


def tags(run: RunDir) -> dict[str, str]:
    return {
        "BITWATCH_RUN": run.id,
        "BITWATCH_ATTEMPT": "1",
        "BITWATCH_DIR": str(run.path),
    }


def clean(shell: Shell, *words: str, code: int = 0) -> dict[str, Any]:
    return json.loads(shell.run("clean", *words, "--json", code=code)[0])


def pids(listed: list[dict[str, Any]]) -> set[int]:
    return {one["pid"] for one in listed}


def test_five_hundred_leftovers_and_as_many_that_look_the_same(
    tmp_path: Path, crowd: Crowd
) -> None:
    shell = Shell(tmp_path)
    run = ended_run(shell.home)
    mine = [
        *crowd.start(400, "willing", **tags(run)),
        *crowd.start(60, "deaf", **tags(run)),
        *crowd.start(20, "again", **tags(run)),
    ]
    stopped = crowd.start(20, "willing", **tags(run))
    for pid, starttime in stopped:
        assert processes.send_signal(pid, starttime, signal.SIGSTOP)
    mine += stopped
    recorded = [
        events.ProcessStart(pid=pid, starttime=at, role="worker", rank=0, worker=0, attempt=1)
        for pid, at in mine[::2]
    ]
    write(run, *recorded)
    innocent = crowd.start(500, "left")
    settled(*mine)
    listed = clean(shell, "--all", "--dry-run")
    of_the_test = {pid for pid, _ in mine + innocent}
    assert pids(listed["own"]) & of_the_test == {pid for pid, _ in mine}
    assert pids(listed["suspect"]) >= {pid for pid, _ in innocent}
    assert {one["proof"] for one in listed["own"]} == {"recorded", "tagged"}
    began = time.monotonic()
    done = clean(shell, "--all", "--yes")
    took_s = time.monotonic() - began
    print(f"cleaned {len(done['killed'])} in {took_s:.1f} s")
    assert done["survivors"] == []
    assert pids(done["killed"]) >= {pid for pid, _ in mine}
    assert not any(alive(key) for key in mine)
    assert all(alive(key) for key in innocent)
    assert {one["ended"] for one in done["killed"]} <= {"SIGTERM", "SIGKILL", "by itself"}
    actions = [r for r in read_all(run.journal)[0] if isinstance(r, events.Action)]
    assert [action.name for action in actions] == ["clean"]
    assert not pids(clean(shell, "--all")["own"]) & of_the_test


def test_from_a_killed_agent_to_a_clean_machine_by_one_key(tmp_path: Path, crowd: Crowd) -> None:
    """With workers in sessions of their own that no signal but KILL ends, and no supervisor. The
    time beyond the grace is printed; the limit is against a hang."""
    grace_s, beyond_s = 0.3, []
    config = configuration.load(
        configuration.bundled("configs/demo.toml"), [f"watch.leftover_grace_s={grace_s}"]
    )
    for number in range(5):
        run = rundir.create(tmp_path / "runs", f"run-{number}")
        rundir.new_attempt(run)
        run.config(1).write_text(configuration.dump(config))
        write(run, events.AttemptStarted(attempt=1, steps=10, ranks=2))
        (agent,) = crowd.start(1, "willing", **tags(run))
        workers = crowd.start(8, "deaf", **tags(run))
        roles = {agent: "agent", **dict.fromkeys(workers, "worker")}
        recorded = [
            events.ProcessStart(pid=pid, starttime=at, role=role, attempt=1)
            for (pid, at), role in roles.items()
        ]
        write(run, *recorded)
        began = time.monotonic()
        assert processes.send_signal(*agent, signal.SIGKILL)
        said = commands.clean(run)
        beyond_s.append(time.monotonic() - began - grace_s)
        assert not any(alive(key) for key in workers), said
        assert beyond_s[-1] > 0  # none of them left at SIGTERM
    print(f"clean after {statistics.median(beyond_s):.2f} s beyond the grace")
    assert statistics.median(beyond_s) < 60


def test_of_a_deleted_run_the_tag_is_proof_and_a_terminal_or_another_program_is_not(
    tmp_path: Path, crowd: Crowd
) -> None:
    shell = Shell(tmp_path)
    run = ended_run(shell.home)
    chosen, own = crowd.start(2, "willing", **tags(run))
    notebook = subprocess.Popen(["/bin/sleep", "600"], env=tags(run), start_new_session=True)
    key = (notebook.pid, kernel.starttime(notebook.pid) or 0)
    rundir.remove(run.path)
    shell.home.mkdir(exist_ok=True)
    try:
        found: dict[str, Any] = {}

        def judged() -> bool:
            found.update(clean(shell, "--all"))
            return {chosen[0], own[0]} <= pids(found["own"]) and key[0] in pids(found["confirm"])

        until(judged, "both to be old enough to be judged")
        (why,) = (one["why"] for one in found["own"] if one["pid"] == own[0])
        assert "whose folder is gone" in why
        assert pids(clean(shell, "--pid", str(chosen[0]))["killed"]) == {chosen[0]}
        assert alive(own) and alive(key)
        done = clean(shell, "--all", "--yes")
        assert own[0] in pids(done["killed"])
        assert alive(key) and not alive(own)
        done = clean(shell, "--pid", str(notebook.pid), "--pid", str(os.getpid()))
        assert pids(done["killed"]) == {notebook.pid}
        assert f"pid {os.getpid()}: is no leftover" in done["notes"][0]
    finally:
        notebook.kill()
        notebook.wait()


def test_two_cleanups_at_once_end_everything_and_tell_it_once(tmp_path: Path, crowd: Crowd) -> None:
    """Among them are those who do not leave when they are told to."""
    shell = Shell(tmp_path)
    run = ended_run(shell.home)
    mine = [*crowd.start(30, "willing", **tags(run)), *crowd.start(10, "deaf", **tags(run))]
    write(
        run,
        *(events.ProcessStart(pid=pid, starttime=at, role="worker", attempt=1) for pid, at in mine),
    )
    both = [shell.start("clean", "--all", "--yes", "--json") for _ in range(2)]
    done = []
    for process in both:
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        done.append(json.loads(out))
    assert pids(done[0]["killed"]) | pids(done[1]["killed"]) >= {pid for pid, _ in mine}
    assert [one["survivors"] for one in done] == [[], []]
    assert not [note for one in done for note in one["notes"] if run.id in note]
    assert not any(alive(key) for key in mine)
    exits = [r for r in read_all(run.journal)[0] if isinstance(r, events.ProcessExit)]
    assert sorted((r.pid, r.starttime) for r in exits) == sorted(mine)


def test_a_record_that_cannot_be_written_keeps_nobody_alive(tmp_path: Path) -> None:
    """The folder and all in it are read-only, and the rights of root do not help."""
    shell = Shell(tmp_path)
    run = ended_run(shell.home)
    left = subprocess.Popen(["/bin/sleep", "600"])
    key = (left.pid, kernel.starttime(left.pid) or 0)
    parent = (os.getpid(), kernel.own_starttime())
    starts = [
        events.ProcessStart(pid=pid, starttime=at, role="rank", rank=0, attempt=1)
        for pid, at in (key, parent)
    ]
    write(run, *starts)
    rundir.Lock(run).release()
    for path in (run.lock_file, run.journal, run.path):
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        words = ("clean", run.id, "--yes", "--json")
        out, _ = shell.run(*words, preexec_fn=without_roots_rights)
    finally:
        run.path.chmod(0o700)
        left.kill()
    done = json.loads(out)
    assert pids(done["killed"]) == {left.pid}  # and not the test, from which the command comes
    assert left.wait() == -signal.SIGTERM
    assert done["survivors"] == []
    assert done["notes"] == [f"not written into the record: {run.lock_file}: Permission denied"]


def test_a_run_of_which_nothing_lives_is_closed_and_only_when_asked(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    run = rundir.create(shell.home, "demo")
    rundir.new_attempt(run)
    write(run, events.AttemptStarted(attempt=1, steps=10, ranks=2))
    identity = run.identity()
    identity.created -= 3600.0
    rundir.write_identity(run, identity)
    before = run.journal.read_bytes()
    listed = shell.run("clean", "--all", "--dry-run")[0]
    assert f"{run.id}: nothing of it lives, and its record is not closed" in listed
    assert clean(shell, "--all", "--yes", "--dry-run")["unclosed"] == [run.id]
    assert run.journal.read_bytes() == before
    (closed,) = clean(shell, run.id, "--yes")["closed"]
    assert closed == (
        f"{run.id}: the record of attempt 1 is closed: lost "
        "(its supervisor died before it could start torchrun)"
    )
    assert shell.one()["state"] == "lost"
    assert clean(shell, run.id, "--yes")["closed"] == []
