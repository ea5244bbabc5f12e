"""A supervisor may die at any moment: what goes on gets another, what is dead is closed, and the
record says the truth."""

from __future__ import annotations

import functools
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from bitwatch import config as configuration
from bitwatch.attach import commands
from bitwatch.attach.follow import Feed
from bitwatch.record import events, rundir
from bitwatch.record.afterwards import RELAUNCH_FAILED
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.rundir import RunDir
from bitwatch.supervise import begin, closing, escalation, launch, relaunch, stopping, taking_over
from bitwatch.supervise.clean import Cleaner
from bitwatch.supervise.known_runs import KnownRuns
from bitwatch.supervise.supervisor import Supervisor
from tests.conftest import PATIENCE_S, alive, until
from tests.supervise.standins import (
    ATTEMPT,
    ENDED,
    WORKER,
    Key,
    Standins,
    made,
    of,
    rank_says,
    settled,
    start,
    tags,
    write,
)

DEAD = (4_000_000, 7)  # beyond the largest pid that a kernel gives
STOPPED_NOW = events.Action(
    name="stop", by="me", on="attempt 1", result="at once, without a checkpoint"
)
ESCALATED = events.Action(name="escalate", by="supervisor", on="attempt 1", result="SIGTERM")
BY_FORCE = "stopped by me, without a checkpoint (at once)"
REPORT = "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 77)\n"


def ends(run: RunDir) -> list[events.AttemptEnded]:
    return of(read_all(run.journal)[0], events.AttemptEnded)


def ended(state: events.EndState, rank: int, cause: str = "") -> events.RankEnded:
    return events.RankEnded(rank=rank, state=state, cause=cause)


@pytest.mark.parametrize(
    ("told", "words", "log", "expected"),
    [
        ([], [], "", ("lost", "its supervisor died before it could start torchrun")),
        ([start(DEAD, "agent")], [], "", ("lost", "everything of it died at once")),
        ([start(DEAD, "agent")], ["done", "done"], "", ("done", "")),
        ([start(DEAD, "agent")], ["stopped", "stopped"], "", ("stopped", "")),
        ([start(DEAD, "agent")], ["done"], REPORT, ("failed", "rank 1 was killed by SIGKILL")),
        ([start(DEAD, "agent"), STOPPED_NOW, ESCALATED], ["failed"], "", ("stopped", BY_FORCE)),
        ([start(DEAD, "agent"), STOPPED_NOW], ["failed"], "", ("failed", "broken")),
    ],
)  # fmt: skip
def test_the_end_of_what_is_dead_is_written_down_once(
    run: RunDir,
    told: list[events.Record],
    words: list[events.EndState],
    log: str,
    expected: tuple[str, str],
) -> None:
    write(run, ATTEMPT, *told)
    for rank, word in enumerate(words):
        rank_says(run, rank, ended(word, rank, "broken" if word == "failed" else ""))
    (run.logs(1) / "agent.log").write_text(log)
    cleaner = Cleaner(run.path.parent)
    found = cleaner.look()
    assert (found.unclosed, found.orphaned, ends(run)) == ([run.id], [], [])
    assert cleaner.clean(found, (), "test", 0.0).closed[0].startswith(f"{run.id}: the record of")
    (end,) = ends(run)
    assert end.state == expected[0]
    assert end.cause.startswith(expected[1]) and bool(end.cause) == bool(expected[1])
    assert run.exit(1).exists() and not run.reserve.exists() and not run.lock_is_held()
    assert commands.clean(run) == "nothing is left of ended attempts"
    assert len(ends(run)) == 1


def test_a_record_that_a_full_disk_left_open_is_not_said_to_be_closed(run: RunDir) -> None:
    """Until there is room again. A limit on the size of files does what a full disk does."""
    write(run, ATTEMPT)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (run.journal.stat().st_size, limits[1]))
    try:
        said = commands.clean(run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert said == f"not written into the record: {run.journal}: the disk is full"
    assert ends(run) == [] and not run.lock_is_held()
    assert "the record of attempt 1 is closed" in commands.clean(run)
    assert len(ends(run)) == 1


def test_what_may_only_be_about_to_begin_or_is_held_is_not_closed(tmp_path: Path) -> None:
    young, held = made(tmp_path, age_s=0.0), made(tmp_path)
    write(young, ATTEMPT)
    write(held, ATTEMPT)
    lock = rundir.Lock(held)
    cleaner = Cleaner(tmp_path)
    found = cleaner.clean(cleaner.look(), (), "test", 0.0)
    lock.release()
    assert (found.closed, found.taken_over, found.notes) == ([], [], [])
    assert ends(young) == ends(held) == []


def test_clean_ends_leftovers_and_gives_the_live_attempt_a_supervisor_again(
    tmp_path: Path, standins: Standins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which has nothing of the run that the command was called inside of."""
    run = made(tmp_path, attempts=2)
    agent, left = standins.start(), standins.start()
    second = events.AttemptStarted(attempt=2, steps=10, ranks=2)
    write(run, ATTEMPT, start(left), ENDED, second, start(agent, "agent", 2))
    for name in launch.TAGS:
        monkeypatch.setenv(name, "outer")
    patient = functools.partial(taking_over.wait, limit_s=PATIENCE_S)
    monkeypatch.setattr(taking_over, "wait", patient)
    said = commands.clean(run)
    assert f"ended worker 0 of rank 1 (pid {left[0]})" in said
    assert "attempt 2 had lost its supervisor and has a new one" in said
    assert not alive(left) and alive(agent)
    assert run.lock_is_held()
    holder = run.holder()
    assert holder is not None
    environment = Path(f"/proc/{holder.pid}/environ").read_bytes()
    assert environment and b"BITWATCH_" not in environment and b"outer" not in environment
    assert commands.clean(run) == "nothing is left of ended attempts"
    cleaned_under_a_supervisor(run, standins)
    standins.end(agent)
    until(lambda: not run.lock_is_held(), "the supervisor to close the record")
    assert [(end.attempt, end.state) for end in ends(run)] == [(1, "failed"), (2, "failed")]
    assert "exit status unknown" in ends(run)[1].cause
    # Who comes too late to take it over changes nothing.
    before = run.journal.read_bytes()
    assert begin.start_supervisor(run, 2, "adopt", "late", "test").wait() == 0
    assert run.journal.read_bytes() == before


def cleaned_under_a_supervisor(run: RunDir, standins: Standins) -> None:
    """It ends what it has recorded; of what only has the tag it is told. All is written once."""
    known = standins.start()
    tagged = standins.start(looks=WORKER, env=tags(run))
    write(run, start(known))
    settled(known, tagged)
    with pytest.MonkeyPatch.context() as patient:  # with a supervisor that is slow to answer
        patient.setattr(closing, "ANSWER_S", PATIENCE_S)
        said = commands.clean(run)
    assert f"(pid {known[0]})" in said and f"(pid {tagged[0]})" in said
    assert "not written" not in said
    assert not alive(known) and not alive(tagged)
    told = [a.result for a in of(read_all(run.journal)[0], events.Action) if a.name == "clean"]
    for pid, _ in (known, tagged):
        assert len([words for words in told if f"(pid {pid})" in words]) == 1, told


def test_attach_brings_a_supervisor_to_ranks_that_no_journal_names(
    run: RunDir, standins: Standins
) -> None:
    """A rank's own word counts: the supervisor may have died before it saw it."""
    rank = standins.start()
    write(run, ATTEMPT)
    rank_says(run, 0, start(rank, "rank"))
    (facts,) = KnownRuns(run.path.parent).facts()
    assert (facts.live, facts.orphaned, facts.unclosed) == (1, True, 0)
    feed = Feed(run)
    feed.start()
    feed.go_on()
    until(run.lock_is_held, "attach to start a supervisor")
    feed.close()
    rank_says(run, 0, ended("done", 0))
    rank_says(run, 1, ended("done", 1))
    standins.end(rank)
    until(lambda: not run.lock_is_held(), "the supervisor to close the record")
    assert [end.state for end in ends(run)] == ["done"]


@pytest.mark.parametrize("recorded", [True, False])
def test_an_agent_does_nothing_before_it_is_recorded(run: RunDir, recorded: bool) -> None:
    """When its supervisor dies before that, it ends: nobody would ever find it."""
    config = configuration.load(run.config(1))
    agent = launch.start_agent(run, 1, config, True, 1.0)
    command = Path(f"/proc/{agent.pid}/cmdline")
    if recorded:
        agent.go()
        until(lambda: b"torch.distributed.run" in command.read_bytes(), "the agent to be torchrun")
        assert os.readlink(f"/proc/{agent.pid}/fd/0") == os.devnull
        os.kill(agent.pid, 9)
        os.waitpid(agent.pid, 0)
    else:
        os.close(agent.pipe)
        assert os.waitstatus_to_exitcode(os.waitpid(agent.pid, 0)[1]) == 1
        assert "nothing was started" in (run.logs(1) / "agent.log").read_text()


def test_an_agent_that_a_full_disk_keeps_out_of_the_record_launches_nothing(run: RunDir) -> None:
    """Not even with the reserve. A limit on the size of files does what a full disk does."""
    lock = rundir.Lock(run)
    supervisor = Supervisor(run, 1, lock)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        supervisor.launch("test", "test")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert supervisor.agent is not None and not run.reserve.exists()
    until(supervisor._ended, "the agent to end")
    why = f"nothing was launched: {run.journal}: the disk is full"
    assert supervisor._finish() == ("failed", why)
    supervisor.close()
    lock.release()
    assert [end.cause for end in ends(run)] == [why]  # there is room again
    assert supervisor.agent_exit and supervisor.agent_exit.status == 1


def test_a_stop_that_was_being_forced_is_forced_on(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(escalation, "TERM_S", 0.0)
    stopping.ask(run, 1, "me", now=True)
    write(run, ATTEMPT, STOPPED_NOW, ESCALATED)
    follower = Follower(run)
    follower.poll()
    second = escalation.Escalation(run, 1, lambda: 600.0, JournalWriter(run.journal))
    second.adopt(follower.state)
    assert second.forced == BY_FORCE
    assert second.look(None)  # what is left is to be killed


def test_a_relaunch_that_its_supervisor_did_not_live_to_make_is_told_and_can_be_made(
    run: RunDir,
) -> None:
    relaunch.ask(run, 1, "same", "somebody")
    write(run, ATTEMPT)
    half = rundir.new_attempt(run)  # it died over making it
    cleaner = Cleaner(run.path.parent)
    cleaner.clean(cleaner.look(), (), "test", 0.0)
    (failed,) = [
        action
        for action in of(read_all(run.journal)[0], events.Action)
        if action.name == RELAUNCH_FAILED
    ]
    assert (failed.by, failed.on) == ("somebody", "attempt 1")
    assert "died before it could make the next one" in failed.result
    follower = Follower(run)
    follower.poll()
    relaunch.drop_unstarted(run, follower.state)
    assert run.attempts() == [1, half]  # it is so young that it may be about to begin
    long_ago = time.time() - 2 * begin.START_S
    os.utime(run.attempt(half), (long_ago, long_ago))
    relaunch.drop_unstarted(run, follower.state)
    assert run.attempts() == [1] and not run.attempt(half).exists()


def test_what_ends_before_it_can_be_taken_over_is_not_said_to_have_a_supervisor(
    run: RunDir, standins: Standins, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(run, ATTEMPT, start(standins.start(), "agent"))
    begins = begin._start

    def just_ended(*given: Any) -> begin.Starting:
        write(run, ENDED)
        return begins(*given)

    monkeypatch.setattr(begin, "_start", just_ended)
    starting = begin.take_over(run, "test", "test")
    assert starting is not None
    words, wrong = taking_over.wait([starting], PATIENCE_S)
    assert words == [f"{run.id}: attempt 1 had lost its supervisor, and has ended since"]
    assert wrong == []


def test_two_who_take_over_at_once_make_one_supervisor(
    run: RunDir, standins: Standins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And how the run ended is told by the command of the user's file, which is no part of it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own, told = configuration.user_file(), tmp_path / "told"
    own.parent.mkdir(parents=True)
    own.write_text(f'notify_command = "cat > {told}; echo no mail >&2; exit 3"\n')
    agent: Key = standins.start()
    write(run, ATTEMPT, start(agent, "agent"))
    begins = begin._start

    def held(*given: Any) -> begin.Starting:
        starting = begins(*given)
        starting.process.send_signal(signal.SIGSTOP)
        return starting

    monkeypatch.setattr(begin, "_start", held)
    both = [begin.take_over(run, "test", "test") for _ in range(2)]
    started = [starting for starting in both if starting]
    assert len(started) == 2
    words, wrong = taking_over.wait(started, 0.0)  # as if there were hundreds of them
    assert wrong == [] and len(words) == 2
    assert all("was asked to take over, and has not answered yet" in said for said in words)
    for starting in started:
        starting.process.send_signal(signal.SIGCONT)
    words, wrong = taking_over.wait(started, PATIENCE_S)
    assert words == [f"{run.id}: attempt 1 had lost its supervisor and has a new one"]
    assert wrong == []
    standins.end(agent)
    until(lambda: not run.lock_is_held(), "the supervisor to close the record")
    adopted = [a.name for a in of(read_all(run.journal)[0], events.Action)]
    assert adopted.count("adopt") == 1 and len(ends(run)) == 1
    until(lambda: told.exists() and told.read_text(), "the user's command to be told")
    assert told.read_text().startswith("demo, attempt 1: the run failed: ")
    # Its supervisor waits a moment for that command, and on a busy machine leaves before.
    for action in of(read_all(run.journal)[0], events.Action):
        if action.name == "notify":
            assert (action.on, action.result) == ("run-failed", "exit code 3: no mail")
    began = of(read_all(run.journal)[0], events.ProcessStart)
    assert began and not [start for start in began if "notifying" in start.command]
    assert "other" not in {start.role for start in began}
