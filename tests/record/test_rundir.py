"""The run directory: identity, lock, finding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bitwatch.record import kernel, rundir
from bitwatch.record.rundir import Lock, LockHeld, RunDir, RunDirError


def test_a_new_run_is_private_and_says_where_it_belongs(tmp_path: Path) -> None:
    run = rundir.create(tmp_path / "runs", "demo", command=["bitwatch", "run"])
    identity = run.identity()
    assert identity.id == run.path.name
    assert identity.name == "demo"
    assert identity.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert identity.uid == os.getuid()
    assert rundir.is_here(identity) == ""
    for folder in (run.path, run.samples):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert rundir.new_attempt(run) == 1
    assert rundir.new_attempt(run) == 2
    assert run.attempts() == [1, 2]


def test_another_boot_host_or_namespace_is_elsewhere(tmp_path: Path) -> None:
    here = rundir.create(tmp_path, "demo").identity()
    replaced = msgspec.structs.replace
    assert rundir.is_here(replaced(here, boot_id="x")) == rundir.REBOOTED
    assert "another host (node7)" in rundir.is_here(replaced(here, host="node7"))
    assert "namespace" in rundir.is_here(replaced(here, pid_namespace=1))


def test_one_writer_and_its_end_frees_the_lock(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "demo")
    program = (
        "import sys; from pathlib import Path; from bitwatch.record.rundir import *;"
        "lock = Lock(RunDir(Path(sys.argv[1]))); print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(run.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout
    assert other.stdout.readline() == b"held\n"
    assert run.lock_is_held()
    assert run.holder().pid == other.pid  # type: ignore[union-attr]
    with pytest.raises(LockHeld, match=f"pid {other.pid}"):
        Lock(run)
    other.kill()
    other.wait()
    assert not run.lock_is_held()
    lock = Lock(run)
    assert run.holder().pid == os.getpid()  # type: ignore[union-attr]
    lock.release()
    assert not run.lock_is_held()


def test_probes_do_not_keep_a_writer_out(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "demo")
    for _ in range(50):
        assert not run.lock_is_held()
        Lock(run).release()


def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "demo")
    run.lock_file.unlink(missing_ok=True)
    os.mkfifo(run.lock_file)
    assert not run.lock_is_held() and run.holder() is None


def test_a_run_is_found_by_id_beginning_or_name(tmp_path: Path) -> None:
    first = rundir.create(tmp_path, "alpha")
    second = rundir.create(tmp_path, "beta")
    assert rundir.find(tmp_path, first.id).id == first.id
    assert rundir.find(tmp_path, second.id[:-2]).id == second.id
    assert rundir.find(tmp_path, "beta").id == second.id
    with pytest.raises(RunDirError, match="2 runs match"):
        rundir.find(tmp_path, first.id[:4])  # the year: the day could be another by now
    with pytest.raises(RunDirError, match="no such run"):
        rundir.find(tmp_path, "gamma")
    (tmp_path / "not-a-run").mkdir()
    assert {run.id for run in rundir.list_runs(tmp_path)} == {first.id, second.id}


def test_a_damaged_identity_is_a_sentence(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "demo")
    run.identity_file.write_bytes(b"{")
    with pytest.raises(RunDirError, match="not a run of bitwatch"):
        run.identity()
    with pytest.raises(RunDirError, match="No such file"):
        RunDir(tmp_path / "none").identity()


def test_an_identity_of_a_newer_version_is_read(tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "demo")
    table = msgspec.json.decode(run.identity_file.read_bytes())
    run.identity_file.write_bytes(msgspec.json.encode({**table, "quantum": True}))
    assert run.identity().name == "demo"


def test_a_zombie_and_a_foreign_start_time_do_not_live() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert kernel.starttime(child) is None
    os.waitpid(child, 0)
    assert kernel.starttime(child) is None
    assert kernel.starttime(os.getpid()) == kernel.own_starttime() > 0
