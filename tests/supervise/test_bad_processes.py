"""What may be wrong with processes and with the record that names them: nothing wrong is killed,
and the result says what happened."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from bitwatch.record import events, kernel, rundir
from bitwatch.record.follow import Follower
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes
from bitwatch.supervise import cleanup, leftovers
from bitwatch.supervise.clean import Cleaner
from bitwatch.supervise.evidence import Machine
from bitwatch.supervise.ownership import Verdict
from bitwatch.supervise.result import Result
from tests.conftest import alive, until
from tests.supervise.standins import (
    ATTEMPT,
    ENDED,
    WORKER,
    Key,
    Standins,
    of,
    settled,
    start,
    tags,
    write,
)

NEXT_PID = Path("/proc/sys/kernel/ns_last_pid")
NOBODY = 65534
# From then on what it has in /proc looks like root's.
HIDDEN = "import os, signal; os.setuid(65534); print(flush=True); signal.pause()"


def verdicts(run: RunDir) -> dict[int, Verdict]:
    return {verdict.seen.stat.pid: verdict for verdict in Machine(run.path.parent).verdicts()}


def cleaned(run: RunDir) -> Result:
    cleaner = Cleaner(run.path.parent, run)
    return cleaner.clean(cleaner.look(), (), "test", 0.5)


def with_pid(pid: int, standins: Standins) -> Key:
    """An innocent process under a pid that has come free. Others start processes too."""
    for _ in range(200):
        try:
            NEXT_PID.write_text(str(pid - 1))
        except OSError:
            pytest.skip(f"{NEXT_PID}: no right to choose the next pid")
        child = subprocess.Popen(["/bin/sleep", "600"])
        if child.pid == pid:
            standins.started.append(child)
            return pid, kernel.starttime(pid) or 0
        child.kill()
        child.wait()
    pytest.skip("the pid was taken by somebody else each time")


def test_a_pid_that_means_another_process_by_now_is_not_signalled(
    run: RunDir, standins: Standins
) -> None:
    """The worker ends after it was listed, and its pid is given out again, for real."""
    worker = standins.start()
    write(run, ATTEMPT, start(worker), ENDED)
    cleaner = Cleaner(run.path.parent, run)
    found = cleaner.look()
    assert [one.pid for one in found.own] == [worker[0]]
    began = processes.read_stat(worker[0])
    assert began  # a start time is told in hundredths of a second
    until(lambda: processes.age_s(began) > 0.02, "another one to begin later")
    standins.end(worker)
    innocent = with_pid(worker[0], standins)
    assert innocent[0] == worker[0] and innocent != worker
    # Even when nobody looks again between the listing and the signals.
    listed = [[cleanup.Target(worker, "worker")]]
    ended, survivors = cleanup.clean(lambda: listed.pop() if listed else [], 0.5)
    assert ([one.how for one in ended], survivors) == (["by itself"], [])
    result = cleaner.clean(found, [innocent[0]], "test", 0.5)
    assert [(one.starttime, one.ended) for one in result.killed] == [(worker[1], "by itself")]
    assert result.survivors == []
    assert alive(innocent)
    # Nobody saw it end, so its session number proves nothing of whoever begins from now on.
    (told,) = of(read_all(run.journal)[0], events.ProcessExit)
    assert (told.pid, told.starttime, told.m) == (*worker, 0.0)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
@pytest.mark.parametrize("hidden", [False, True], ids=["plain", "hides its memory"])
def test_a_process_of_another_user_is_not_ended_whatever_the_record_says(
    run: RunDir, standins: Standins, hidden: bool
) -> None:
    if hidden:
        other = standins.start(HIDDEN)
        assert os.stat(f"/proc/{other[0]}/environ").st_uid == 0
    else:
        other = standins.start(looks=WORKER, user=NOBODY, group=NOBODY)
    write(run, ATTEMPT, start(other, "rank"), ENDED)
    verdict = verdicts(run)[other[0]]
    assert verdict.class_ == "never"
    assert f"another user ({NOBODY})" in verdict.why
    assert cleaned(run).killed == []
    follower = Follower(run)
    follower.poll()
    assert leftovers.find(follower.state, {1}) == []  # nor by its supervisor
    assert alive(other)


def test_what_a_person_started_inside_a_run_needs_a_confirmation(
    run: RunDir, standins: Standins, tmp_path: Path
) -> None:
    """A tmux server, and in its terminal a shell and what looks like a worker."""
    tmux = shutil.which("tmux")
    if tmux is None:
        pytest.skip("tmux is not installed")
    write(run, ATTEMPT, ENDED)
    folder = tempfile.mkdtemp(dir="/tmp")  # the name of a socket has 107 bytes at most
    server = [tmux, "-S", f"{folder}/tmux", "-f", "/dev/null"]
    shell = f"exec -a '{WORKER}' sleep 600 & echo $! > {tmp_path}/worker; wait"
    command = [*server, "new-session", "-d", "bash", "-c", shell]
    subprocess.run(command, env=tags(run), check=True, start_new_session=True)
    try:
        told = subprocess.run(
            [*server, "display-message", "-p", "#{pid} #{pane_pid}"],
            env=tags(run),
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        until((tmp_path / "worker").exists, "the shell to have started its child")
        until(lambda: (tmp_path / "worker").read_text().strip(), "its pid")
        inside = [*map(int, told.split()), int((tmp_path / "worker").read_text())]
        keys = [(pid, kernel.starttime(pid) or 0) for pid in inside]
        command = Path(f"/proc/{inside[2]}/cmdline")
        until(lambda: command.read_text().startswith(WORKER), "the child to look like a worker")
        settled(*keys)
        found = verdicts(run)
        assert {found[pid].class_ for pid in inside} == {"confirm"}
        assert "nothing that a training starts" in found[inside[0]].why
        assert all("has a terminal" in found[pid].why for pid in inside[1:])
        assert found[inside[2]].role == "worker"
        assert cleaned(run).killed == []
        assert all(alive(key) for key in keys)
    finally:
        subprocess.run([*server, "kill-server"], check=False)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("journal", "found_by"),
    [("cut in the middle of it", "tagged"), ("with bytes that are no record", "recorded")],
)
def test_a_damaged_record_hides_no_leftover(
    run: RunDir, standins: Standins, journal: str, found_by: str
) -> None:
    """A worker whose line is cut is found by its tag, and its rank's child by descent."""
    worker = standins.start(looks=WORKER, env=tags(run))
    rank = standins.start(
        "import os, signal\nif os.fork() == 0:\n    signal.pause()\nprint(flush=True)\nsignal.pause()"
    )
    write(run, ATTEMPT, ENDED, start(rank, "rank"), start(worker))
    data = run.journal.read_bytes()
    if found_by == "tagged":
        run.journal.write_bytes(data[: data.rindex(b'"starttime"')])
    else:
        lines = data.splitlines(keepends=True)
        odd = [b"\xff\xfe\x00{[\n", b'{"kind":"process-start","pid":"x"}\n', b"[" * 9000 + b"\n"]
        odd += [b'{"kind":"process-exit","pid":-1,"starttime":99999999999999999999}\n']
        run.journal.write_bytes(b"".join([*odd, *lines, *odd]))
    settled(worker, rank)
    found = verdicts(run)
    child = next(pid for pid, verdict in found.items() if verdict.proof == "descends")
    assert found[child].seen.stat.ppid == rank[0]
    assert (found[worker[0]].class_, found[worker[0]].proof) == ("own", found_by)
    result = cleaned(run)
    assert {one.pid for one in result.killed} == {worker[0], rank[0], child}
    assert not alive(worker) and not alive(rank)
    assert len(of(read_all(run.journal)[0], events.ProcessExit)) >= 3


@pytest.mark.parametrize("jump_s", [-1e9, 1e9])
def test_a_clock_that_was_set_changes_no_proof(
    run: RunDir, standins: Standins, jump_s: float
) -> None:
    """Proofs are made of start times, which are told in ticks since the machine started."""
    worker, other = standins.start(), standins.start()
    records = [ATTEMPT, start(worker), start((other[0], other[1] - 1)), ENDED]
    told_at = time.time() + jump_s
    for record in records:
        record.t = told_at
    write(run, *records)
    identity = run.identity()
    identity.created = told_at
    rundir.write_identity(run, identity)
    found = verdicts(run)
    assert found[worker[0]].proof == "recorded" and other[0] not in found
    before = time.monotonic()
    assert [one.pid for one in cleaned(run).killed] == [worker[0]]
    assert alive(other)
    (told,) = of(read_all(run.journal)[0], events.ProcessExit)
    assert before < told.m < time.monotonic()


def test_a_run_that_never_ended_before_the_clock_was_set_back_is_closed(run: RunDir) -> None:
    write(run, ATTEMPT)
    identity = run.identity()
    identity.created = time.time() + 1e6
    rundir.write_identity(run, identity)
    assert len(cleaned(run).closed) == 1


def test_of_another_boot_nothing_here_is_ours(run: RunDir, standins: Standins) -> None:
    worker = standins.start(looks=WORKER, env=tags(run))
    write(run, ATTEMPT, start(worker), ENDED)
    identity = run.identity()
    identity.boot_id = "another"
    rundir.write_identity(run, identity)
    settled(worker)
    assert verdicts(run).get(worker[0], None) is None or (
        verdicts(run)[worker[0]].class_ == "suspect"
    )
    assert cleaned(run).killed == []
    assert alive(worker)


def test_a_folder_that_nobody_can_look_at_or_of_another_home_is_not_gone(
    run: RunDir, standins: Standins
) -> None:
    """The environment of a process is text of whoever started it."""

    def told(directory: str) -> Key:
        return standins.start(looks=WORKER, env={**tags(run), "BITWATCH_DIR": directory})

    odd = [told("/" + "x" * 5000), told("relative"), told(f"{run.lock_file}\udcff")]
    gone = told(f"{run.path}\udcff")
    settled(*odd, gone)
    found = verdicts(run)
    assert found[gone[0]].class_ == "own"
    assert not {pid for pid, _ in odd} & found.keys()  # the last is of another home


def test_who_starts_a_leftover_of_another_class_meanwhile_is_not_ended(
    run: RunDir, standins: Standins
) -> None:
    """A chosen process that belongs to a live attempt by now is left alone."""
    chosen, agent = standins.start(looks="daemon", env=tags(run)), standins.start()
    write(run, ATTEMPT, ENDED)
    settled(chosen)
    cleaner = Cleaner(run.path.parent, run)
    found = cleaner.look()
    assert [one.pid for one in found.confirm] == [chosen[0]]
    write(run, events.AttemptStarted(attempt=2, ranks=2), start(agent, "agent", 2))
    write(run, start(chosen, "worker", 2))
    lock = rundir.Lock(run)
    result = cleaner.clean(found, [chosen[0]], "test", 0.5)
    lock.release()
    assert result.killed == [] and alive(chosen)
    assert processes.send_signal(*agent, signal.SIGKILL)
