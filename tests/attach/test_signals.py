"""Signals to exactly those that were seen, refused with a reason, and written down."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bitwatch import config as configuration
from bitwatch.attach import commands, signals
from bitwatch.attach.signals import SIGNALS
from bitwatch.record import events, kernel, rundir
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.sense import processes
from bitwatch.supervise.supervisor import Supervisor
from tests.attach.conftest import NOBODY_UID, Start, needs_root
from tests.conftest import alive, until

CATCHES = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
print(flush=True)
while True:
    signal.pause()
"""


def actions(run: RunDir) -> list[events.Action]:
    return [record for record in read_all(run.journal)[0] if isinstance(record, events.Action)]


SUPERVISES = """
import sys; from pathlib import Path; from bitwatch.record.rundir import Lock, RunDir
from bitwatch.supervise import control
run = RunDir(Path(sys.argv[1])); lock = Lock(run)
server = control.listen(control.socket_path(run.path)); server.setblocking(True)
print(flush=True)
peer, request = control.receive(server); control.reply(peer, control.Answer(True))
print(request.result, flush=True)
"""


def state_of(pid: int) -> str:
    stat = processes.read_stat(pid)
    return stat.state if stat else ""


def test_a_process_is_held_goes_on_and_ends_and_all_of_it_is_in_the_record(
    run: RunDir, start: Start
) -> None:
    one, bystander = start(), start()
    said = commands.signal(run, [one], "STOP")
    assert said == f"SIGSTOP sent to pid {one[0]}"
    until(lambda: state_of(one[0]) == "T", "a stopped process")
    commands.signal(run, [one], "CONT")
    until(lambda: state_of(one[0]) == "S", "it to go on")
    commands.signal(run, [one, one], "TERM")
    until(lambda: not alive(one), "its end")
    assert alive(bystander)
    written = actions(run)
    assert [(a.name, a.on) for a in written] == [("signal", f"pid {one[0]}")] * 3
    assert written[0].result == said and f"pid {os.getpid()}" in written[0].by
    assert not run.lock_is_held()


def test_who_may_not_be_signalled_is_named_and_the_others_get_it(run: RunDir, start: Start) -> None:
    one, kept, gone = start(), start(), start()
    gone_child = subprocess.Popen(["true"])
    gone = gone_child.pid, kernel.starttime(gone_child.pid) or 1
    gone_child.wait()
    reused = kept[0], kept[1] - 1
    me, above = os.getpid(), os.getppid()
    targets = [
        gone, reused, one, (me, kernel.own_starttime()), (above, kernel.starttime(above) or 0), (5, 0),
    ]  # fmt: skip
    said = commands.signal(run, targets, "TERM")
    assert said == (
        f"SIGTERM sent to pid {one[0]}; pid {gone[0]}, pid {kept[0]} has ended already; "
        f"pid {me}, pid {above} is this program itself, or what started it; "
        "pid 5 is outside this PID namespace"
    )
    until(lambda: not alive(one), "its end")
    assert alive(kept)
    assert len(actions(run)) == 1
    assert "has ended already" in commands.signal(run, [reused], "KILL")
    assert len(actions(run)) == 1, "nothing was done, so nothing is written"
    assert alive(kept)
    assert "not among the signals" in commands.signal(run, [kept], "SEGV")


@needs_root("start a process of another user")
def test_another_users_process_is_refused_even_by_root(run: RunDir, start: Start) -> None:
    theirs = start(user=NOBODY_UID, extra_groups=[])
    said = commands.signal(run, [theirs], "KILL")
    assert said == f"pid {theirs[0]} is of another user (nobody)"
    assert alive(theirs)


def test_a_signal_that_would_end_who_does_not_know_it_is_refused(run: RunDir, start: Start) -> None:
    knows, knows_not = start(CATCHES), start()
    for name in ("USR1", "USR2"):
        said = commands.signal(run, [knows, knows_not], name)
        assert said.startswith(f"SIG{name} sent to pid {knows[0]}; pid {knows_not[0]} does nothing")
    assert alive(knows) and alive(knows_not)


def test_a_live_supervisor_writes_it_down(run: RunDir, start: Start) -> None:
    config = configuration.load(configuration.bundled("configs/demo.toml"))
    run.config(1).write_text(configuration.dump(config))
    lock = rundir.Lock(run)
    supervisor = Supervisor(run, 1, lock)
    selector = selectors.DefaultSelector()
    supervisor.server.listen(selector, "control")
    thread = threading.Thread(target=lambda: selector.select(60) and supervisor._answer())
    thread.start()
    one = start()
    said = commands.signal(run, [one], "STOP")
    thread.join()
    supervisor.server.close()
    supervisor.close()
    lock.release()
    (action,) = actions(run)
    assert (action.name, action.on, action.result) == ("signal", f"pid {one[0]}", said)
    assert "not written" not in said


def test_a_supervisor_that_is_held_stays_held_and_that_it_wrote_nothing_is_said(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears of it when a person lets it go on."""
    monkeypatch.setattr(signals, "ANSWER_S", 0.2)
    words = [sys.executable, "-c", SUPERVISES, str(run.path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout and holder.stdout.readline()
        key = holder.pid, kernel.starttime(holder.pid) or 0
        said = commands.signal(run, [key], "STOP")
        assert said.endswith("not written into the record: its supervisor does not answer")
        until(lambda: state_of(holder.pid) == "T", "it to be held")
        commands.signal(run, [key], "CONT")
        assert holder.stdout.readline() == f"SIGSTOP sent to pid {holder.pid}\n"


def test_what_cannot_be_written_down_is_done_and_said(
    run: RunDir, start: Start, tmp_path: Path
) -> None:
    first, second = start(), start()
    lock = rundir.Lock(run)  # its holder answers nobody
    said = commands.signal(run, [first], "KILL")
    lock.release()
    assert said.endswith("not written into the record: its supervisor does not answer")
    shutil.rmtree(run.path)
    said = commands.signal(run, [second], "KILL")
    assert said.endswith(
        "not written into the record: the folder of this run has been deleted or moved"
    )
    until(lambda: not alive(first) and not alive(second), "their end")


def test_the_pids_of_another_host_are_nobody_here(run: RunDir, start: Start) -> None:
    one = start()
    identity = run.identity()
    identity.host = "elsewhere"
    rundir.write_identity(run, identity)
    with pytest.raises(RunDirError, match="another host"):
        commands.signal(run, [one], "KILL")
    assert alive(one)


def test_the_first_signal_is_the_gentlest_and_each_says_what_it_does() -> None:
    names = [name for name, _ in SIGNALS]
    assert names[0] == "TERM" and len(set(names)) == len(names)
    assert all(words for _, words in SIGNALS)
