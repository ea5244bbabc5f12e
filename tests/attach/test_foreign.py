"""A training that bitwatch did not start, as a run: found again, watched, and left alone. The
watcher works in this process, on stand-ins that the tests start."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bitwatch import launching
from bitwatch.attach import commands, family, foreign, target
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower, lives
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.sense.processes import Key, read_stat, send_signal
from bitwatch.stop import stop_run
from bitwatch.supervise import begin
from bitwatch.supervise.evidence import Machine
from bitwatch.supervise.known_runs import KnownRuns
from tests.attach.conftest import NOBODY_UID, Start, needs_root
from tests.attach.watched import append, ended, follow, look, seen, steps, training_of, watching
from tests.conftest import until
from tests.sense.families import Families, families, found
from tests.supervise.standins import write

__all__ = ["families"]


def test_the_same_log_and_the_same_training_are_the_same_run(
    home: Path, log: Path, watched: tuple[RunDir, Key, Key]
) -> None:
    first = foreign.of_log(home, log)
    assert foreign.of_log(home, log).path == first.path
    run, launcher, rank = watched
    assert foreign.of_training(home, training_of(launcher, rank)).path == run.path
    assert foreign.of_training(home, training_of(rank, rank)).path == run.path  # by its rank
    assert run.id.split("-")[3] == "train_gpt"
    identity = run.identity()
    assert identity.foreign and identity.root == launcher
    assert len(rundir.list_runs(home)) == 2


def test_what_a_word_means(home: Path, log: Path, tmp_path: Path, start: Start) -> None:
    assert target.meant(home, str(log)) == log
    sleeper, _ = start()
    (tmp_path / "empty.log").touch()
    (tmp_path / "odd.log").write_bytes(b"\x7fELF\0\0\1\2" * 500)
    os.mkfifo(tmp_path / "pipe.log")
    run = rundir.create(home, "ours")
    inside = run.path / "rank0.log"
    inside.write_text("a line\n")
    ours = target.meant(home, str(inside))
    assert isinstance(ours, RunDir) and ours.path == run.path
    for word, why in (
        (str(sleeper), f"pid {sleeper} is sleep"),
        ("4194303", "no process 4194303"),
        ("99999999999999999999", "no process 99999999999999999999"),
        (str(tmp_path), "is a folder without a run"),
        (str(tmp_path / "empty.log"), "is empty"),
        (str(tmp_path / "odd.log"), "is a binary file"),
        (str(tmp_path / "pipe.log"), "is a pipe"),
        ("nothing", "no such run"),
    ):
        with pytest.raises(RunDirError, match=why):
            target.meant(home, word)


@pytest.mark.parametrize("how", ["launch", "adopt", "relaunch"])
def test_the_pid_of_a_supervisor_of_our_own_means_its_run(
    tmp_path: Path, families: Families, how: str
) -> None:
    """Its command line ends in words for a person."""
    run = rundir.create(tmp_path / "my runs 1", "ours")
    module = families.folder / "bitwatch" / "supervise" / "supervisor.py"
    module.parent.mkdir(parents=True)
    for folder in module.parents[:2]:
        (folder / "__init__.py").touch()
    module.write_text("import signal; print(flush=True); signal.pause()")
    words = [str(run.path), "2", how, "the screen (pid 5)", "3 of 4 ranks failed"]
    supervisor = families.python(
        "-m", "bitwatch.supervise.supervisor", *words, stdout=subprocess.PIPE
    )
    assert supervisor.stdout and supervisor.stdout.readline()
    meant = target.meant(tmp_path, str(supervisor.pid))
    assert isinstance(meant, RunDir) and meant.path == run.path


@needs_root("start a process of another user")
def test_a_process_of_another_user_is_refused(home: Path, start: Start) -> None:
    theirs, _ = start(user=NOBODY_UID)
    with pytest.raises(RunDirError, match="of another user"):
        target.meant(home, str(theirs))


# -- processes ------------------------------------------------------------------------------


def test_whose_processes_end_is_lost_with_the_last_line_of_its_log(
    watched: tuple[RunDir, Key, Key], log: Path
) -> None:
    run, launcher, rank = watched
    follow(run, log)
    with watching(run) as watcher:
        assert seen(run).state == "running" and seen(run).processes
        for key in (rank, launcher):
            send_signal(*key, signal.SIGKILL)
        ended(run, watcher)
    now = seen(run)
    assert now.state == "lost"
    assert now.cause.endswith("its log does not say how; last line: " + steps(range(9, 10)).strip())
    assert {exit.pid for exit in now.exits} == {rank[0]}
    assert run.exit(1).exists()
    assert KnownRuns(run.path.parent).facts()[0].live == 0


def test_a_training_that_ends_while_it_is_attached_to_is_on_record(
    home: Path, start: Start
) -> None:
    launcher, rank = start(), start()
    found = training_of(launcher, rank)
    for key in (rank, launcher):
        send_signal(*key, signal.SIGKILL)
    until(lambda: not lives(*rank) and not lives(*launcher), "their end")
    run = foreign.of_training(home, found)
    with watching(run) as watcher:
        ended(run, watcher)
    now = seen(run)
    assert now.state == "lost" and {exit.pid for exit in now.exits} == {rank[0]}
    assert now.cause == "its processes have ended, and no log of it is known"


def test_what_is_attached_to_before_it_has_ranks_is_known_when_they_come(
    home: Path, log: Path, families: Families
) -> None:
    """Its log holds the steps of an earlier training."""
    torchrun = families.folder / "torchrun"
    torchrun.write_text(f"input()\n{torchrun.read_text()}")
    with log.open("a") as output:
        launcher = families.torchrun(2, 2, stdin=subprocess.PIPE, stdout=output)
    run = foreign.of_training(home, found(launcher.pid, ranks=0))

    def started() -> events.AttemptStarted:
        follower = Follower(run)
        follower.poll()
        told = follower.state.journal.attempts[follower.state.newest_attempt()].started
        assert told
        return told

    with watching(run) as watcher:
        assert (started().ranks, started().workers, seen(run).step) == (1, 0, 9)
        assert launcher.stdin
        launcher.stdin.write(b"\n")
        launcher.stdin.close()

        def known() -> bool:
            look(watcher)
            return len(watcher.family.rank_keys()) == 2 and started().workers == 2

        until(known, "its ranks and workers")
        assert started().ranks == 2
        assert watcher.logs.logs[str(log)].translator.ranks == 2
        append(log, steps(range(3)))
        look(watcher)
        assert (seen(run).attempt, seen(run).step, started().ranks) == (2, 2, 2)


def test_whose_log_tells_why_has_failed(watched: tuple[RunDir, Key, Key], log: Path) -> None:
    run, launcher, rank = watched
    follow(run, log)
    with watching(run) as watcher:
        append(log, 'Traceback (most recent call last):\n  File "train_gpt.py", line 3, in f\n')
        append(log, "    g()\nValueError: odd\n")
        for key in (rank, launcher):
            send_signal(*key, signal.SIGKILL)
        ended(run, watcher)
    assert seen(run).state == "failed" and "ValueError: odd" in seen(run).cause


def test_what_a_dead_launcher_leaves_needs_a_confirmation_and_before_it_nothing_is_touched(
    watched: tuple[RunDir, Key, Key], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "LEFT_S", 0.3)
    run, launcher, rank = watched
    machine = Machine(run.path.parent)

    def classes() -> dict[int, str]:
        return {verdict.seen.stat.pid: verdict.class_ for verdict in machine.verdicts()}

    with watching(run) as watcher:
        assert classes()[launcher[0]] == classes()[rank[0]] == "live"
        (facts,) = machine.runs
        assert facts.foreign and facts.live == 1 and not facts.orphaned
        send_signal(*launcher, signal.SIGKILL)
        ended(run, watcher)
        assert seen(run).state == "lost"
        assert seen(run).cause.startswith(f"its launcher (pid {launcher[0]}) is gone and 1 ")
        assert classes()[rank[0]] == "confirm"
        assert lives(*rank)
        look(watcher)  # goes on recording what is left
        assert any(row.pid == rank[0] for row in seen(run).processes)
        said = commands.end_left(run, [launcher, rank])
        assert f"rank 0 (pid {rank[0]})" in said and "1 process had ended already" in said
        assert not lives(*rank)


def test_while_its_launcher_lives_nothing_of_it_is_left_over_in_whatever_attempt(
    watched: tuple[RunDir, Key, Key],
) -> None:
    """A new attempt is on record before anybody has looked again at who is there: whoever
    watched may have been killed in that second."""
    run, launcher, rank = watched
    machine = Machine(run.path.parent)

    def classes() -> list[str]:
        found = {verdict.key: verdict.class_ for verdict in machine.verdicts()}
        return [found[key] for key in (launcher, rank) if key in found]

    records: list[events.Record] = [
        events.AttemptEnded(attempt=1, state="lost"),
        events.AttemptStarted(attempt=2, ranks=1),
    ]
    for record in records:
        write(run, record)
        assert classes() == ["live", "live"]
        follower = Follower(run)
        follower.poll()
        alive = follower.liveness()
        assert alive.agent and alive.ranks == {0}
    assert "had ended already, or is no leftover now" in commands.end_left(run, [launcher, rank])
    assert lives(*launcher) and lives(*rank)
    send_signal(*launcher, signal.SIGKILL)
    until(lambda: not lives(*launcher), "its end")
    assert classes() == ["confirm"] and machine.runs[0].live == 0


def test_who_lives_when_an_attempt_begins_is_told_of_in_that_attempt_at_once(
    watched: tuple[RunDir, Key, Key], log: Path
) -> None:
    run, launcher, rank = watched
    follow(run, log)
    with watching(run) as watcher:
        append(log, "[default] Worker group FAILED. 1/3 attempts left; will restart worker group\n")
        watcher.read_logs()
        follower = Follower(run)
        follower.poll()
        told = follower.state.journal.processes
        assert follower.state.newest_attempt() == 2
        assert told[launcher].attempt == told[rank].attempt == 2


def test_it_is_never_stopped_relaunched_resumed_or_taken_over(
    watched: tuple[RunDir, Key, Key],
) -> None:
    run, launcher, rank = watched
    doings: list[Callable[[], object]] = [
        lambda: commands.stop(run, 1),
        lambda: commands.relaunch(run, 1, "same"),
        lambda: stop_run(run, now=True),
        lambda: launching.resumable(run),
    ]
    for doing in doings:
        with pytest.raises(RunDirError, match="bitwatch did not start it"):
            doing()
    assert begin.take_over(run, "a test", "clean") is None
    begin.close_if_dead(run, "a test")
    assert seen(run).state == "starting" and seen(run).note == "nobody watches it now"
    (facts,) = KnownRuns(run.path.parent).facts()
    assert facts.live == 1 and not facts.orphaned and not facts.unclosed
    for key in (rank, launcher):
        send_signal(*key, signal.SIGKILL)
    until(lambda: not lives(*rank) and not lives(*launcher), "their end")
    (facts,) = KnownRuns(run.path.parent).facts()
    assert not facts.unclosed and not facts.orphaned
    assert begin.close_record(run, "a test") is False


def test_the_gpus_that_its_ranks_may_see_are_on_record(home: Path, start: Start) -> None:
    def recorded(*values: str | None) -> str | None:
        environments: list[dict[str, str]] = [
            {} if value is None else {"CUDA_VISIBLE_DEVICES": value} for value in values
        ]
        ranks = [
            start("import time; print(flush=True); time.sleep(600)", env=e) for e in environments
        ]
        training = training_of(ranks[0], ranks[0])
        one = training.members[1]
        members = [
            one._replace(stat=stat, rank=n)
            for n, (pid, _) in enumerate(ranks)
            if (stat := read_stat(pid))
        ]
        run = foreign.of_training(home, training._replace(members=tuple(reversed(members))))
        follower = Follower(run)
        follower.poll()
        started = follower.state.journal.attempts[1].started
        assert started
        return started.visible_devices

    assert recorded("0,1", "0,1") == "0,1"
    assert recorded("2", "0", "GPU-1b") == "2,0,GPU-1b"  # a GPU of its own for each
    assert recorded("") == ""
    assert recorded("0", None) is None
